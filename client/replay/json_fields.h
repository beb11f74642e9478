// Fields of a JSON object that came from outside, checked before they are used.
//
// Statuses are INVALID_ARGUMENT and name the field and what it holds.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cairn::replay {

// The object on a line.
absl::StatusOr<nlohmann::json> ParseObject(absl::string_view line);

// A finite number.
absl::StatusOr<double> NumberField(const nlohmann::json& object, absl::string_view name);

// A whole number in [0, max].
absl::StatusOr<uint64_t> UnsignedField(const nlohmann::json& object, absl::string_view name,
                                       uint64_t max);

// A whole number in [min, max].
absl::StatusOr<int64_t> SignedField(const nlohmann::json& object, absl::string_view name,
                                    int64_t min, int64_t max);

// An array of whole numbers in [0, max].
absl::StatusOr<std::vector<uint64_t>> UnsignedArrayField(const nlohmann::json& object,
                                                         absl::string_view name, uint64_t max);

}  // namespace cairn::replay
