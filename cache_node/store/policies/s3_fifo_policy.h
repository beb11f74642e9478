// S3FifoPolicy: two queues and a memory of what left. A newcomer enters the small queue, about a
// tenth of the blocks; used more than once there it moves to the main queue when its turn comes,
// else it leaves and its key is remembered, and when it returns it enters the main queue at once.
// The main queue gives each block as many more rounds as it was used, at most three.
//
// As in the paper "FIFO queues are all you need for cache eviction" (2023), but for this: of one
// request the deepest block has its turn first; a block on which a later one hangs when its turn
// comes in the small queue moves to the main one, and is passed over there; sizes are shares of the
// blocks that are there, since a class does not know how many it may have; and the lowest priority
// goes first. Admits everything. O(log n) a call, amortised; memory: 40 bytes for each block of the
// class at its fullest, 24 for each in the small queue and each that may go, about 50 for each
// remembered.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "cache_node/store/eviction_policy.h"

namespace cairn::node {

class S3FifoPolicy final : public EvictionPolicy {
 public:
  absl::string_view name() const override { return "s3_fifo"; }
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
  enum Queue : uint8_t { kSmall = 0, kMain = 1 };
  struct State {
    uint64_t key = 0;
    UseStamp stamp = 0;
    UseStamp turn = 0;  // When it entered its queue.
    uint32_t depth = 0;
    uint8_t priority = kPriorityDefault;
    uint8_t uses = 0;  // Since it entered its queue, at most kUsesMax.
    Queue queue = kSmall;
    bool there = false;
    bool may_go = false;
    bool orphaned = false;
  };
  // The smallest of a queue has its turn.
  struct Turn {
    uint64_t level = 0;  // Not orphaned, then priority.
    UseStamp turn = 0;
    uint64_t place = 0;  // The deepest first, then the handle.

    friend auto operator<=>(const Turn&, const Turn&) = default;
    BlockHandle block() const { return static_cast<BlockHandle>(place); }
  };

  static constexpr uint8_t kUsesMax = 3;
  static constexpr uint64_t kSmallShare = 10;  // One in so many blocks.

  static Turn TurnOf(BlockHandle block, const State& state);
  State& Known(BlockHandle block);
  template <typename Change>
  void Rerank(BlockHandle block, Change change);
  // Whose turn it is, in the queue from which a block is to leave now.
  const Turn* Next() const;
  void MoveToMain(BlockHandle block, uint8_t uses);
  // Those in the small queue whose turn came before and that may not go: whether there were any.
  bool PassHeld(const Turn& next);
  void Remember(uint64_t key);
  bool Forget(uint64_t key);

  absl::btree_set<Turn>* OrderOf(const State& state);

  std::vector<State> states_;       // By handle.
  absl::btree_set<Turn> turns_[2];  // By queue: of the blocks that may go.
  absl::btree_set<Turn> held_;      // Of those in the small queue that may not.
  uint64_t blocks_[2] = {0, 0};     // By queue: all of them.
  UseStamp now_ = 0;                // The newest of any call.

  // Keys that left the small queue, oldest first; those that returned are in the order only.
  absl::flat_hash_map<uint64_t, uint64_t> left_;  // Key to when.
  std::deque<std::pair<uint64_t, uint64_t>> left_order_;
  uint64_t next_left_ = 0;
};

class S3FifoPolicyFactory final : public EvictionPolicyFactory {
 public:
  std::unique_ptr<EvictionPolicy> Make() const override { return std::make_unique<S3FifoPolicy>(); }
};

}  // namespace cairn::node
