// S3FifoPolicy: two queues and a memory of what left. A newcomer enters the small queue, about a
// tenth of the blocks; used more than once there it moves to the main queue when its turn comes,
// else it leaves and its key is remembered, and when it returns it enters the main queue at once.
// The main queue gives each block as many more rounds as it was used, at most three.
//
// As in the paper "FIFO queues are all you need for cache eviction" (2023), but for this: blocks on
// which others hang are passed over until they may go, so a chain leaves from its end; sizes are
// shares of the blocks that are there, since a class does not know how many it may have; and the
// lowest priority goes first. Admits everything. O(log n) a call, amortised; memory: 32 bytes for
// each block of the class at its fullest, 24 for each that may go, about 40 for each remembered.
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
    uint64_t turn = 0;  // Its place in its queue.
    uint8_t priority = kPriorityDefault;
    uint8_t uses = 0;  // Since it entered its queue, at most kUsesMax.
    Queue queue = kSmall;
    bool there = false;
    bool may_go = false;
    bool orphaned = false;
  };
  // The smallest of a queue has its turn.
  struct Turn {
    uint32_t level = 0;  // Not orphaned, then priority.
    BlockHandle block = 0;
    uint64_t turn = 0;

    friend bool operator<(const Turn& a, const Turn& b) {
      if (a.level != b.level) return a.level < b.level;
      if (a.turn != b.turn) return a.turn < b.turn;
      return a.block < b.block;
    }
  };

  static constexpr uint8_t kUsesMax = 3;
  static constexpr uint64_t kSmallShare = 10;  // One in so many blocks.

  static Turn TurnOf(BlockHandle block, const State& state);
  State& Known(BlockHandle block);
  template <typename Change>
  void Rerank(BlockHandle block, Change change);
  // Whose turn it is, in the queue from which a block is to leave now.
  const Turn* Next() const;
  void Remember(uint64_t key);
  bool Forget(uint64_t key);

  std::vector<State> states_;       // By handle.
  absl::btree_set<Turn> turns_[2];  // By queue: of the blocks that may go.
  uint64_t blocks_[2] = {0, 0};     // By queue: all of them.
  uint64_t next_turn_ = 0;

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
