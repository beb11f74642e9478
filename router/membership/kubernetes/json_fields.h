// Fields of JSON objects that somebody else wrote: never throws, and what has another type than
// expected is as absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace cairn::router {

// Null where there is none, or `object` is no object.
inline const nlohmann::json* FieldOf(const nlohmann::json& object, absl::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(std::string(name));
  return found == object.end() ? nullptr : &*found;
}

inline std::string StringOf(const nlohmann::json& object, absl::string_view name) {
  const nlohmann::json* const field = FieldOf(object, name);
  return field != nullptr && field->is_string() ? field->get<std::string>() : std::string();
}

inline std::optional<bool> BoolOf(const nlohmann::json& object, absl::string_view name) {
  const nlohmann::json* const field = FieldOf(object, name);
  if (field == nullptr || !field->is_boolean()) return std::nullopt;
  return field->get<bool>();
}

inline std::optional<int64_t> IntOf(const nlohmann::json& object, absl::string_view name) {
  const nlohmann::json* const field = FieldOf(object, name);
  if (field == nullptr || !field->is_number_integer()) return std::nullopt;
  return field->get<int64_t>();
}

// Of `metadata`, which every object has.
inline std::string MetadataOf(const nlohmann::json& object, absl::string_view name) {
  const nlohmann::json* const metadata = FieldOf(object, "metadata");
  return metadata == nullptr ? std::string() : StringOf(*metadata, name);
}

}  // namespace cairn::router
