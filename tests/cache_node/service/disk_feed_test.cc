// Method: a watcher that rebuilds from the feed where each block is, tier by tier, while blocks are
// written, spilled, pushed out, loaded and lost with their disk; its sums are the heartbeat's.
#include <gmock/gmock.h>

#include <array>
#include <map>
#include <thread>

#include "cache_node/store/feed_source.h"
#include "common/identity/segment_digest.h"
#include "common/rpc/id_conversion.h"
#include "tests/cache_node/service/node_fixture.h"
#include "tests/testing/memory_disk_tier.h"

namespace cairn::node {
namespace {

constexpr size_t kPoolBlocks = 64;
constexpr size_t kPromptBlocks = 8;

class DiskFeedTest : public NodeFixture {
 protected:
  DiskFeedTest() {
    NodeConfig config = SmallConfig();
    config.host_memory = ByteSize::MiB(1);
    config.disk.dir = "memory";
    config.disk.bytes = ByteSize::MiB(256);
    config.disk.spill_file_age = absl::Milliseconds(5);
    config.heartbeat = absl::Milliseconds(20);
    StartNode(config, &disk_);
    context_ = Context();
    feed_ = stub_->WatchBlocks(context_.get());
  }
  ~DiskFeedTest() override {
    context_->TryCancel();
    feed_->Finish();
    feed_ = nullptr;
    stub_ = nullptr;
    node_ = nullptr;
  }

  // Until `condition` holds at a heartbeat; every heartbeat agrees with what was told before.
  template <typename Condition>
  void Watch(const Condition& condition) {
    v1::WatchBlocksResponse message;
    while (feed_->Read(&message)) {
      if (message.has_batch()) Take(message.batch());
      if (!message.has_heartbeat()) continue;
      for (const v1::ShardDigest& digest : message.heartbeat().shards()) Compare(digest);
      if (message.heartbeat().shards_size() == kShards && condition()) return;
    }
    ADD_FAILURE() << "the feed ended";
  }
  size_t CountOf(uint8_t mask) const {
    size_t count = 0;
    for (const auto& [key, tiers] : blocks_) count += tiers == mask ? 1 : 0;
    return count;
  }
  uint8_t MaskOf(const BlockKey& key) const {
    const auto it = blocks_.find(std::string(key.view()));
    return it == blocks_.end() ? 0 : it->second;
  }

  static constexpr int kShards = 64;
  testing::MemoryDiskTier disk_{uint64_t{192} << 20};

 private:
  static uint32_t ShardOf(const std::string& key) { return static_cast<uint8_t>(key[0]) % kShards; }

  void Take(const v1::BlockBatch& batch) {
    if (batch.replaces()) {
      std::erase_if(blocks_, [&](const auto& one) { return ShardOf(one.first) == batch.shard(); });
    }
    for (size_t i = 0; i < batch.tier_masks().size(); ++i) {
      const std::string key = batch.keys().substr(16 * i, 16);
      const auto mask = static_cast<uint8_t>(batch.tier_masks()[i]);
      if (mask == 0) {
        blocks_.erase(key);
      } else {
        blocks_[key] = mask;
      }
    }
  }
  void Compare(const v1::ShardDigest& digest) {
    std::array<ShardSums::TierSum, kTierCount> told;
    for (const v1::TierDigest& tier : digest.tiers()) {
      told[static_cast<size_t>(tier.tier()) - 1] = {tier.blocks(), tier.key_sum()};
    }
    std::array<ShardSums::TierSum, kTierCount> seen;
    for (const auto& [key, mask] : blocks_) {
      if (ShardOf(key) != digest.shard()) continue;
      for (size_t tier = 0; tier < kTierCount; ++tier) {
        if ((mask >> tier & 1) == 0) continue;
        ++seen[tier].blocks;
        seen[tier].key_sum += FeedKeyDigest(*BlockKey::FromBytes(key));
      }
    }
    EXPECT_EQ(told, seen) << "shard " << digest.shard();
  }

  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WatchBlocksRequest, v1::WatchBlocksResponse>> feed_;
  std::map<std::string, uint8_t> blocks_;
};

TEST_F(DiskFeedTest, EachMoveBetweenTheTiersIsTold) {
  const TestPrompt first = MakePrompt(1, kPromptBlocks);
  Put(first);
  Watch([&] { return CountOf(kHostBit | kDiskBit) == kPromptBlocks; });
  // Pushed out of memory by others, each of which is on disk before the next comes.
  size_t put = kPromptBlocks;
  for (uint32_t seed = 2; put < 2 * kPoolBlocks; ++seed, put += kPromptBlocks) {
    Put(MakePrompt(seed, kPromptBlocks));
    Watch([&] { return CountOf(kHostBit | kDiskBit) + CountOf(kDiskBit) == put + kPromptBlocks; });
  }
  Watch([&] { return MaskOf(first.keys[0]) == kDiskBit; });
  v1::LookupRequest request = LookupRequestOf(first);
  request.set_promote(true);
  v1::LookupResponse response;
  ASSERT_TRUE(stub_->Lookup(Context().get(), request, &response).ok());
  Watch([&] { return MaskOf(first.keys[kPromptBlocks - 1]) == (kHostBit | kDiskBit); });
  v1::DeleteRequest remove;
  remove.set_fingerprint(fingerprint_);
  remove.set_keys(KeysToProto(first.keys));
  v1::DeleteResponse removed;
  ASSERT_TRUE(stub_->Delete(Context().get(), remove, &removed).ok());
  Watch([&] { return MaskOf(first.keys[0]) == 0; });
  for (const BlockKey& key : first.keys) EXPECT_EQ(MaskOf(key), 0);
}

}  // namespace
}  // namespace cairn::node
