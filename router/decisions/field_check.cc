#include "router/decisions/field_check.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace cairn::router {

double FieldCheck::Amount(absl::string_view field, double value, double min) {
  Check(field, value >= min && value <= kAmountMax);  // Not a number is neither.
  return value;
}

double FieldCheck::Number(absl::string_view field, double value) {
  Check(field, !std::isnan(value));
  return value;
}

void FieldCheck::Check(absl::string_view field, bool ok) {
  if (ok || !status_.ok()) return;
  status_ = absl::InvalidArgumentError(absl::StrCat(field, " is of a value that no router writes"));
}

}  // namespace cairn::router
