// ByteSize: a number of bytes as people write it: "256MiB", "1GiB", "4096". A flag type.
//
// Units are B, KiB, MiB, GiB and TiB; the decimal ones (KB, MB) are refused, because half of their
// users mean the others. A value type.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cairn {

class ByteSize {
 public:
  constexpr ByteSize() = default;
  constexpr explicit ByteSize(uint64_t bytes) : bytes_(bytes) {}
  static constexpr ByteSize KiB(uint64_t count) { return ByteSize(count << 10); }
  static constexpr ByteSize MiB(uint64_t count) { return ByteSize(count << 20); }
  static constexpr ByteSize GiB(uint64_t count) { return ByteSize(count << 30); }

  // INVALID_ARGUMENT naming `text` for anything but digits with one of the units, and for more than
  // 2^63 - 1 bytes.
  static absl::StatusOr<ByteSize> Parse(absl::string_view text);

  constexpr uint64_t bytes() const { return bytes_; }

  // In the largest unit that loses nothing; Parse gives the same value back.
  std::string ToString() const;

  friend constexpr auto operator<=>(ByteSize a, ByteSize b) = default;

 private:
  uint64_t bytes_ = 0;
};

bool AbslParseFlag(absl::string_view text, ByteSize* size, std::string* error);
std::string AbslUnparseFlag(ByteSize size);

}  // namespace cairn
