// ReuseWorth: what a block is worth when its chances are known.
#pragma once

#include <array>

#include "cache_node/store/policies/reuse/reuse_ages.h"

namespace cairn::node {

// `hazard[b]`: the chance, in [0, 1], that a block which was not used up to age bin b is used in
// it. Returns for each bin the most hits for each request that the block is held, from the start of
// that bin to the end of the best bin to give up at:
//     max over t of  (sum of k = b..t: alive_k * hazard_k) / (sum: alive_k * width_k * (1 -
//     hazard_k / 2))
// where alive_k is the chance to come from b to k unused, and a use comes half-way through its bin:
// the Gittins index of the hazard. O(bins).
std::array<double, kReuseAgeBins> ReuseWorth(const std::array<float, kReuseAgeBins>& hazard);

}  // namespace cairn::node
