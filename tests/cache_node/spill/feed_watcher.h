// FeedWatcher: believes what it is told of a store's blocks, and holds its picture against the
// digests of each heartbeat.
#pragma once

#include <gmock/gmock.h>

#include <map>
#include <variant>

#include "cache_node/store/block_store.h"
#include "common/identity/segment_digest.h"

namespace cairn::node {

class FeedWatcher {
 public:
  explicit FeedWatcher(BlockStore* store) : store_(store), id_(store->AddWatcher()) {}

  // All that there is now, and what a heartbeat says of it.
  void Pull() {
    store_->QueueHeartbeat(id_);
    while (true) {
      const FeedMessage message = store_->NextFeedMessage(id_);
      if (std::holds_alternative<FeedIdle>(message)) return;
      ASSERT_FALSE(std::holds_alternative<FeedCut>(message));
      if (const auto* batch = std::get_if<FeedBatch>(&message)) Take(*batch);
      if (const auto* beat = std::get_if<FeedHeartbeat>(&message)) Check(*beat);
    }
  }
  uint8_t TiersOf(const BlockKey& key) {
    for (const auto& [shard, picture] : shards_) {
      if (auto it = picture.find(key); it != picture.end()) return it->second;
    }
    return 0;
  }
  RemovalReason ReasonOf(const BlockKey& key) { return reasons_[key]; }

 private:
  using Picture = std::map<BlockKey, uint8_t>;

  void Take(const FeedBatch& batch) {
    Picture& picture = shards_[batch.shard];
    if (batch.replaces) picture.clear();
    for (const FeedRecord& record : batch.records) {
      reasons_[record.key] = record.reason;
      if (record.tier_mask == 0) {
        picture.erase(record.key);
      } else {
        picture[record.key] = record.tier_mask;
      }
    }
  }
  void Check(const FeedHeartbeat& beat) {
    for (const FeedHeartbeat::Shard& shard : beat.shards) {
      ShardSums sums;
      for (const auto& [key, mask] : shards_[shard.shard]) {
        for (size_t tier = 0; tier < kTierCount; ++tier) {
          if ((mask >> tier & 1) == 0) continue;
          ++sums.tiers[tier].blocks;
          sums.tiers[tier].key_sum += FeedKeyDigest(key);
        }
      }
      EXPECT_EQ(sums, shard.sums) << "shard " << shard.shard;
    }
  }

  BlockStore* const store_;
  const WatcherId id_;
  std::map<uint32_t, Picture> shards_;
  std::map<BlockKey, RemovalReason> reasons_;
};

}  // namespace cairn::node
