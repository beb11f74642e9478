// ByteReader: takes little-endian numbers and runs of bytes off the front of bytes that nobody
// vouches for.
//
// Each Read answers false, and changes nothing, when what is left is too short. Borrows the bytes.
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"

namespace cairn::node {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

class ByteReader {
 public:
  explicit ByteReader(absl::string_view bytes) : left_(bytes) {}

  size_t remaining() const { return left_.size(); }

  // A number, or an array of bytes in a trivial struct.
  template <typename T>
  bool Read(T* out) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (left_.size() < sizeof(T)) return false;
    std::memcpy(out, left_.data(), sizeof(T));
    left_.remove_prefix(sizeof(T));
    return true;
  }

  bool ReadBytes(size_t size, absl::string_view* out) {
    if (left_.size() < size) return false;
    *out = left_.substr(0, size);
    left_.remove_prefix(size);
    return true;
  }

  bool ReadString(size_t size, std::string* out) {
    absl::string_view bytes;
    if (!ReadBytes(size, &bytes)) return false;
    out->assign(bytes.data(), bytes.size());
    return true;
  }

 private:
  absl::string_view left_;
};

// The other way: appends a number, or the bytes of a trivial struct.
template <typename T>
void AppendBytesOf(std::string* out, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

}  // namespace cairn::node
