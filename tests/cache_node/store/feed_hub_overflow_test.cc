// More changes than a watcher pulls, over a model index: what is said once, what is given up and
// sent anew, and who is cut.
#include "cache_node/store/feed_queue.h"
#include "tests/cache_node/store/feed_hub_fixture.h"

namespace cairn::node {
namespace {

TEST_F(FeedHubTest, OfOneBlockOnlyTheLastRecordWaits) {
  const WatcherId watcher = hub_.Add({});
  PullToIdle(watcher);
  for (size_t i = 0; i < 2 * kQueueMax; ++i) Change(0, 5, kHostBit);
  Change(0, 6, kHostBit, /*partition=*/1);
  Change(0, 6, kDiskBit, /*partition=*/2);
  Change(0, 5, 0);
  const auto first = Expect<FeedBatch>(watcher);
  ASSERT_EQ(first.records.size(), 2u);
  EXPECT_EQ(first.records[0].tier_mask, 0);
  EXPECT_EQ(first.records[0].reason, RemovalReason::kEvicted);
  EXPECT_EQ(first.records[1].tier_mask, kHostBit);
  EXPECT_EQ(Expect<FeedBatch>(watcher).records[0].tier_mask, kDiskBit) << "of another partition";
  Expect<FeedIdle>(watcher);
  EXPECT_EQ(hub_.TakeGivenUp(), 0u);
}

TEST_F(FeedHubTest, RecordBehindAHeartbeatDoesNotReplaceTheOneBeforeIt) {
  const WatcherId watcher = hub_.Add({});
  PullToIdle(watcher);
  Change(0, 5, kHostBit);
  hub_.QueueHeartbeat(watcher);
  Change(0, 5, 0);
  EXPECT_EQ(Expect<FeedBatch>(watcher).records[0].tier_mask, kHostBit);
  EXPECT_EQ(Expect<FeedHeartbeat>(watcher).shards[0].sums.tiers[1].blocks, 1u);
  EXPECT_EQ(Expect<FeedBatch>(watcher).records[0].tier_mask, 0);
}

TEST_F(FeedHubTest, RecordOfABlockWhoseRunIsBeingSentComesBehind) {
  const WatcherId watcher = hub_.Add({});
  PullToIdle(watcher);
  Fill(0, FeedHub::kBatchRecordsMax + 1);
  EXPECT_EQ(Expect<FeedBatch>(watcher).records.size(), FeedHub::kBatchRecordsMax);
  const auto last = static_cast<uint32_t>(FeedHub::kBatchRecordsMax);
  Change(0, last, 0);
  EXPECT_EQ(Expect<FeedBatch>(watcher).records[0].tier_mask, kHostBit);
  EXPECT_EQ(Expect<FeedBatch>(watcher).records[0].tier_mask, 0);
}

TEST_F(FourShardFeedHubTest, OverflowSendsTheShardAnewThatHasMostToSend) {
  const WatcherId slow = hub_.Add({});
  const WatcherId quick = hub_.Add({});
  PullToIdle(slow);
  PullToIdle(quick);
  Fill(1, 100);
  Fill(2, kQueueMax - 100);
  PullToIdle(quick);
  EXPECT_EQ(hub_.TakeGivenUp(), 0u);
  Change(1, 100);
  EXPECT_EQ(hub_.TakeGivenUp(), 1u) << "of the slow watcher alone";
  Change(2, 7, 0);
  EXPECT_EQ(Expect<FeedBatch>(slow).records.size(), 101u);
  size_t sent_anew = 0;
  for (bool more = true; more;) {
    const auto snapshot = Expect<FeedBatch>(slow);
    EXPECT_EQ(snapshot.shard, 2u);
    EXPECT_EQ(snapshot.replaces, sent_anew == 0);
    sent_anew += snapshot.records.size();
    more = snapshot.more;
  }
  EXPECT_EQ(sent_anew, kQueueMax - 101);
  Expect<FeedIdle>(slow);
  PullToIdle(quick);
}

TEST_F(FourShardFeedHubTest, ShardThatWasGivenUpIsInNoDigestUntilItIsSentAgain) {
  const WatcherId watcher = hub_.Add({});
  PullToIdle(watcher);
  Fill(2, kQueueMax - 1);
  hub_.QueueHeartbeat(watcher);
  Change(0, 1);
  EXPECT_EQ(hub_.TakeGivenUp(), 1u);
  EXPECT_EQ(Expect<FeedHeartbeat>(watcher).shards.size(), 3u);
  PullToIdle(watcher);
  hub_.QueueHeartbeat(watcher);
  EXPECT_EQ(Expect<FeedHeartbeat>(watcher).shards.size(), 4u);
}

TEST_F(FourShardFeedHubTest, ShardToBeSentAnewComesThoughOthersNeverRest) {
  const WatcherId watcher = hub_.Add({});
  PullToIdle(watcher);
  hub_.Resync(watcher, {3});
  bool came = false;
  for (uint32_t i = 0; i < 2 * FeedQueue::kLivePerSnapshot && !came; ++i) {
    Change(i % 3, i);
    Change((i + 1) % 3, i);
    came = Expect<FeedBatch>(watcher).shard == 3;
  }
  EXPECT_TRUE(came);
}

TEST_F(FeedHubTest, SnapshotDoesNotPassANamespaceRecord) {
  const WatcherId watcher = hub_.Add({});
  PullToIdle(watcher);
  for (uint32_t i = 0; i <= FeedQueue::kLivePerSnapshot; ++i) {
    hub_.Record(FeedNamespace{i, "public", "a", false});
  }
  hub_.Resync(watcher, {0});
  for (uint32_t i = 0; i <= FeedQueue::kLivePerSnapshot; ++i) Expect<FeedNamespace>(watcher);
  EXPECT_TRUE(Expect<FeedBatch>(watcher).replaces);
}

TEST_F(FeedHubTest, QueueFullOfNamespacesTakesNoRecordAndIsNotCutForIt) {
  const WatcherId watcher = hub_.Add({});
  PullToIdle(watcher);
  for (size_t i = 0; i < kQueueMax; ++i) hub_.Record(FeedNamespace{1, "public", "a", false});
  hub_.QueueHeartbeat(watcher);
  Change(0, 1);
  for (size_t i = 0; i < kQueueMax; ++i) Expect<FeedNamespace>(watcher);
  const auto snapshot = Expect<FeedBatch>(watcher);
  EXPECT_TRUE(snapshot.replaces);
  EXPECT_EQ(snapshot.records.size(), 1u);
}

TEST_F(FeedHubTest, NamespaceRecordsThatNobodyPullsCutToo) {
  const WatcherId watcher = hub_.Add({});
  PullToIdle(watcher);
  for (size_t i = 0; i <= kQueueMax; ++i) hub_.Record(FeedNamespace{1, "public", "a", false});
  Expect<FeedCut>(watcher);
}

TEST_F(FeedHubTest, RecordsOfAShardNotSentDoNotFillTheQueue) {
  const WatcherId watcher = hub_.Add({});
  Fill(0, kQueueMax + 1);
  EXPECT_TRUE(Expect<FeedBatch>(watcher).replaces);
}

}  // namespace
}  // namespace cairn::node
