#include "common/identity/frame.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn {
namespace {

// What a lead byte says of its sequence: how many bytes follow, and the smallest code point that
// may be written so.
struct Utf8Lead {
  size_t following;
  uint32_t bits;
  uint32_t least;
};

bool ReadUtf8Lead(uint8_t byte, Utf8Lead* lead) {
  if (byte < 0x80) {
    *lead = {0, byte, 0};
  } else if ((byte & 0xe0) == 0xc0) {
    *lead = {1, byte & 0x1fu, 0x80};
  } else if ((byte & 0xf0) == 0xe0) {
    *lead = {2, byte & 0x0fu, 0x800};
  } else if ((byte & 0xf8) == 0xf0) {
    *lead = {3, byte & 0x07u, 0x10000};
  } else {
    return false;
  }
  return true;
}

}  // namespace

void AppendU32(std::string* out, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) {
    out->push_back(static_cast<char>(static_cast<uint8_t>(value >> shift)));
  }
}

void AppendFramed(std::string* out, uint32_t tag, absl::string_view bytes) {
  CAIRN_CHECK(bytes.size() <= UINT32_MAX);
  AppendU32(out, tag);
  AppendU32(out, static_cast<uint32_t>(bytes.size()));
  out->append(bytes.data(), bytes.size());
}

bool IsUtf8(absl::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    Utf8Lead lead;
    if (!ReadUtf8Lead(static_cast<uint8_t>(text[at]), &lead)) return false;
    if (text.size() - at <= lead.following) return false;
    uint32_t code_point = lead.bits;
    for (size_t i = 1; i <= lead.following; ++i) {
      const auto byte = static_cast<uint8_t>(text[at + i]);
      if ((byte & 0xc0) != 0x80) return false;
      code_point = code_point << 6 | (byte & 0x3fu);
    }
    const bool surrogate = code_point >= 0xd800 && code_point <= 0xdfff;
    if (code_point < lead.least || code_point > 0x10ffff || surrogate) return false;
    at += 1 + lead.following;
  }
  return true;
}

absl::Status ValidateRawField(absl::string_view field, absl::string_view value) {
  if (value.size() <= kFieldBytesMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " has ", value.size(), " bytes; allowed: up to ", kFieldBytesMax));
}

absl::Status ValidateStringField(absl::string_view field, absl::string_view value) {
  absl::Status status = ValidateRawField(field, value);
  if (!status.ok()) return status;
  if (IsUtf8(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " is not well-formed UTF-8"));
}

}  // namespace cairn
