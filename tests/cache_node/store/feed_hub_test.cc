// A hub over a model index; messages are pulled one by one and looked at.
#include "cache_node/store/feed_hub.h"

#include "tests/cache_node/store/feed_hub_fixture.h"

namespace cairn::node {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(FeedHubTest, SnapshotComesFirstAndThenLiveRecords) {
  Fill(0, 2);
  const WatcherId watcher = hub_.Add({});
  const auto snapshot = Expect<FeedBatch>(watcher);
  EXPECT_EQ(snapshot.sequence, 1u);
  EXPECT_TRUE(snapshot.replaces);
  EXPECT_FALSE(snapshot.more);
  EXPECT_EQ(snapshot.records.size(), 2u);
  Expect<FeedIdle>(watcher);

  Change(0, 1, 0);
  const auto live = Expect<FeedBatch>(watcher);
  EXPECT_EQ(live.sequence, 2u);
  EXPECT_FALSE(live.replaces);
  ASSERT_EQ(live.records.size(), 1u);
  EXPECT_EQ(live.records[0].key, KeyIn(0, 1));
  EXPECT_EQ(live.records[0].tier_mask, 0);
  EXPECT_EQ(live.records[0].reason, RemovalReason::kEvicted);
  Expect<FeedIdle>(watcher);
}

TEST_F(FeedHubTest, EmptyShardIsOneBatchThatReplacesWithNothing) {
  const WatcherId watcher = hub_.Add({});
  const auto snapshot = Expect<FeedBatch>(watcher);
  EXPECT_TRUE(snapshot.replaces);
  EXPECT_FALSE(snapshot.more);
  EXPECT_THAT(snapshot.records, IsEmpty());
  Expect<FeedIdle>(watcher);
}

TEST_F(FourShardFeedHubTest, RecordsOfAShardNotYetSentAreWithheld) {
  const WatcherId watcher = hub_.Add({});
  EXPECT_EQ(Expect<FeedBatch>(watcher).shard, 0u);
  Change(3, 7);
  Change(0, 8);
  EXPECT_EQ(Expect<FeedBatch>(watcher).records[0].key, KeyIn(0, 8));
  for (uint32_t shard = 1; shard < 4; ++shard) {
    const auto snapshot = Expect<FeedBatch>(watcher);
    EXPECT_EQ(snapshot.shard, shard);
    EXPECT_TRUE(snapshot.replaces);
    EXPECT_EQ(snapshot.records.size(), shard == 3 ? 1u : 0u);
  }
  Expect<FeedIdle>(watcher);
}

TEST_F(FeedHubTest, LongSnapshotReplacesOnItsFirstBatchAndSaysMoreOnAllButItsLast) {
  Fill(0, 2 * FeedHub::kBatchRecordsMax + 5);
  const WatcherId watcher = hub_.Add({});
  for (size_t i = 0; i < 3; ++i) {
    const auto batch = Expect<FeedBatch>(watcher);
    EXPECT_EQ(batch.sequence, i + 1);
    EXPECT_EQ(batch.replaces, i == 0);
    EXPECT_EQ(batch.more, i < 2);
    EXPECT_EQ(batch.records.size(), i < 2 ? FeedHub::kBatchRecordsMax : 5);
  }
  Expect<FeedIdle>(watcher);
}

TEST_F(FeedHubTest, SnapshotOfExactlyOneBatchDoesNotPromiseMore) {
  Fill(0, FeedHub::kBatchRecordsMax);
  const WatcherId watcher = hub_.Add({});
  const auto batch = Expect<FeedBatch>(watcher);
  EXPECT_EQ(batch.records.size(), FeedHub::kBatchRecordsMax);
  EXPECT_FALSE(batch.more);
  Expect<FeedIdle>(watcher);
}

TEST_F(FeedHubTest, BatchesSplitWherePartitionsMeet) {
  Fill(0, 2, /*partition=*/1);
  Fill(0, 3, /*partition=*/2);
  const WatcherId watcher = hub_.Add({});
  const auto first = Expect<FeedBatch>(watcher);
  EXPECT_EQ(first.records.size(), 2u);
  EXPECT_TRUE(first.more);
  const auto second = Expect<FeedBatch>(watcher);
  EXPECT_EQ(second.records.size(), 3u);
  EXPECT_FALSE(second.replaces);
  EXPECT_FALSE(second.more);

  Change(0, 10, kHostBit, 1);
  Change(0, 10, kHostBit, 2);
  Change(0, 11, kHostBit, 2);
  EXPECT_EQ(Expect<FeedBatch>(watcher).records.size(), 1u);
  EXPECT_EQ(Expect<FeedBatch>(watcher).records.size(), 2u);
}

TEST_F(FeedHubTest, RecordsThatArriveDuringASnapshotComeBehindItInOrder) {
  Fill(0, 2 * FeedHub::kBatchRecordsMax);
  const WatcherId watcher = hub_.Add({});
  EXPECT_TRUE(Expect<FeedBatch>(watcher).more);
  Change(0, 5, 0);
  Change(0, 2 * FeedHub::kBatchRecordsMax - 1, 0);  // Still to come in the snapshot.
  const auto last = Expect<FeedBatch>(watcher);
  EXPECT_FALSE(last.more);
  EXPECT_EQ(last.records.size(), FeedHub::kBatchRecordsMax);
  const auto live = Expect<FeedBatch>(watcher);
  ASSERT_EQ(live.records.size(), 2u);
  EXPECT_EQ(live.records[0].key, KeyIn(0, 5));
  EXPECT_EQ(live.records[1].key, KeyIn(0, 2 * FeedHub::kBatchRecordsMax - 1));
}

TEST_F(FourShardFeedHubTest, RecordsOfOneShardShareABatchThoughOthersCameBetween) {
  const WatcherId watcher = hub_.Add({});
  PullToIdle(watcher);
  for (uint32_t i = 0; i < 20; ++i) Change(i % 4, i);
  for (uint32_t shard = 0; shard < 4; ++shard) {
    const auto batch = Expect<FeedBatch>(watcher);
    EXPECT_EQ(batch.shard, shard);
    EXPECT_EQ(batch.records.size(), 5u);
  }
  Expect<FeedIdle>(watcher);
}

TEST_F(FourShardFeedHubTest, ShardThatNeverRestsDoesNotHoldUpOthers) {
  const WatcherId watcher = hub_.Add({});
  PullToIdle(watcher);
  const auto churn = static_cast<uint32_t>(FeedHub::kBatchRecordsMax + 1);
  for (uint32_t i = 0; i < churn; ++i) Change(0, i);
  Change(1, 0);
  EXPECT_EQ(Expect<FeedBatch>(watcher).shard, 0u);
  for (uint32_t i = 0; i < churn; ++i) Change(0, i, kDiskBit);
  EXPECT_EQ(Expect<FeedBatch>(watcher).records.size(), 1u);
  EXPECT_EQ(Expect<FeedBatch>(watcher).shard, 1u);
}

TEST_F(FourShardFeedHubTest, HeartbeatListsOnlyShardsFullySentWhenItWasQueued) {
  Fill(1, FeedHub::kBatchRecordsMax + 1);
  const WatcherId watcher = hub_.Add({});
  EXPECT_EQ(Expect<FeedBatch>(watcher).shard, 0u);
  EXPECT_TRUE(Expect<FeedBatch>(watcher).more);
  hub_.QueueHeartbeat(watcher);
  EXPECT_FALSE(Expect<FeedBatch>(watcher).more);
  const auto heartbeat = Expect<FeedHeartbeat>(watcher);
  ASSERT_EQ(heartbeat.shards.size(), 1u);
  EXPECT_EQ(heartbeat.shards[0].shard, 0u);
  PullToIdle(watcher);
  hub_.QueueHeartbeat(watcher);
  EXPECT_EQ(Expect<FeedHeartbeat>(watcher).shards.size(), 4u);
}

TEST_F(FeedHubTest, HeartbeatStandsBetweenWhatCameBeforeAndAfter) {
  const WatcherId watcher = hub_.Add({});
  PullToIdle(watcher);
  Change(0, 1);
  hub_.QueueHeartbeat(watcher);
  const ShardSums sums = index_.SumsOf(0);
  Change(0, 2);
  EXPECT_EQ(Expect<FeedBatch>(watcher).records.size(), 1u);
  const auto heartbeat = Expect<FeedHeartbeat>(watcher);
  EXPECT_EQ(heartbeat.shards[0].sums, sums);
  EXPECT_EQ(heartbeat.shards[0].sequence, 2u);
  EXPECT_EQ(Expect<FeedBatch>(watcher).records[0].key, KeyIn(0, 2));
}

TEST_F(FeedHubTest, AtMostOneHeartbeatWaits) {
  const WatcherId watcher = hub_.Add({});
  PullToIdle(watcher);
  for (size_t i = 0; i < 2 * kQueueMax; ++i) hub_.QueueHeartbeat(watcher);
  Expect<FeedHeartbeat>(watcher);
  Expect<FeedIdle>(watcher);
  hub_.QueueHeartbeat(watcher);
  Expect<FeedHeartbeat>(watcher);
}

TEST_F(FeedHubTest, ResyncSendsAShardAnewAndDropsWhatWaitedOfIt) {
  Fill(0, 3);
  const WatcherId watcher = hub_.Add({});
  PullToIdle(watcher);
  Change(0, 7);
  hub_.QueueHeartbeat(watcher);
  hub_.Resync(watcher, {0, 99});
  Change(0, 8);
  EXPECT_THAT(Expect<FeedHeartbeat>(watcher).shards, IsEmpty());
  const auto snapshot = Expect<FeedBatch>(watcher);
  EXPECT_TRUE(snapshot.replaces);
  EXPECT_EQ(snapshot.sequence, 2u);
  EXPECT_EQ(snapshot.records.size(), 5u);
  Expect<FeedIdle>(watcher);
}

TEST_F(FeedHubTest, ResyncDuringASnapshotStartsItAgain) {
  Fill(0, FeedHub::kBatchRecordsMax + 1);
  const WatcherId watcher = hub_.Add({});
  EXPECT_TRUE(Expect<FeedBatch>(watcher).more);
  Change(0, 1, 0);
  hub_.Resync(watcher, {0});
  hub_.Resync(watcher, {0});
  const auto again = Expect<FeedBatch>(watcher);
  EXPECT_TRUE(again.replaces);
  EXPECT_FALSE(again.more);
  EXPECT_EQ(again.records.size(), FeedHub::kBatchRecordsMax);
  Expect<FeedIdle>(watcher);
}

TEST_F(FeedHubTest, KnownNamespacesComeFirstAndNewOnesInTheirPlace) {
  const WatcherId watcher = hub_.Add({{1, "public", "a", false}, {2, "public", "b", true}});
  EXPECT_EQ(Expect<FeedNamespace>(watcher).name, "a");
  EXPECT_TRUE(Expect<FeedNamespace>(watcher).retired);
  Expect<FeedBatch>(watcher);
  Change(0, 1);
  hub_.Record(FeedNamespace{3, "public", "c", false});
  Change(0, 2);
  EXPECT_EQ(Expect<FeedBatch>(watcher).records.size(), 1u);
  EXPECT_EQ(Expect<FeedNamespace>(watcher).namespace_index, 3u);
  EXPECT_EQ(Expect<FeedBatch>(watcher).records.size(), 1u);
}

TEST_F(FeedHubTest, MoreKnownNamespacesThanTheQueueHoldsDoNotCutANewWatcher) {
  const WatcherId watcher = hub_.Add(std::vector<FeedNamespace>(kQueueMax + 10));
  hub_.Record(FeedNamespace{3, "public", "c", false});
  for (size_t i = 0; i < kQueueMax + 11; ++i) Expect<FeedNamespace>(watcher);
  Expect<FeedBatch>(watcher);
}

TEST_F(FeedHubTest, IdleWatcherIsWokenOnce) {
  const WatcherId watcher = hub_.Add({});
  EXPECT_THAT(hub_.TakeWoken(), IsEmpty());
  PullToIdle(watcher);
  Change(0, 1);
  Change(0, 2);
  EXPECT_THAT(hub_.TakeWoken(), ElementsAre(watcher));
  Change(0, 3);
  EXPECT_THAT(hub_.TakeWoken(), IsEmpty());
  PullToIdle(watcher);
  hub_.QueueHeartbeat(watcher);
  EXPECT_THAT(hub_.TakeWoken(), ElementsAre(watcher));
  PullToIdle(watcher);
  hub_.Resync(watcher, {0});
  EXPECT_THAT(hub_.TakeWoken(), ElementsAre(watcher));
  PullToIdle(watcher);
  hub_.Record(FeedNamespace{1, "public", "a", false});
  EXPECT_THAT(hub_.TakeWoken(), ElementsAre(watcher));
}

TEST_F(FeedHubTest, WatchersAreBoundedAndRemoveMakesRoom) {
  std::vector<WatcherId> watchers;
  for (uint32_t i = 0; i < FeedHub::kWatchersMax; ++i) watchers.push_back(hub_.Add({}));
  EXPECT_EQ(hub_.Add({}), 0u);
  hub_.Remove(watchers[5]);
  EXPECT_EQ(hub_.watcher_count(), FeedHub::kWatchersMax - 1);
  const WatcherId again = hub_.Add({});
  EXPECT_NE(again, 0u);
  EXPECT_NE(again, watchers[5]) << "an id is never used again";
}

TEST_F(FeedHubTest, WatcherThatIsGoneIsCutAndNeverWoken) {
  const WatcherId watcher = hub_.Add({});
  PullToIdle(watcher);
  Change(0, 1);
  hub_.Remove(watcher);
  EXPECT_THAT(hub_.TakeWoken(), IsEmpty());
  Expect<FeedCut>(watcher);
  hub_.QueueHeartbeat(watcher);
  hub_.Resync(watcher, {0});
  hub_.Remove(watcher);
}

}  // namespace
}  // namespace cairn::node
