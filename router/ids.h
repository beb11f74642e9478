// Ids of the router's own making, and the tiers as it counts them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/bytes16.h"

namespace cairn::router {

// Place of a followed address: dense. One that is removed leaves its place to a later one, once
// nothing refers to it.
using HolderIndex = uint16_t;
// A replica of this run of the router; never given out twice.
using ReplicaId = uint32_t;
// What a Route answer gives to be reported on.
using BookingId = Bytes16<struct BookingIdTag>;

inline constexpr size_t kHoldersMax = 4096;

// Tiers in the order of cairn.v1.Tier: bit (Tier - 1) of a mask. Fastest first.
inline constexpr size_t kTierCount = 3;
enum TierPlace : size_t { kDeviceTier = 0, kHostTier = 1, kDiskTier = 2 };
template <typename Count>
using ByTier = std::array<Count, kTierCount>;

}  // namespace cairn::router
