// ReusePolicy: keeps the blocks that are worth most for the time that they will be held, by what it
// learns online about when blocks like them are used again (reuse_model.h). The block of least
// worth goes first, and a newcomer that is worth less than it is declined.
//
// Classed by: how often the block was asked for, how often its prompt was continued, how much new
// the last request brought, how long ago the turn before was; blocks that one request touched alike
// are ranked as one (reuse_groups.h). Orphans go before all, then lower priorities.
//
// Each class learns and counts requests for itself; a new one begins with a little of what all of
// its factory learnt. Not thread-safe. A call is O(1) but for the order of ranks, O(log n) a group.
// Memory: 32 bytes a block of the class at its fullest, about 150 a group, of which as many hold no
// block as ReuseGroups::kGhostsMax says, and about 300 for each of the last ReuseRequests::kKept
// requests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cache_node/store/eviction_policy.h"
#include "cache_node/store/policies/reuse/reuse_groups.h"
#include "cache_node/store/policies/reuse/reuse_model.h"
#include "cache_node/store/policies/reuse/reuse_requests.h"

namespace cairn::node {

class ReusePolicy final : public EvictionPolicy {
 public:
  // `all`: what its own model begins with and teaches.
  explicit ReusePolicy(std::shared_ptr<ReuseModel> all);

  absl::string_view name() const override { return "reuse"; }
  void Missed(const BlockTraits& block, UseStamp stamp) override;
  bool Admits(const BlockTraits& newcomer, UseStamp stamp, const Victim* displaced) override;
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
  struct Block {
    uint64_t key = 0;
    GroupId group = kNoGroup;  // None: the handle is not in use.
    uint32_t depth = 0;
    BlockHandle may_go_before = kNoBlock;
    BlockHandle may_go_after = kNoBlock;
    uint8_t touches = 0;
    bool may_go = false;
  };

  Block& Known(BlockHandle block);
  void Hold(BlockHandle block, GroupId group);
  void Release(BlockHandle block);
  void LinkMayGo(BlockHandle block);
  void UnlinkMayGo(BlockHandle block);
  void MoveBeside(BlockHandle block, uint8_t priority, bool orphaned);

  ReuseRequest* BeginRequest(UseStamp stamp);
  void Precede(ReuseRequest* request, const ReuseGroup& before);
  uint8_t TouchesOf(ReuseRequest* request, const BlockTraits& block);
  void Settle(ReuseRequest* request);
  // Of the request that brings a block. Not for a lookup.
  ReuseRequest* RequestOf(const BlockTraits& newcomer, UseStamp stamp);
  ReuseFeatures FeaturesOf(const ReuseRequest& request, const BlockTraits& newcomer,
                           const MissedRun* run) const;
  GroupId GroupFor(ReuseRequest* request, const ReuseFeatures& features, uint8_t priority,
                   bool orphaned);
  GroupId MakeGroup(ReuseRequest* request, const ReuseFeatures& features, uint8_t priority,
                    bool orphaned);

  ReuseModel model_;
  ReuseGroups groups_;
  ReuseRequests requests_;
  std::vector<Block> blocks_;  // By handle.

  // The group that MoveBeside made last, and of which.
  GroupId beside_ = kNoGroup;
  uint64_t beside_serial_ = 0;
  uint64_t beside_of_serial_ = 0;
};

class ReusePolicyFactory final : public EvictionPolicyFactory {
 public:
  ReusePolicyFactory() : all_(std::make_shared<ReuseModel>()) {}
  std::unique_ptr<EvictionPolicy> Make() const override {
    return std::make_unique<ReusePolicy>(all_);
  }

 private:
  // Shared with the policies: in a store's end, who goes first is not theirs to know.
  const std::shared_ptr<ReuseModel> all_;
};

}  // namespace cairn::node
