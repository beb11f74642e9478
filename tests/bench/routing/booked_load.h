// BookedLoad: what a router believes that one replica has before it, from what it sent there and
// from the reports on it: what router/booking keeps, by number of request.
//
// Borrows the trace. Not thread-safe.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "router/booking/learned_rate.h"
#include "router/policy/route_snapshot.h"
#include "tests/bench/eviction/block_trace.h"
#include "tests/bench/routing/node_cache.h"

namespace cairn::bench {

class BookedLoad {
 public:
  BookedLoad(const BlockTrace* trace, double prefill_tokens_per_second_prior);

  // The request was sent here: its first `held_blocks` are cached, `cached_tokens` are or are about
  // to be.
  void Book(uint32_t request, uint32_t held_blocks, uint64_t cached_tokens);
  // REQUIRES: booked, for the first time.
  void FirstToken(uint32_t request, uint64_t computed_tokens, double compute_s);
  // REQUIRES: its first token was told.
  void Ended(uint32_t request);

  // Leading blocks that the cache has, `held` of them from the first on, or that booked requests
  // are about to write.
  uint32_t MatchWithComing(absl::Span<const BlockTrace::Block> path, const NodeCache& cache,
                           uint32_t held) const;
  // Fills in load and rate.
  void Show(router::ReplicaView* replica) const;

 private:
  struct Open {
    uint64_t prefill_tokens = 0;  // 0 once they are done.
    uint32_t held_blocks = 0;     // Those that follow are coming.
  };

  // Of the request's blocks that are coming, one writer more or less.
  void CountComing(uint32_t request, uint32_t held_blocks, bool more);

  const BlockTrace* const trace_;
  router::LearnedRate rate_;
  uint64_t prefill_tokens_ = 0;
  uint64_t kv_tokens_ = 0;
  absl::flat_hash_map<uint32_t, Open> open_;                 // By request.
  absl::flat_hash_map<BlockTrace::Block, uint32_t> coming_;  // How many requests write it.
};

}  // namespace cairn::bench
