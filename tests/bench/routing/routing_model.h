// RoutingModel: a trace's requests sent by a policy of the router's own to simulated nodes that
// prefill and do nothing else; for ranking policies, not for promising seconds.
//
// - A node computes the tokens that its cache lacks, one request after another, at one speed: that
//   at which all nodes together would be 70 % busy with hits as good as those of an unlimited
//   cache. What it computes can be hit at once; what is in the cache costs nothing.
// - A wait is that of a request from its arrival to the end of its own compute.
// - hit: blocks found where the request went over blocks asked for. busiest_over_mean: computed
//   tokens of the busiest node over the mean. p99: sorted[floor(0.99 n)].
// - Ties and hashes differ by seed: of each figure the median over the seeds.
// - A router's view of caches may be late, and lose batches (stale_view.h); of queues it is exact.
//   Several routers take turns, and each knows only what it sent itself before the feed says it.
#pragma once

#include <cstdint>

#include "router/policy/route_policy.h"
#include "tests/bench/eviction/block_trace.h"

namespace cairn::bench {

struct RoutingOptions {
  uint32_t nodes = 8;
  uint32_t capacity = 0;  // Blocks a node.
  double stale_s = 0;
  double lost_batches = 0;  // Share of them.
  uint32_t routers = 1;
  uint32_t seeds = 9;
};

struct RoutingFigures {
  double hit = 0;
  double token_hit = 0;
  double busiest_over_mean = 0;
  double mean_wait_s = 0;
  double p50_wait_s = 0;
  double p99_wait_s = 0;
};

// Tokens a second of one node, as above. The trace is as long as from its start, which of a part of
// one (BlockTraceOptions::source) is not its first request, to its last request.
double NodeTokensPerSecond(const BlockTrace& trace, uint32_t nodes);

// REQUIRES: a trace with requests; nodes, capacity, routers and seeds above zero.
RoutingFigures SimulateRouting(const BlockTrace& trace, const router::RoutePolicy& policy,
                               const RoutingOptions& options);

}  // namespace cairn::bench
