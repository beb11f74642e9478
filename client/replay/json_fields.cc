#include "client/replay/json_fields.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace cairn::replay {
namespace {

using nlohmann::json;

constexpr size_t kShownBytesMax = 60;

std::string Shown(const json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > kShownBytesMax) text.replace(kShownBytesMax, std::string::npos, "...");
  return text;
}

absl::StatusOr<const json*> Field(const json& object, absl::string_view name) {
  const auto found = object.find(std::string(name));
  if (found == object.end()) {
    return absl::InvalidArgumentError(absl::StrCat("no field \"", name, "\""));
  }
  return &*found;
}

absl::Status Wrong(absl::string_view name, const json& value, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" is ", Shown(value), ", not ", wanted));
}

}  // namespace

absl::StatusOr<json> ParseObject(absl::string_view line) {
  json value = json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return absl::InvalidArgumentError("not JSON");
  if (!value.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(Shown(value), ", not a JSON object"));
  }
  return value;
}

absl::StatusOr<double> NumberField(const json& object, absl::string_view name) {
  absl::StatusOr<const json*> field = Field(object, name);
  if (!field.ok()) return field.status();
  if (!(*field)->is_number()) return Wrong(name, **field, "a number");
  const double value = (*field)->get<double>();
  if (!std::isfinite(value)) return Wrong(name, **field, "a finite number");
  return value;
}

absl::StatusOr<uint64_t> UnsignedField(const json& object, absl::string_view name, uint64_t max) {
  absl::StatusOr<const json*> field = Field(object, name);
  if (!field.ok()) return field.status();
  if ((*field)->is_number_unsigned()) {
    if (const auto value = (*field)->get<uint64_t>(); value <= max) return value;
  }
  return Wrong(name, **field, absl::StrCat("a whole number from 0 to ", max));
}

absl::StatusOr<int64_t> SignedField(const json& object, absl::string_view name, int64_t min,
                                    int64_t max) {
  absl::StatusOr<const json*> field = Field(object, name);
  if (!field.ok()) return field.status();
  const bool fits = (*field)->is_number_integer() &&
                    (!(*field)->is_number_unsigned() || (*field)->get<uint64_t>() <= INT64_MAX);
  if (fits) {
    if (const auto value = (*field)->get<int64_t>(); min <= value && value <= max) return value;
  }
  return Wrong(name, **field, absl::StrCat("a whole number from ", min, " to ", max));
}

absl::StatusOr<std::vector<uint64_t>> UnsignedArrayField(const json& object, absl::string_view name,
                                                         uint64_t max) {
  absl::StatusOr<const json*> field = Field(object, name);
  if (!field.ok()) return field.status();
  if (!(*field)->is_array()) return Wrong(name, **field, "a list of whole numbers");
  std::vector<uint64_t> values;
  values.reserve((*field)->size());
  for (const json& element : **field) {
    if (!element.is_number_unsigned() || element.get<uint64_t>() > max) {
      return Wrong(absl::StrCat(name, "[", values.size(), "]"), element,
                   absl::StrCat("a whole number from 0 to ", max));
    }
    values.push_back(element.get<uint64_t>());
  }
  return values;
}

}  // namespace cairn::replay
