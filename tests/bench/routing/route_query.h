// What both models tell a policy of a request, alike.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "router/ids.h"
#include "tests/bench/eviction/block_trace.h"

namespace cairn::bench {

// Tokens a second at which a node gives what it holds: so many that it costs nothing.
inline constexpr router::ByTier<double> kCachedCostsNothing = {1e15, 1e15, 1e15};

// Of the first blocks, as the router has it; differs by `seed`.
std::optional<uint64_t> PrefixHashOf(absl::Span<const BlockTrace::Block> path, uint64_t seed);

}  // namespace cairn::bench
