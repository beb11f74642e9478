// KeepingPolicy: an LRU that declines each newcomer for which another would leave, and writes down
// what it is told of misses.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "cache_node/store/policies/lru_policy.h"

namespace cairn::node {

struct KeepingLog {
  std::vector<std::pair<EvictionPolicy::BlockTraits, UseStamp>> missed;
  std::vector<std::pair<EvictionPolicy::BlockTraits, UseStamp>> inserted;
  std::vector<UseStamp> used;
  size_t missed_before_uses = 0;  // When a block was used last.
  size_t declined = 0;
};

class KeepingPolicy final : public EvictionPolicy {
 public:
  // Borrows the log.
  explicit KeepingPolicy(KeepingLog* log) : log_(log) {}

  absl::string_view name() const override { return "keeping"; }
  void Missed(const BlockTraits& block, UseStamp stamp) override {
    log_->missed.emplace_back(block, stamp);
  }
  bool Admits(const BlockTraits&, UseStamp, const Victim* displaced) override {
    log_->declined += displaced != nullptr ? 1 : 0;
    return displaced == nullptr;
  }
  void Inserted(BlockHandle block, const BlockTraits& traits, UseStamp stamp) override {
    log_->inserted.emplace_back(traits, stamp);
    lru_.Inserted(block, traits, stamp);
  }
  void Used(BlockHandle block, UseStamp stamp) override {
    log_->used.push_back(stamp);
    log_->missed_before_uses = log_->missed.size();
    lru_.Used(block, stamp);
  }
  void MayGo(BlockHandle block) override { lru_.MayGo(block); }
  void MustStay(BlockHandle block) override { lru_.MustStay(block); }
  void Orphaned(BlockHandle block, bool orphaned) override { lru_.Orphaned(block, orphaned); }
  void PriorityChanged(BlockHandle block, uint8_t priority) override {
    lru_.PriorityChanged(block, priority);
  }
  void Removed(BlockHandle block) override { lru_.Removed(block); }
  std::optional<Victim> NextVictim() override { return lru_.NextVictim(); }

 private:
  KeepingLog* const log_;
  LruPolicy lru_;
};

class KeepingPolicyFactory final : public EvictionPolicyFactory {
 public:
  explicit KeepingPolicyFactory(KeepingLog* log) : log_(log) {}
  std::unique_ptr<EvictionPolicy> Make() const override {
    return std::make_unique<KeepingPolicy>(log_);
  }

 private:
  KeepingLog* const log_;
};

}  // namespace cairn::node
