#include "common/server/byte_size.h"

#include <array>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace cairn {
namespace {

struct Unit {
  absl::string_view name;
  int shift;
};
// Largest first.
constexpr std::array<Unit, 5> kUnits = {
    {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"B", 0}}};
constexpr uint64_t kBytesMax = std::numeric_limits<int64_t>::max();

}  // namespace

absl::StatusOr<ByteSize> ByteSize::Parse(absl::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && absl::ascii_isdigit(text[digits])) ++digits;
  const absl::string_view unit_name = text.substr(digits);
  uint64_t count = 0;
  const bool counted = absl::SimpleAtoi(text.substr(0, digits), &count);
  for (const Unit& unit : kUnits) {
    if (digits == 0 || (unit_name != unit.name && !(unit.shift == 0 && unit_name.empty())))
      continue;
    if (!counted || count > kBytesMax >> unit.shift) {
      return absl::InvalidArgumentError(absl::StrCat("'", text, "' is more than 2^63 - 1 bytes"));
    }
    return ByteSize(count << unit.shift);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text,
      "' is no size: write whole bytes, or a number with KiB, MiB, GiB or TiB (256MiB)"));
}

std::string ByteSize::ToString() const {
  for (const Unit& unit : kUnits) {
    const uint64_t count = bytes_ >> unit.shift;
    if (count > 0 && count << unit.shift == bytes_) return absl::StrCat(count, unit.name);
  }
  return "0B";
}

bool AbslParseFlag(absl::string_view text, ByteSize* size, std::string* error) {
  const absl::StatusOr<ByteSize> parsed = ByteSize::Parse(text);
  if (!parsed.ok()) {
    *error = std::string(parsed.status().message());
    return false;
  }
  *size = *parsed;
  return true;
}

std::string AbslUnparseFlag(ByteSize size) { return size.ToString(); }

}  // namespace cairn
