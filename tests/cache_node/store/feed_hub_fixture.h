// FeedHubTest: a hub over a model index of one or four shards, whose messages are pulled one by
// one.
#pragma once

#include <gmock/gmock.h>

#include <variant>

#include "cache_node/store/feed_hub.h"
#include "tests/cache_node/store/model_feed.h"

namespace cairn::node {

inline constexpr size_t kQueueMax = 3000;

inline BlockKey KeyIn(uint32_t shard, uint32_t number) {
  BlockKey key;
  key.bytes[0] = static_cast<uint8_t>(shard);
  for (size_t i = 0; i < 4; ++i) key.bytes[4 + i] = static_cast<uint8_t>(number >> (8 * i));
  return key;
}

class FeedHubTest : public ::testing::Test {
 protected:
  explicit FeedHubTest(uint32_t shards = 1) : index_(shards), hub_(&index_, kQueueMax) {}

  // Puts block `number` (mask 0: removes it) and tells the hub.
  void Change(uint32_t shard, uint32_t number, uint8_t mask = kHostBit,
              PartitionIndex partition = 1) {
    const FeedRecord record{partition, KeyIn(shard, number), mask,
                            mask == 0 ? RemovalReason::kEvicted : RemovalReason::kNone};
    index_.Apply(record);
    hub_.Record(shard, record);
  }
  void Fill(uint32_t shard, uint32_t blocks, PartitionIndex partition = 1) {
    for (uint32_t i = 0; i < blocks; ++i) Change(shard, i, kHostBit, partition);
  }

  template <typename Message>
  Message Expect(WatcherId watcher) {
    FeedMessage message = hub_.Next(watcher);
    EXPECT_TRUE(std::holds_alternative<Message>(message)) << "got kind " << message.index();
    return std::holds_alternative<Message>(message) ? std::get<Message>(std::move(message))
                                                    : Message();
  }
  void PullToIdle(WatcherId watcher) {
    for (int i = 0; i < 100; ++i) {
      if (std::holds_alternative<FeedIdle>(hub_.Next(watcher))) return;
    }
    ADD_FAILURE() << "never idle";
  }

  ModelIndex index_;
  FeedHub hub_;
};

class FourShardFeedHubTest : public FeedHubTest {
 protected:
  FourShardFeedHubTest() : FeedHubTest(4) {}
};

}  // namespace cairn::node
