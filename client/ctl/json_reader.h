// JsonReader: values of a JSON document, each checked, with a status that names the place.
//
// Every failure is INVALID_ARGUMENT in the form "namespace.layout.slices: what is wrong". Borrows
// the document.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cairn::ctl {

// The document in `text`, which is called `name` when it does not parse.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text, absl::string_view name);

class JsonReader {
 public:
  JsonReader(const nlohmann::json* value, std::string path)
      : value_(value), path_(std::move(path)) {}

  const nlohmann::json& value() const { return *value_; }
  const std::string& path() const { return path_; }

  // OK for an object with no fields but these.
  absl::Status CheckObject(const std::vector<std::string>& known) const;
  bool Has(absl::string_view field) const;

  // A field of this object; it must be there.
  absl::StatusOr<JsonReader> Field(absl::string_view field) const;
  // The elements of this array.
  absl::StatusOr<std::vector<JsonReader>> Elements() const;

  // This value.
  absl::StatusOr<uint32_t> U32() const;
  absl::StatusOr<int32_t> I32() const;
  absl::StatusOr<std::string> Text() const;
  // The bytes of hexadecimal text.
  absl::StatusOr<std::string> Hex() const;

  // A field, or the fallback when it is not there.
  absl::StatusOr<uint32_t> U32Field(absl::string_view field) const;
  absl::StatusOr<uint32_t> U32FieldOr(absl::string_view field, uint32_t fallback) const;
  absl::StatusOr<std::string> TextField(absl::string_view field) const;
  absl::StatusOr<std::string> HexFieldOr(absl::string_view field, absl::string_view fallback) const;

  absl::Status Wrong(absl::string_view why) const;

 private:
  std::string PathOf(absl::string_view field) const;

  const nlohmann::json* value_;
  std::string path_;
};

}  // namespace cairn::ctl
