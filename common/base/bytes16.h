// Bytes16: sixteen bytes as a value, and the strong ids made of it.
//
// A strong id is a distinct type: a lease id does not compare with, or convert to, a block key. All
// are trivially copyable and hashable with absl::Hash.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>

#include "absl/strings/string_view.h"

namespace cairn {

inline constexpr size_t kKeyBytes = 16;

template <typename Tag>
struct Bytes16 {
  std::array<uint8_t, kKeyBytes> bytes{};

  // The id in `view`, or nothing when its length is not 16.
  static std::optional<Bytes16> FromBytes(absl::string_view view) {
    if (view.size() != kKeyBytes) return std::nullopt;
    Bytes16 id;
    std::memcpy(id.bytes.data(), view.data(), kKeyBytes);
    return id;
  }

  absl::string_view view() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  friend bool operator==(const Bytes16& a, const Bytes16& b) { return a.bytes == b.bytes; }
  friend bool operator!=(const Bytes16& a, const Bytes16& b) { return a.bytes != b.bytes; }
  friend bool operator<(const Bytes16& a, const Bytes16& b) { return a.bytes < b.bytes; }

  template <typename H>
  friend H AbslHashValue(H state, const Bytes16& id) {
    return H::combine_contiguous(std::move(state), id.bytes.data(), id.bytes.size());
  }
};

// Key of one block (also of a scope, which stands where a parent's key would).
using BlockKey = Bytes16<struct BlockKeyTag>;
// A read lease of a node.
using LeaseId = Bytes16<struct LeaseIdTag>;
// A write token of a node.
using TokenId = Bytes16<struct TokenIdTag>;
// One run of a process: a restart gets another.
using Incarnation = Bytes16<struct IncarnationTag>;

static_assert(sizeof(BlockKey) == kKeyBytes && std::is_trivially_copyable_v<BlockKey>);

}  // namespace cairn
