#include "client/ctl/json_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/ctl/usage_error.h"
#include "common/base/hex.h"

namespace cairn::ctl {
namespace {

using Json = nlohmann::json;

// A value as far as a message needs it.
std::string Shown(const Json& value) {
  constexpr size_t kShownBytesMax = 60;
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kShownBytesMax) text = text.substr(0, kShownBytesMax) + "...";
  return text;
}

}  // namespace

absl::StatusOr<Json> ParseJson(absl::string_view text, absl::string_view name) {
  Json document = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": not valid JSON"));
  }
  return document;
}

absl::Status JsonReader::Wrong(absl::string_view why) const {
  return absl::InvalidArgumentError(absl::StrCat(path_, ": ", why));
}

std::string JsonReader::PathOf(absl::string_view field) const {
  return path_.empty() ? std::string(field) : absl::StrCat(path_, ".", field);
}

absl::Status JsonReader::CheckObject(const std::vector<std::string>& known) const {
  if (!value_->is_object()) return Wrong(absl::StrCat("must be an object, not ", Shown(*value_)));
  for (const auto& [field, ignored] : value_->items()) {
    if (std::find(known.begin(), known.end(), field) != known.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(PathOf(field), ": unknown field", Suggestion(field, known)));
  }
  return absl::OkStatus();
}

bool JsonReader::Has(absl::string_view field) const {
  return value_->is_object() && value_->contains(std::string(field));
}

absl::StatusOr<JsonReader> JsonReader::Field(absl::string_view field) const {
  if (!value_->is_object()) return Wrong(absl::StrCat("must be an object, not ", Shown(*value_)));
  const auto found = value_->find(std::string(field));
  if (found == value_->end()) {
    return absl::InvalidArgumentError(absl::StrCat(PathOf(field), ": missing"));
  }
  return JsonReader(&*found, PathOf(field));
}

absl::StatusOr<std::vector<JsonReader>> JsonReader::Elements() const {
  if (!value_->is_array()) return Wrong(absl::StrCat("must be an array, not ", Shown(*value_)));
  std::vector<JsonReader> elements;
  for (size_t i = 0; i < value_->size(); ++i) {
    elements.emplace_back(&(*value_)[i], absl::StrCat(path_, "[", i, "]"));
  }
  return elements;
}

absl::StatusOr<uint32_t> JsonReader::U32() const {
  if (!value_->is_number_unsigned() || value_->get<uint64_t>() > UINT32_MAX) {
    return Wrong(
        absl::StrCat("must be an integer from 0 to ", UINT32_MAX, ", not ", Shown(*value_)));
  }
  return static_cast<uint32_t>(value_->get<uint64_t>());
}

absl::StatusOr<int32_t> JsonReader::I32() const {
  const bool fits = value_->is_number_unsigned()
                        ? value_->get<uint64_t>() <= INT32_MAX
                        : value_->is_number_integer() && value_->get<int64_t>() >= INT32_MIN &&
                              value_->get<int64_t>() <= INT32_MAX;
  if (!fits) {
    return Wrong(absl::StrCat("must be an integer from ", INT32_MIN, " to ", INT32_MAX, ", not ",
                              Shown(*value_)));
  }
  return static_cast<int32_t>(value_->get<int64_t>());
}

absl::StatusOr<std::string> JsonReader::Text() const {
  if (!value_->is_string()) return Wrong(absl::StrCat("must be a string, not ", Shown(*value_)));
  return value_->get<std::string>();
}

absl::StatusOr<std::string> JsonReader::Hex() const {
  const absl::StatusOr<std::string> text = Text();
  if (!text.ok()) return text.status();
  absl::StatusOr<std::string> bytes = FromHex(*text);
  if (!bytes.ok()) return Wrong(bytes.status().message());
  return bytes;
}

absl::StatusOr<uint32_t> JsonReader::U32Field(absl::string_view field) const {
  const absl::StatusOr<JsonReader> value = Field(field);
  if (!value.ok()) return value.status();
  return value->U32();
}

absl::StatusOr<uint32_t> JsonReader::U32FieldOr(absl::string_view field, uint32_t fallback) const {
  if (!Has(field)) return fallback;
  return U32Field(field);
}

absl::StatusOr<std::string> JsonReader::TextField(absl::string_view field) const {
  const absl::StatusOr<JsonReader> value = Field(field);
  if (!value.ok()) return value.status();
  return value->Text();
}

absl::StatusOr<std::string> JsonReader::HexFieldOr(absl::string_view field,
                                                   absl::string_view fallback) const {
  if (!Has(field)) return std::string(fallback);
  const absl::StatusOr<JsonReader> value = Field(field);
  if (!value.ok()) return value.status();
  return value->Hex();
}

}  // namespace cairn::ctl
