// FeedTiers: what the feed says of all tiers, from the indexes of host memory, the disk and the
// device.
//
// A block is in one record, whatever tiers it is in. Not thread-safe: under the store's lock.
#pragma once

#include <vector>

#include "cache_node/store/block_index.h"
#include "cache_node/store/device_state.h"
#include "cache_node/store/disk_state.h"
#include "cache_node/store/feed_source.h"

namespace cairn::node {

class FeedTiers final : public FeedSource {
 public:
  // Borrows all.
  FeedTiers(const BlockIndex* host, const DiskState* disk, const DeviceState* device)
      : host_(host), disk_(disk), device_(device) {}

  uint32_t shard_count() const override { return host_->shard_count(); }
  std::vector<FeedRecord> SnapshotShard(uint32_t shard) const override;
  ShardSums SumsOf(uint32_t shard) const override;

 private:
  const BlockIndex* const host_;
  const DiskState* const disk_;
  const DeviceState* const device_;
};

}  // namespace cairn::node
