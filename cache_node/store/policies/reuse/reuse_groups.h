// ReuseGroups: blocks that one request touched alike are one group: they have one age, one cell and
// one worth, so that ageing, learning and ranking cost something for each group, not each block.
//
// A group counts the blocks that are there and those that are away (evicted from its end, or
// declined). One with none there is a ghost: it is remembered by the key of its first block,
// bounded by kGhostsMax or as many as have blocks, the oldest forgotten first, so that what is
// learnt is not only about what was kept.
//
// Every group is in the list of its age bin, oldest first, and moves on as requests pass; one that
// has blocks which may go is in the order of ranks as well, a ghost in the order of ghosts. Ids are
// reused; a serial tells a group from an earlier one of its id.
//
// Not thread-safe. Belongs to one policy. O(1) a call, O(log n) where the order of ranks changes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "cache_node/store/eviction_policy.h"
#include "cache_node/store/policies/reuse/reuse_model.h"
#include "common/base/check.h"

namespace cairn::node {

using GroupId = uint32_t;
inline constexpr GroupId kNoGroup = UINT32_MAX;

struct ReuseGroup {
  // What ageing reads, together. Kept by ReuseGroups.
  uint64_t touched_at = 0;  // In the model's time.
  GroupId age_before = kNoGroup, age_after = kNoGroup;
  ReuseModel::Cell cell = 0;
  ReuseModel::Worth worth = 0;  // By which it is in the order,
  bool ranked = false;          // if it is.
  uint8_t age_bin = 0;
  bool alive = false;
  bool ghost = false;

  bool orphaned = false;
  uint8_t priority = kPriorityDefault;
  ReuseFeatures features;
  BlockHandle may_go = kNoBlock;  // The last block of it that may go; others hang on it.
  uint32_t blocks = 0;            // That are there.
  uint32_t away = 0;
  uint32_t prompt_blocks = 0;                             // Of the request.
  GroupId rank_before = kNoGroup, rank_after = kNoGroup;  // Or among ghosts.
  uint64_t serial = 0;                                    // Of its making: rises.
  uint64_t request = 0;      // Serial of the request that touched it last (reuse_requests.h).
  uint64_t hit_counted = 0;  // Serial of the last request whose hit was counted.
  uint64_t away_key = 0;     // Of the first block that is away.
  UseStamp stamp = 0;
  GroupId use_before = kNoGroup, use_after = kNoGroup;
  bool in_use_order = false;
};

class ReuseGroups {
 public:
  // Or as many as there are groups with blocks, if those are more.
  static constexpr size_t kGhostsMax = 4096;

  // Groups that one Advance moves on, and that it ranks anew. Many may be due at once, say all that
  // were brought without a lookup between; those behind wait for the next.
  static constexpr size_t kMovesMax = 1024;

  explicit ReuseGroups(ReuseModel* model) : model_(model) {}

  // Made at the model's present, for the caller to fill from `orphaned` on, but for `serial` and
  // the order.
  GroupId Make();
  // One like it for blocks of it that are of another priority, or orphaned.
  GroupId MakeBeside(GroupId group);
  ReuseGroup& At(GroupId group) {
    CAIRN_CHECK(group < groups_.size() && groups_[group].alive);
    return groups_[group];
  }
  bool IsStill(GroupId group, uint64_t serial) const;
  void Drop(GroupId group);

  // The model's time rose: groups grow older, and some are ranked anew. At most kMovesMax of each.
  void Advance();

  // Its blocks that may go, priority, orphaned or cell changed.
  void Rank(GroupId group);
  // Who is first to go.
  std::optional<GroupId> First() const;

  // A block of it came, or left.
  void AddBlock(GroupId group);
  void TakeBlock(GroupId group);
  // Of the group with blocks that was used least recently (nearly: by when its first block came).
  std::optional<UseStamp> OldestStamp() const;

  // No block of it is there, some are away.
  void BecomeGhost(GroupId group);
  void NoLongerGhost(GroupId group);
  std::optional<GroupId> GhostOf(uint64_t key) const;

  // Counts a hit of one request that came at a time of the model, once.
  void CountHit(GroupId group, uint64_t request, uint64_t came_at);

  uint64_t MemoryBytes() const;

 private:
  struct List {
    GroupId first = kNoGroup;
    GroupId last = kNoGroup;
  };

  // The groups of one level (orphans below all priorities), by worth.
  struct Level {
    static constexpr size_t kWordBits = 64;
    std::array<List, ReuseModel::kWorthMax + 1> lists;
    std::array<uint64_t, ReuseModel::kWorthMax / kWordBits + 1> filled{};  // Bits: lists with any.
    size_t groups = 0;

    size_t FirstFilled() const;
  };

  static uint16_t LevelOf(const ReuseGroup& group);
  void AppendByAge(GroupId group, uint8_t bin);
  void TakeFromAge(GroupId group);
  void AppendInOrder(GroupId group, List* list);
  void TakeFromOrder(GroupId group, List* list);
  void TakeFromRanks(GroupId group);
  // Behind `after`, or as the last.
  void PutInUseOrder(GroupId group, GroupId after);
  void TakeFromUseOrder(GroupId group);
  size_t OlderBin(ReuseModel::Cell cell, size_t bin, uint64_t age);
  void RankSomeAnew();
  size_t GhostsMax() const;

  ReuseModel* const model_;
  std::vector<ReuseGroup> groups_;
  std::vector<GroupId> free_;
  uint64_t next_serial_ = 1;
  std::array<List, kReuseAgeBins> by_age_;
  absl::btree_map<uint16_t, std::unique_ptr<Level>> levels_;  // Empty: the only one.
  List by_use_;                                               // Those with blocks.
  List ghosts_;
  absl::flat_hash_map<uint64_t, GroupId> ghost_keys_;
  size_t cursor_ = 0;  // Of RankSomeAnew.
};

}  // namespace cairn::node
