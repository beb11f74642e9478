#include "common/security/text_lines.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace cairn {
namespace {

constexpr size_t kShownBytes = 48;

bool IsTextByte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == '\n' || byte == '\r' || byte == '\t' || (byte >= 0x20 && byte != 0x7f);
}

}  // namespace

absl::Status ForEachLine(absl::string_view text, absl::string_view file,
                         absl::FunctionRef<absl::Status(absl::string_view line)> take) {
  if (text.size() > kSecurityFileBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": larger than ", kSecurityFileBytesMax, " bytes; shorten it"));
  }
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (!std::all_of(line.begin(), line.end(), IsTextByte)) {
      return absl::InvalidArgumentError(
          absl::StrCat(file, ":", number, ": holds a byte that no text has; write plain text"));
    }
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const absl::Status status = take(line);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(file, ":", number, ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

std::vector<absl::string_view> FieldsOf(absl::string_view line) {
  return absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
}

std::string Shown(absl::string_view field) {
  std::string shown(field.substr(0, kShownBytes));
  for (char& c : shown) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  if (field.size() > kShownBytes) absl::StrAppend(&shown, "...");
  return absl::StrCat("'", shown, "'");
}

}  // namespace cairn
