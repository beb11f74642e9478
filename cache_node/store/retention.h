// Retention: how long a block is worth keeping, as its writer says, and what comes of a wish that
// it stays whatever comes. Plain values.
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

// What came of asking for a block to stay in host memory until some time. The numbers are those of
// cairn.v1.PinOutcome.
enum class StayOutcome : uint8_t {
  kNotAsked = 0,
  kStays = 1,
  kBudget = 2,       // Of the tenant or the node: it may leave like any other.
  kParentMayGo = 3,  // The block before it does not stay, so this one would be out of reach.
  kNotThere = 4,     // Neither in host memory nor being written.
  kMayGo = 5,        // From now on: it was asked to stay before, or was not.
  kNeeded = 6,       // A block after it stays, so it does too.
};

// The earlier of two times of which 0 is never.
inline int64_t EarlierOf(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

}  // namespace cairn::node
