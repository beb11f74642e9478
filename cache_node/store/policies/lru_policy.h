// LruPolicy: of the blocks of the lowest priority the least recently used goes first; of one
// request's blocks the deepest first; orphans before all.
//
// Admits everything, learns nothing. A use with an older stamp than the last changes nothing. Only
// blocks that may go are ordered, and the first of them is kept apart from the rest: so the use of
// a block that others hang on is one write, and a chain that leaves from its end costs O(1) a
// block; else O(log n). Memory: 16 bytes for each block of the class at its fullest, and 24 for
// each that may go.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/btree_set.h"
#include "cache_node/store/eviction_policy.h"

namespace cairn::node {

class LruPolicy final : public EvictionPolicy {
 public:
  absl::string_view name() const override { return "lru"; }
  bool Admits(const BlockTraits&, UseStamp, const Victim*) override { return true; }
  void Inserted(BlockHandle block, const BlockTraits& traits, UseStamp stamp) override;
  void Used(BlockHandle block, UseStamp stamp) override;
  void MayGo(BlockHandle block) override;
  void MustStay(BlockHandle block) override;
  void Orphaned(BlockHandle block, bool orphaned) override;
  void PriorityChanged(BlockHandle block, uint8_t priority) override;
  void Removed(BlockHandle block) override;
  std::optional<Victim> NextVictim() override;
  uint64_t MemoryBytes() const override;

 private:
  struct State {
    UseStamp stamp = 0;
    uint32_t depth = 0;
    uint8_t priority = kPriorityDefault;
    bool there = false;
    bool may_go = false;
    bool orphaned = false;
  };
  // The smallest goes first.
  struct Rank {
    uint64_t level = 0;  // Not orphaned, then priority.
    UseStamp stamp = 0;
    uint64_t place = 0;  // The deepest first, then the handle.

    friend auto operator<=>(const Rank&, const Rank&) = default;
  };

  static Rank RankOf(BlockHandle block, const State& state);
  State& Known(BlockHandle block);
  void PutInOrder(BlockHandle block, const State& state);
  void TakeFromOrder(BlockHandle block, const State& state);
  template <typename Change>
  void Rerank(BlockHandle block, Change change);

  std::vector<State> states_;  // By handle.
  // Together the ranks of the states that may go, and no other. The first, if any, is before all
  // of the rest.
  std::optional<Rank> first_;
  absl::btree_set<Rank> rest_;
};

class LruPolicyFactory final : public EvictionPolicyFactory {
 public:
  std::unique_ptr<EvictionPolicy> Make() const override { return std::make_unique<LruPolicy>(); }
};

}  // namespace cairn::node
