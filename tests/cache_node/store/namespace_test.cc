// Registration of namespaces, the numbers that a store tells, and its feed.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "cache_node/store/namespace_difference.h"
#include "common/base/check.h"
#include "common/identity/segment_digest.h"
#include "tests/cache_node/store/test_store.h"

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kBlockBytes = 1024;

TEST(NamespaceTest, TheSameLabelTwiceIsTheSameBinding) {
  TestStore t;
  const auto first = t.store->RegisterNamespace("t", "llm", TestStore::Shape(kBlockBytes));
  const auto again = t.store->RegisterNamespace("t", "llm", TestStore::Shape(kBlockBytes));
  const auto elsewhere = t.store->RegisterNamespace("u", "llm", TestStore::Shape(kBlockBytes));
  ASSERT_TRUE(first.ok() && again.ok() && elsewhere.ok());
  EXPECT_TRUE(first->created);
  EXPECT_FALSE(again->created);
  EXPECT_TRUE(elsewhere->created);
  EXPECT_EQ(first->fingerprint, elsewhere->fingerprint);
  EXPECT_EQ(first->block_bytes, kBlockBytes);
}

TEST(NamespaceTest, OtherFieldsUnderALabelAreRefusedWithBothValues) {
  TestStore t;
  t.Register(TestStore::Shape(kBlockBytes), "t", "llm");
  Namespace other = TestStore::Shape(kBlockBytes);
  other.revision = "sha256:01";
  const absl::Status status = t.store->RegisterNamespace("t", "llm", other).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(),
              HasSubstr("revision is \"sha256:00\" there and \"sha256:01\" here"));
  EXPECT_TRUE(t.store->RegisterNamespace("u", "llm", other).ok());
  ASSERT_TRUE(t.store->RetireNamespace(t.fingerprint()).ok());
  EXPECT_TRUE(t.store->RegisterNamespace("t", "llm", other).ok());
}

TEST(NamespaceTest, DifferencesNameTheFirstFieldThatDiffers) {
  const Namespace base = TestStore::ManySegments(3, 2, true);
  const auto difference = [&base](auto change) {
    Namespace other = base;
    change(&other);
    return DescribeDifference(base, other);
  };
  EXPECT_THAT(difference([](Namespace* n) { n->model = "x\n"; }), HasSubstr("model is"));
  EXPECT_EQ(difference([](Namespace* n) { n->numerics = "\x01"; }),
            "numerics is 0x there and 0x01 here");
  EXPECT_EQ(difference([](Namespace* n) { n->key_scheme = KeyScheme::kExternal; }),
            "key_scheme is 1 there and 2 here");
  EXPECT_EQ(difference([](Namespace* n) { n->layout.block_tokens = 9; }),
            "layout.block_tokens is 4 there and 9 here");
  EXPECT_EQ(difference([](Namespace* n) { n->layout.slices = 1; }),
            "layout.slices is 2 there and 1 here");
  EXPECT_EQ(difference([](Namespace* n) { n->layout.groups.pop_back(); }),
            "the number of layout.groups is 2 there and 1 here");
  EXPECT_EQ(difference([](Namespace* n) { n->layout.groups[1].layers = 5; }),
            "layout.groups[1].layers is 1 there and 5 here");
}

TEST(NamespaceTest, ABlockLargerThanAMemorySegmentIsRefusedWithBothSizes) {
  TestStore t;
  const absl::Status status =
      t.store->RegisterNamespace("t", "llm", TestStore::Shape(4160)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("4160"));
  EXPECT_THAT(status.message(), HasSubstr("4096"));
}

TEST(NamespaceTest, BadNamesAndFieldsAreRefused) {
  TestStore t;
  Namespace bad = TestStore::Shape(kBlockBytes);
  bad.layout.groups.clear();
  for (const absl::Status& status :
       {t.store->RegisterNamespace("t", "", TestStore::Shape(kBlockBytes)).status(),
        t.store->RegisterNamespace("t", "\xff", TestStore::Shape(kBlockBytes)).status(),
        t.store->RegisterNamespace("t", "llm", bad).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
  EXPECT_TRUE(t.store->Namespaces("t").empty());
}

TEST(NamespaceTest, ATenantIsToldItsOwnLabelsAndBlocksOnly) {
  TestStore t;
  t.Register(TestStore::Shape(kBlockBytes), "t", "llm");
  t.Register(TestStore::Shape(kBlockBytes), "u", "mine");
  t.Put(t.Prompt("t", 1, 3));
  const std::vector<NamespaceStatus> mine = t.store->Namespaces("u");
  ASSERT_EQ(mine.size(), 1u);
  EXPECT_EQ(mine[0].name, "mine");
  EXPECT_EQ(mine[0].blocks, 0u);
  EXPECT_EQ(t.store->Namespaces("t")[0].blocks, 3u);
  EXPECT_EQ(t.store->Status().blocks, 3u);
}

TEST(NamespaceTest, PointersToMapsStayGoodAsMoreAreRegistered) {
  TestStore t;
  const PayloadMap* map = t.store->FindPayloadMap(t.Register(TestStore::Shape(kBlockBytes)));
  for (int i = 0; i < 100; ++i) {
    t.Register(TestStore::Shape(64, "model" + std::to_string(i)));
  }
  EXPECT_EQ(map->block_bytes(), kBlockBytes);
}

// A watcher that keeps what the feed tells it.
struct Watcher {
  explicit Watcher(TestStore* t_in) : t(t_in), id(t_in->store->AddWatcher()) {}

  void Pull() {
    while (true) {
      FeedMessage message = t->store->NextFeedMessage(id);
      if (std::holds_alternative<FeedIdle>(message)) return;
      if (auto* record = std::get_if<FeedNamespace>(&message)) namespaces.push_back(*record);
      if (auto* beat = std::get_if<FeedHeartbeat>(&message)) heartbeat = *beat;
      if (auto* batch = std::get_if<FeedBatch>(&message)) Apply(*batch);
    }
  }
  void Apply(const FeedBatch& batch) {
    if (batch.replaces) blocks[batch.shard].clear();
    for (const FeedRecord& record : batch.records) {
      const std::pair<PartitionIndex, BlockKey> place(record.partition, record.key);
      if (record.tier_mask == 0) {
        blocks[batch.shard].erase(place);
        reasons.push_back(record.reason);
      } else {
        blocks[batch.shard].insert(place);
      }
    }
  }
  bool AgreesWithHeartbeat() {
    for (const FeedHeartbeat::Shard& shard : heartbeat.shards) {
      uint64_t sum = 0;
      for (const auto& [partition, key] : blocks[shard.shard]) sum += FeedKeyDigest(key);
      if (shard.sums.tiers[1].blocks != blocks[shard.shard].size()) return false;
      if (shard.sums.tiers[1].key_sum != sum) return false;
    }
    return heartbeat.shards.size() == t->store->Shards().size();
  }

  TestStore* t;
  WatcherId id;
  std::map<uint32_t, std::set<std::pair<PartitionIndex, BlockKey>>> blocks;
  std::vector<RemovalReason> reasons;
  std::vector<FeedNamespace> namespaces;
  FeedHeartbeat heartbeat;
};

TEST(FeedTest, AWatcherFollowsPutsEvictionsAndRemovalsAndItsDigestsAgree) {
  TestStore t;
  t.Register(TestStore::Shape(kBlockBytes), "t", "llm");
  t.Put(t.Prompt("t", 1, 5));
  Watcher watcher(&t);
  watcher.Pull();
  EXPECT_EQ(t.feed_signals, 0u);
  for (uint32_t i = 0; i < 40; ++i) {
    t.Put(t.Prompt(i % 2 == 0 ? "t" : "public", 10 + i, 4));
    if (i % 8 == 0) watcher.Pull();
  }
  ASSERT_TRUE(t.store->Delete("t", t.fingerprint(), {t.Prompt("t", 48, 4).keys[3]}).ok());
  EXPECT_GT(t.feed_signals, 0u);
  t.store->QueueHeartbeat(watcher.id);
  watcher.Pull();
  EXPECT_TRUE(watcher.AgreesWithHeartbeat());
  EXPECT_THAT(watcher.reasons, ::testing::Contains(RemovalReason::kEvicted));
  EXPECT_THAT(watcher.reasons, ::testing::Contains(RemovalReason::kDeleted));
  const auto place = *watcher.blocks.begin()->second.begin();
  EXPECT_EQ(t.store->NameOf(place.first).fingerprint, t.fingerprint());
  t.store->RemoveWatcher(watcher.id);
  EXPECT_EQ(t.store->Status().watchers, 0u);
}

TEST(FeedTest, NamespacesRegisteredAndRetiredAreRecords) {
  TestStore t;
  t.Register(TestStore::Shape(kBlockBytes), "t", "llm");
  Watcher watcher(&t);
  watcher.Pull();
  ASSERT_EQ(watcher.namespaces.size(), 1u);
  t.Put(t.Prompt("t", 1, 5));
  ASSERT_TRUE(t.store->RetireNamespace(t.fingerprint()).ok());
  watcher.Pull();
  ASSERT_EQ(watcher.namespaces.size(), 2u);
  EXPECT_TRUE(watcher.namespaces[1].retired);
  EXPECT_EQ(t.store->NamespaceOf(watcher.namespaces[1].namespace_index).fingerprint,
            t.fingerprint());
  EXPECT_THAT(watcher.reasons, ::testing::Each(RemovalReason::kRetired));
  EXPECT_EQ(watcher.reasons.size(), 5u);
}

TEST(FeedTest, BlocksThatWereNeverPresentAreNotInIt) {
  TestStore t;
  t.Register(TestStore::Shape(kBlockBytes));
  Watcher watcher(&t);
  watcher.Pull();
  const auto reserved = t.Reserve(t.Prompt("t", 1, 5));
  ASSERT_TRUE(reserved.ok());
  ASSERT_TRUE(t.store->Abort("t", *reserved->token).ok());
  watcher.Pull();
  EXPECT_TRUE(watcher.reasons.empty());
  for (const auto& [shard, blocks] : watcher.blocks) EXPECT_TRUE(blocks.empty());
}

TEST(SignalTest, ACommitAnAbortAndAnEndedLeaseSettle) {
  TestStore t;
  t.Register(TestStore::Shape(kBlockBytes));
  const TestPrompt prompt = t.Prompt("t", 1, 1);
  auto reserved = t.Reserve(prompt);
  ASSERT_TRUE(reserved.ok());
  uint64_t before = t.settled_signals;
  ASSERT_TRUE(t.store->Abort("t", *reserved->token).ok());
  EXPECT_GT(t.settled_signals, before);
  before = t.settled_signals;
  t.Put(prompt);
  EXPECT_GT(t.settled_signals, before);
  const LeaseId lease = *t.Lease(prompt).lease;
  before = t.settled_signals;
  t.Lookup("t", prompt);
  EXPECT_EQ(t.settled_signals, before);
  ASSERT_TRUE(t.store->EndLease("t", lease, 0, {1}).ok());
  EXPECT_GT(t.settled_signals, before);
}

}  // namespace
}  // namespace cairn::node
