// Random changes, pulls, heartbeats, resyncs, comings and goings against model watchers, each of
// which rebuilds the index from what it is sent and checks every digest where it stands.

#include <gmock/gmock.h>

#include <map>
#include <optional>
#include <random>

#include "cache_node/store/feed_hub.h"
#include "tests/cache_node/store/model_feed.h"

namespace cairn::node {
namespace {

constexpr uint32_t kShards = 5;
constexpr uint32_t kPartitions = 3;
constexpr uint32_t kKeys = 12000;  // So that a shard's snapshot is more than one batch.
constexpr size_t kQueueMax = 1500;

class RandomFeed {
 public:
  explicit RandomFeed(uint64_t seed) : random_(seed), index_(kShards), hub_(&index_, kQueueMax) {
    for (uint32_t i = 0; i < kKeys; ++i) {
      if (Below(2) == 0) ChangeOne();
    }
  }

  void Step() {
    const uint64_t dice = Below(1000);
    if (dice < 5) {
      Arrive();
    } else if (dice < 7) {
      Leave();
    } else if (dice < 15) {
      Resync();
    } else if (dice < 60) {
      Beat();
    } else if (dice < 400) {
      Pull();
    } else {
      for (uint64_t i = Below(8); i > 0; --i) ChangeOne();
    }
  }

  void DrainAndCompare() {
    for (auto& [id, watcher] : watchers_) {
      while (PullOne(id, &watcher)) {
      }
    }
    for (auto& [id, watcher] : watchers_) {
      hub_.QueueHeartbeat(id);
      const size_t digests = watcher.digests();
      PullOne(id, &watcher);
      EXPECT_EQ(watcher.digests(), digests + kShards);
      for (uint32_t shard = 0; shard < kShards; ++shard) {
        EXPECT_EQ(watcher.shard(shard), index_.shard(shard));
      }
      sent_anew_ += watcher.sent_anew();
    }
  }

  size_t digests() const { return digests_; }
  size_t sent_anew() const { return sent_anew_; }

 private:
  uint64_t Below(uint64_t limit) {
    return std::uniform_int_distribution<uint64_t>(0, limit - 1)(random_);
  }

  void ChangeOne() {
    FeedRecord record;
    record.partition = 1 + static_cast<PartitionIndex>(Below(kPartitions));
    const uint64_t number = Below(kKeys);
    record.key.bytes[0] = static_cast<uint8_t>(number);
    record.key.bytes[1] = static_cast<uint8_t>(number >> 8);
    record.tier_mask = static_cast<uint8_t>(Below(4) == 0 ? 0 : 1 + Below(7));
    record.reason = record.tier_mask == 0 ? RemovalReason::kEvicted : RemovalReason::kNone;
    index_.Apply(record);
    hub_.Record(index_.ShardOf(record.key), record);
  }

  void Arrive() {
    if (watchers_.size() >= 5) return;
    const WatcherId id = hub_.Add({});
    ASSERT_NE(id, 0u);
    watchers_.emplace(id, ModelWatcher(kShards));
  }

  // A watcher by chance; null when there is none.
  std::map<WatcherId, ModelWatcher>::value_type* Some() {
    if (watchers_.empty()) return nullptr;
    return &*std::next(watchers_.begin(), static_cast<ptrdiff_t>(Below(watchers_.size())));
  }

  void Leave() {
    if (auto* entry = Some()) Forget(entry->first);
  }

  void Resync() {
    auto* entry = Some();
    if (entry == nullptr) return;
    const auto shard = static_cast<uint32_t>(Below(kShards));
    // What was not sent yet is not asked for again, and not expected twice.
    entry->second.Lose(shard);
    hub_.Resync(entry->first, {shard});
  }

  void Beat() {
    for (auto& [id, watcher] : watchers_) hub_.QueueHeartbeat(id);
  }

  // Some fall asleep once they have all, so that they overflow.
  void Pull() {
    auto* entry = Some();
    if (entry == nullptr) return;
    const bool asleep = entry->first % 3 == 0 && entry->second.digests() > 3 * kShards;
    if (asleep && Below(100) != 0) return;
    for (uint64_t i = 1 + Below(20); i > 0; --i) PullOne(entry->first, &entry->second);
  }

  // False when there is nothing more.
  bool PullOne(WatcherId id, ModelWatcher* watcher) {
    const FeedMessage message = hub_.Next(id);
    if (const auto* batch = std::get_if<FeedBatch>(&message)) {
      EXPECT_LE(batch->records.size(), FeedHub::kBatchRecordsMax);
      watcher->Take(*batch);
      return true;
    }
    if (const auto* heartbeat = std::get_if<FeedHeartbeat>(&message)) {
      watcher->Take(*heartbeat);
      digests_ += heartbeat->shards.size();
      return true;
    }
    EXPECT_TRUE(std::holds_alternative<FeedIdle>(message));
    return false;
  }

  void Forget(WatcherId id) {
    sent_anew_ += watchers_.at(id).sent_anew();
    hub_.Remove(id);
    watchers_.erase(id);
  }

  std::mt19937_64 random_;
  ModelIndex index_;
  FeedHub hub_;
  std::map<WatcherId, ModelWatcher> watchers_;
  size_t digests_ = 0;
  size_t sent_anew_ = 0;
};

TEST(FeedHubRandomTest, EveryDigestSaysWhatTheWatcherHoldsAtThatPoint) {
  size_t digests = 0;
  size_t sent_anew = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    RandomFeed feed(seed);
    for (int step = 0; step < 8000 && !::testing::Test::HasFailure(); ++step) feed.Step();
    feed.DrainAndCompare();
    digests += feed.digests();
    sent_anew += feed.sent_anew();
  }
  // The run was worth something: without these it would prove little.
  EXPECT_GT(digests, 1000u);
  EXPECT_GT(sent_anew, 20u);
}

}  // namespace
}  // namespace cairn::node
