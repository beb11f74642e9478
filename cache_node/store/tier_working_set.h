// What a tier of other sizes would hit, for the metrics of a node. Plain values.
#pragma once

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "cache_node/store/working_set.h"

namespace cairn::node {

// Of the tier's own size.
inline constexpr std::array<double, 4> kCapacityFactors = {0.5, 1, 2, 4};

struct TierWorkingSet {
  absl::string_view tier;  // "host" or "disk".
  WorkingSet set;
};

struct HitRateAtCapacity {
  absl::string_view tier;
  double factor = 0;
  double hit_rate = 0;
};

inline TierWorkingSet MakeTierWorkingSet(absl::string_view tier, uint64_t tier_bytes) {
  WorkingSet::Options options;
  for (const double factor : kCapacityFactors) {
    options.sizes_bytes.push_back(static_cast<uint64_t>(factor * static_cast<double>(tier_bytes)));
  }
  return {.tier = tier, .set = WorkingSet(options)};
}

}  // namespace cairn::node
