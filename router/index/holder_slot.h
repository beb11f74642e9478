// HolderSlot: one holder of a block in 6 bytes: who, in which tiers, and as of which epoch.
//
// A value. One without tiers stands for no holder.
#pragma once

#include <array>
#include <cstdint>

#include "router/ids.h"

namespace cairn::router {

class HolderSlot {
 public:
  // Epochs are this long.
  static constexpr uint32_t kEpochBits = 28;
  static constexpr uint32_t kEpochMax = (uint32_t{1} << kEpochBits) - 1;

  HolderSlot() = default;
  // REQUIRES: holder < kHoldersMax, epoch <= kEpochMax.
  HolderSlot(HolderIndex holder, uint8_t tiers, uint32_t epoch)
      : words_{static_cast<uint16_t>(holder | tiers << kHolderBits),
               static_cast<uint16_t>(tiers >> (16 - kHolderBits) | epoch << 4),
               static_cast<uint16_t>(epoch >> 12)} {}

  HolderIndex holder() const { return static_cast<HolderIndex>(words_[0] & (kHoldersMax - 1)); }
  uint8_t tiers() const {
    return static_cast<uint8_t>(words_[0] >> kHolderBits | (words_[1] & 0xf) << 4);
  }
  uint32_t epoch() const { return uint32_t{words_[1]} >> 4 | uint32_t{words_[2]} << 12; }

 private:
  static constexpr int kHolderBits = 12;
  static_assert(kHoldersMax == size_t{1} << kHolderBits);

  std::array<uint16_t, 3> words_{};
};

static_assert(sizeof(HolderSlot) == 6);

}  // namespace cairn::router
