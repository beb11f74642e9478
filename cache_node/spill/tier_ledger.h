// TierLedger: the store's DurableLedger over a disk tier. Thread-safe; borrows the tier.
#pragma once

#include "cache_node/store/durable_ledger.h"
#include "cache_node/tiers/disk/disk_tier.h"

namespace cairn::node {

class TierLedger final : public DurableLedger {
 public:
  explicit TierLedger(DiskTier* tier) : tier_(tier) {}

  absl::Status PutFence(const DiskTier::Fence& fence) override { return tier_->PutFence(fence); }
  absl::Status MarkDead(absl::Span<const DiskPlace> places) override {
    return tier_->MarkDead(places);
  }

 private:
  DiskTier* const tier_;
};

}  // namespace cairn::node
