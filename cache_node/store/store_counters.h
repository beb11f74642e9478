// StoreCounters: what happened in a store, as counters that only rise. Thread-safe; read at scrape.
#pragma once

#include <atomic>
#include <cstdint>

namespace cairn::node {

struct StoreCounters {
  using Counter = std::atomic<uint64_t>;
  Counter lookups{0};
  Counter looked_up_tokens{0};
  Counter hit_tokens{0};
  Counter evicted_blocks{0};
  Counter committed_blocks{0};
  Counter reserved_blocks{0};
  Counter refused_no_space{0};
  Counter refused_quota{0};
  Counter token_collisions{0};  // Other tokens under a stored key.
  Counter key_mismatches{0};
  Counter digest_mismatches{0};  // Written bytes that did not have the writer's digest.
  Counter reported_mismatches{0};
  Counter quarantined_blocks{0};
  Counter expired_tokens{0};
  Counter expired_shares{0};
  Counter watchers_cut{0};
  Counter segment_remakes{0};
};

}  // namespace cairn::node
