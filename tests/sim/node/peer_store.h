// PeerStore: what another simulated node holds, as a PullSource: a segment a frame, read in place.
//
// After each frame it asks whether the transfer goes on: what breaks it, and what else happens in
// the middle of it, is for its owner to do. Used within one event. Borrows the store.
#pragma once

#include <functional>

#include "cache_node/pull/pull_source.h"
#include "cache_node/store/block_store.h"

namespace cairn::sim {

class PeerStore final : public node::PullSource {
 public:
  // Of the block whose segment has just been taken. Not OK breaks the transfer.
  using AfterFrame = std::function<absl::Status(const BlockKey& key)>;

  PeerStore(node::BlockStore* store, AfterFrame after_frame)
      : store_(store), after_frame_(std::move(after_frame)) {}

  absl::StatusOr<node::BlockRecords> Describe(const node::PullTarget& target,
                                              absl::Span<const BlockKey> keys) override;
  absl::Status Promote(const node::PullTarget&, absl::Span<const BlockKey>) override {
    return absl::OkStatus();
  }
  absl::Status Fetch(const node::PullTarget& target, absl::Span<const BlockKey> keys,
                     Sink sink) override;
  // Damage is found by whoever reads it there.
  void ReportMismatch(const node::PullTarget&, const BlockKey&, const SegmentId&) override {}

 private:
  absl::Status SendBlock(const node::BlockPin& pin, const PayloadMap& map, size_t block,
                         const BlockKey& key, Sink sink) const;

  node::BlockStore* const store_;
  const AfterFrame after_frame_;
};

}  // namespace cairn::sim
