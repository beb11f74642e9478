// ModelIndex and ModelWatcher: both ends of a feed as plain maps, for tests of what lies between.
#pragma once

#include <gmock/gmock.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cache_node/store/feed_message.h"
#include "cache_node/store/feed_source.h"
#include "common/identity/segment_digest.h"

namespace cairn::node {

// The blocks of one shard: (partition, key) to tier mask.
using ModelShard = std::map<std::pair<PartitionIndex, BlockKey>, uint8_t>;

inline ShardSums SumsOfModel(const ModelShard& shard) {
  ShardSums sums;
  for (const auto& [id, mask] : shard) {
    for (size_t tier = 0; tier < kTierCount; ++tier) {
      if ((mask >> tier & 1) == 0) continue;
      ++sums.tiers[tier].blocks;
      sums.tiers[tier].key_sum += FeedKeyDigest(id.second);
    }
  }
  return sums;
}

inline void ApplyTo(ModelShard* shard, const FeedRecord& record) {
  if (record.tier_mask == 0) {
    shard->erase({record.partition, record.key});
  } else {
    (*shard)[{record.partition, record.key}] = record.tier_mask;
  }
}

class ModelIndex final : public FeedSource {
 public:
  explicit ModelIndex(uint32_t shard_count) : shards_(shard_count) {}

  uint32_t shard_count() const override { return static_cast<uint32_t>(shards_.size()); }
  std::vector<FeedRecord> SnapshotShard(uint32_t shard) const override {
    std::vector<FeedRecord> records;
    for (const auto& [id, mask] : shards_[shard]) {
      records.push_back({id.first, id.second, mask, RemovalReason::kNone});
    }
    return records;
  }
  ShardSums SumsOf(uint32_t shard) const override { return SumsOfModel(shards_[shard]); }

  void Apply(const FeedRecord& record) { ApplyTo(&shards_[ShardOf(record.key)], record); }
  uint32_t ShardOf(const BlockKey& key) const { return key.bytes[0] % shard_count(); }
  const ModelShard& shard(uint32_t shard) const { return shards_[shard]; }

 private:
  std::vector<ModelShard> shards_;
};

// Believes what it is told, and fails the test when that breaks the feed's rules.
class ModelWatcher {
 public:
  explicit ModelWatcher(uint32_t shard_count) : shards_(shard_count) {}

  void Take(const FeedBatch& batch) {
    Shard& shard = shards_.at(batch.shard);
    EXPECT_EQ(batch.sequence, ++shard.sequence) << "shard " << batch.shard;
    EXPECT_TRUE(batch.replaces || shard.started) << "withheld records leaked";
    EXPECT_TRUE(batch.replaces || !batch.records.empty());
    sent_anew_ += size_t{batch.replaces && shard.started};
    EXPECT_TRUE(batch.replaces || batch.more == false || !shard.complete);
    if (batch.replaces) shard.blocks.clear();
    for (const FeedRecord& record : batch.records) {
      EXPECT_EQ(record.partition, batch.records.front().partition);
      ApplyTo(&shard.blocks, record);
    }
    shard.started = true;
    shard.complete = !batch.more;
  }

  // The digests say what this watcher holds at this very point.
  void Take(const FeedHeartbeat& heartbeat) {
    ++heartbeats_;
    for (const FeedHeartbeat::Shard& entry : heartbeat.shards) {
      const Shard& shard = shards_.at(entry.shard);
      EXPECT_TRUE(shard.complete) << "a digest of shard " << entry.shard << ", which is not here";
      EXPECT_EQ(entry.sequence, shard.sequence);
      EXPECT_EQ(entry.sums, SumsOfModel(shard.blocks)) << "shard " << entry.shard;
      ++digests_;
    }
  }

  // Spoils what it holds of a shard, and expects it from the start.
  void Lose(uint32_t shard) {
    shards_.at(shard).blocks.clear();
    shards_.at(shard).started = false;
    shards_.at(shard).complete = false;
  }

  const ModelShard& shard(uint32_t shard) const { return shards_.at(shard).blocks; }
  bool complete(uint32_t shard) const { return shards_.at(shard).complete; }
  size_t heartbeats() const { return heartbeats_; }
  size_t digests() const { return digests_; }
  // Snapshots that nobody asked for.
  size_t sent_anew() const { return sent_anew_; }

 private:
  struct Shard {
    uint64_t sequence = 0;
    bool started = false;
    bool complete = false;
    ModelShard blocks;
  };
  std::vector<Shard> shards_;
  size_t heartbeats_ = 0;
  size_t digests_ = 0;
  size_t sent_anew_ = 0;
};

}  // namespace cairn::node
