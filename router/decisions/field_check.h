// FieldCheck: takes values that came from outside and remembers the first that no router writes.
//
// What is taken is safe for any policy: numbers are finite and within bounds that no arithmetic
// with them leaves. Not thread-safe; lives on the stack of the function that decodes.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace cairn::router {

class FieldCheck {
 public:
  static constexpr uint64_t kCountMax = uint64_t{1} << 40;
  static constexpr double kAmountMax = 1e15;
  static constexpr double kRateMin = 1e-6;

  // Of tokens, requests and the like.
  uint64_t Count(absl::string_view field, uint64_t value) {
    Check(field, value <= kCountMax);
    return value;
  }
  // Of seconds and rates: from `min` to kAmountMax.
  double Amount(absl::string_view field, double value, double min = 0);
  // Of an answer, which no policy sees: anything that is a number, infinite ones too.
  double Number(absl::string_view field, double value);
  void Check(absl::string_view field, bool ok);

  // INVALID_ARGUMENT that names the first wrong field.
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

}  // namespace cairn::router
