// ReuseFeatures: what the policy knows of a block when its request touches it, and by what it
// expects the next one. Few values each, so that each is seen often enough to learn from.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace cairn::node {

inline constexpr uint32_t kReuseTouches = 3;  // Once, twice, more often.
inline constexpr uint32_t kReuseTurns = 4;    // New, and continued once, twice, more often.
inline constexpr uint32_t kReuseFresh = 10;   // Blocks that the request brings, by factors of 4.
inline constexpr uint32_t kReuseGaps = 12;    // Requests since the turn before, by factors of 4.

struct ReuseFeatures {
  uint8_t touches = 1;  // Of the block, this one included; 1 to kReuseTouches.
  uint8_t turn = 0;     // How often the prompt was continued; below kReuseTurns.
  bool last = false;    // A first touch of the last block of its prompt.
  uint8_t fresh = 0;    // Below kReuseFresh.
  uint8_t gap = 0;      // Below kReuseGaps.
};

// 0 for 0, 1 for 1 to 3, 2 for 4 to 15 and so on.
constexpr uint8_t FactorsOfFour(uint64_t count, uint32_t below) {
  const uint32_t bits = static_cast<uint32_t>(std::bit_width(count));
  return static_cast<uint8_t>(std::min<uint32_t>((bits + 1) / 2, below - 1));
}

}  // namespace cairn::node
