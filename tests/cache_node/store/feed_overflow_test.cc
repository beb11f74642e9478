// Method: a store over more blocks than a watcher's queue holds, and watchers that sleep while much
// of it leaves; what they believe in the end is compared with the store's own digests.
#include <gmock/gmock.h>

#include "cache_node/store/feed_hub.h"
#include "tests/cache_node/store/model_feed.h"
#include "tests/cache_node/store/test_store.h"

namespace cairn::node {
namespace {

constexpr uint64_t kBlockBytes = 64;
constexpr uint32_t kShards = 64;
constexpr uint32_t kPrompts = 200;
constexpr uint32_t kBlocksPerPrompt = 100;

TestStoreOptions Large() {
  TestStoreOptions options;
  options.store.feed_shards = kShards;
  options.store.watcher_queue_records = 8192;
  options.pool_bytes = 16 * 131072;
  return options;
}

class FeedOverflowTest : public ::testing::Test {
 protected:
  FeedOverflowTest() : t_(Large()), watcher_(kShards) {
    kept_ = t_.Register(TestStore::Shape(kBlockBytes, "kept"));
    retired_ = t_.Register(TestStore::Shape(kBlockBytes, "retired"));
    id_ = t_.store->AddWatcher();
  }

  void Fill(const Fingerprint& fingerprint, uint32_t prompts) {
    t_.Use(fingerprint);
    for (uint32_t i = 1; i <= prompts; ++i) t_.Put(t_.Prompt("t", i, kBlocksPerPrompt));
  }
  // At most `messages`; false when there is nothing more.
  bool Pull(int messages) {
    for (; messages > 0; --messages) {
      const FeedMessage message = t_.store->NextFeedMessage(id_);
      EXPECT_FALSE(std::holds_alternative<FeedCut>(message)) << "the stream ended";
      if (std::holds_alternative<FeedIdle>(message) || std::holds_alternative<FeedCut>(message)) {
        return false;
      }
      if (const auto* batch = std::get_if<FeedBatch>(&message)) watcher_.Take(*batch);
      if (const auto* beat = std::get_if<FeedHeartbeat>(&message)) watcher_.Take(*beat);
    }
    return true;
  }
  size_t BlocksBelieved() const {
    size_t blocks = 0;
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      blocks += watcher_.shard(shard).size();
    }
    return blocks;
  }

  TestStore t_;
  ModelWatcher watcher_;
  Fingerprint kept_;
  Fingerprint retired_;
  WatcherId id_ = 0;
};

TEST_F(FeedOverflowTest, RetireOf20000BlocksDoesNotEndTheStreamOfASlowReader) {
  Fill(kept_, 3);
  Fill(retired_, kPrompts);
  while (Pull(1)) {
  }
  ASSERT_EQ(BlocksBelieved(), 300u + kPrompts * kBlocksPerPrompt);

  const absl::StatusOr<RemovedBlocks> removed = t_.store->RetireNamespace(retired_);
  ASSERT_TRUE(removed.ok());
  ASSERT_EQ(removed->blocks, kPrompts * kBlocksPerPrompt);
  EXPECT_GT(t_.counters.feed_shards_given_up.load(), 0u) << "the queue took it all";
  EXPECT_EQ(t_.counters.watchers_cut.load(), 0u);

  while (Pull(1)) {
  }
  t_.store->QueueHeartbeat(id_);
  const size_t digests = watcher_.digests();
  while (Pull(1)) {
  }
  EXPECT_EQ(watcher_.digests(), digests + kShards) << "each agreed with the store";
  EXPECT_EQ(BlocksBelieved(), 300u);
}

TEST_F(FeedOverflowTest, ReaderSlowerThanTheChangesGetsAllShardsAgainAndAgain) {
  Fill(kept_, 3);
  while (Pull(1)) {
  }
  for (uint32_t round = 1; round <= 6; ++round) {
    const Fingerprint model = t_.Register(TestStore::Shape(kBlockBytes, std::to_string(round)));
    Fill(model, kPrompts / 2);
    Pull(10);
    ASSERT_TRUE(t_.store->RetireNamespace(model).ok());
    t_.store->QueueHeartbeat(id_);
    Pull(10);
  }
  while (Pull(1)) {
  }
  t_.store->QueueHeartbeat(id_);
  const size_t digests = watcher_.digests();
  while (Pull(1)) {
  }
  EXPECT_EQ(watcher_.digests(), digests + kShards);
  EXPECT_EQ(BlocksBelieved(), 300u);
  EXPECT_GT(watcher_.sent_anew(), 0u);
}

}  // namespace
}  // namespace cairn::node
