// SimulatedStore: a store's host tier of so many blocks, with a policy of the store's own, and
// nothing else: it tells the policy what the store would, in the same order, one request after
// another (eviction_policy.h).
//
// A request leases the blocks of its prompt that are there, reserves the rest from the first to the
// last as far as room can be made and the policy admits it, commits them, and ends its lease.
// Children and the request at hand hold blocks, as in the store. Not thread-safe; borrows the
// trace.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cache_node/store/eviction_policy.h"
#include "tests/bench/eviction/block_trace.h"
#include "tests/bench/eviction/hit_counts.h"

namespace cairn::bench {

class SimulatedStore {
 public:
  // REQUIRES: capacity > 0.
  SimulatedStore(const BlockTrace* trace, uint32_t capacity,
                 std::unique_ptr<node::EvictionPolicy> policy);

  // Answers how many blocks it found.
  uint32_t Serve(const BlockTrace::Request& request);
  // All requests of the trace.
  HitCounts ServeAll();

  bool Holds(BlockTrace::Block block) const { return handles_[block] != kAbsent; }
  uint32_t held() const { return held_; }
  uint64_t declined() const { return declined_; }
  uint64_t evicted() const { return evicted_; }
  const node::EvictionPolicy& policy() const { return *policy_; }

 private:
  using Block = BlockTrace::Block;
  static constexpr node::BlockHandle kAbsent = UINT32_MAX;

  node::EvictionPolicy::BlockTraits TraitsOf(uint32_t depth) const;
  uint32_t LeadingHits() const;
  // Reserves blocks of the path from the `hits`th on; the end of those reserved.
  uint32_t Reserve(uint32_t hits);
  bool MakeRoom(const node::EvictionPolicy::BlockTraits& newcomer);
  void Evict(node::BlockHandle handle);

  const BlockTrace* const trace_;
  const std::unique_ptr<node::EvictionPolicy> policy_;
  node::UseStamp stamp_ = 0;
  uint32_t held_ = 0;
  uint64_t declined_ = 0;  // Requests of which a block was,
  uint64_t evicted_ = 0;   // and blocks.

  std::vector<node::BlockHandle> handles_;  // By block; kAbsent.
  std::vector<uint32_t> children_;          // By block: those that are there or reserved.
  std::vector<Block> blocks_;               // By handle.
  std::vector<node::BlockHandle> free_handles_;

  // Of the request at hand.
  std::vector<Block> path_;
  uint32_t hits_ = 0;
  uint32_t present_ = 0;  // Leading blocks that are.
  Block leased_ = BlockTrace::kNone;  // The deepest of its hits: what it holds by itself.
};

}  // namespace cairn::bench
