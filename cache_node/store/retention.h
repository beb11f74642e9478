// Retention: how long a block is worth keeping, as its writer says. Plain values.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cairn::node {

inline constexpr uint8_t kPriorityDefault = 35;
inline constexpr uint8_t kPriorityMax = 100;

struct Retention {
  // Of a tenant's blocks of one size those of the lowest priority make room first.
  uint8_t priority = kPriorityDefault;
  // Then it is kPriorityDefault. Wall clock; 0: as long as the block lives.
  int64_t priority_until_unix_ms = 0;
  // Then the block is gone from every tier, and with it all that follow it. Wall clock; 0: never.
  int64_t expires_unix_ms = 0;

  friend bool operator==(const Retention&, const Retention&) = default;
};

// The earlier of two times of which 0 is never.
inline int64_t EarlierOf(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

}  // namespace cairn::node
