// LruPolicy: of the blocks of the lowest priority the least recently used goes first; of one
// request's blocks the deepest first; orphans before all.
//
// Admits everything. O(log n) a call; memory for each block that it knows, so that a thousand slot
// classes cost no more than one. A use with an older stamp than the last changes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "cache_node/store/eviction_policy.h"

namespace cairn::node {

class LruPolicy final : public EvictionPolicy {
 public:
  absl::string_view name() const override { return "lru"; }
  bool Admits(const BlockTraits&) const override { return true; }
  void Inserted(BlockHandle block, const BlockTraits& traits, UseStamp stamp) override;
  void Used(BlockHandle block, UseStamp stamp) override;
  void MayGo(BlockHandle block) override;
  void MustStay(BlockHandle block) override;
  void Orphaned(BlockHandle block, bool orphaned) override;
  void PriorityChanged(BlockHandle block, uint8_t priority) override;
  void Removed(BlockHandle block) override;
  std::optional<Victim> NextVictim() override;

 private:
  struct State {
    bool may_go = false;
    bool orphaned = false;
    uint8_t priority = kPriorityDefault;
    uint32_t depth = 0;
    UseStamp stamp = 0;
  };
  // (not orphaned, priority, stamp, ~depth, handle): the smallest goes first.
  using Rank = std::tuple<bool, uint8_t, UseStamp, uint32_t, BlockHandle>;

  static Rank RankOf(BlockHandle block, const State& state);
  State& Known(BlockHandle block);
  template <typename Change>
  void Rerank(BlockHandle block, Change change);

  absl::flat_hash_map<BlockHandle, State> states_;
  absl::btree_set<Rank> may_go_;  // Holds the rank of each state with may_go, and no other.
};

class LruPolicyFactory final : public EvictionPolicyFactory {
 public:
  std::unique_ptr<EvictionPolicy> Make() const override { return std::make_unique<LruPolicy>(); }
};

}  // namespace cairn::node
