// What the routers of others check of their indexes (Dynamo, smg, llm-d), as cases R1 to R17, over
// ours: records go in as feeds give them, prompts are looked up by their keys. Each case says in
// one line what our contract has otherwise. Our keys chain: a block's key is of its whole prefix,
// so the prompts [1, 2] and [1, 3] of the cases are the keys of their paths.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "router/index/block_holders.h"
#include "tests/router/numbered_ids.h"

namespace cairn::router {
namespace {

using ::testing::ElementsAre;

constexpr uint8_t kHost = 2;
constexpr size_t kHolders = 5;
constexpr uint32_t kShards = 4;
using Ids = std::vector<uint32_t>;

// The key of the path's last block, as a digest of the path.
BlockKey KeyOfPath(absl::Span<const uint32_t> path, uint64_t scope) {
  uint64_t words[2] = {scope, ~scope};
  for (const uint32_t id : path) {
    for (uint64_t& word : words) {
      word = (word ^ id) * 0x9e3779b97f4a7c15;
      word ^= word >> 29;
    }
  }
  BlockKey key;
  std::memcpy(key.bytes.data(), words, sizeof(words));
  return key;
}

std::vector<BlockKey> KeysOf(const Ids& ids, uint64_t scope = 1) {
  std::vector<BlockKey> keys;
  for (size_t end = 1; end <= ids.size(); ++end) {
    keys.push_back(KeyOfPath(absl::MakeConstSpan(ids).first(end), scope));
  }
  return keys;
}

Ids Range(uint32_t first, uint32_t last) {
  Ids ids;
  for (uint32_t id = first; id <= last; ++id) ids.push_back(id);
  return ids;
}

Ids Joined(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class PeerCasesTest : public ::testing::Test {
 protected:
  explicit PeerCasesTest(size_t holders = kHolders) : blocks_(holders, 1 << 20, &partitions_) {
    for (size_t i = 0; i < holders; ++i) blocks_.Begin(static_cast<HolderIndex>(i), kShards);
    usable_.assign(holders, true);
  }

  PartitionIndex Partition(const std::string& tenant = "acme") {
    return *partitions_.Intern(NumberedFingerprint(1), tenant);
  }
  // Stores the path's blocks from `from` on; returns how many the holder had already.
  size_t Store(HolderIndex holder, const Ids& path, size_t from = 0, uint64_t scope = 1) {
    size_t repeated = 0;
    const std::vector<BlockKey> keys = KeysOf(path, scope);
    for (size_t i = from; i < keys.size(); ++i) {
      repeated += blocks_.Set(holder, Partition(), keys[i], kHost).value() != 0 ? 1 : 0;
    }
    return repeated;
  }
  void Remove(HolderIndex holder, const Ids& path) {
    blocks_.Set(holder, Partition(), KeysOf(path).back(), 0);
  }
  std::vector<uint32_t> Scores(const Ids& path, uint64_t scope = 1) {
    std::vector<uint32_t> scores;
    for (const PrefixMatch& match :
         blocks_.Match(KeysOf(path, scope), {Partition(), std::nullopt}, usable_, nullptr)) {
      scores.push_back(match.blocks);
    }
    return scores;
  }
  uint32_t Score(HolderIndex holder, const Ids& path) { return Scores(path)[holder]; }

  PartitionTable partitions_{100};
  BlockHolders blocks_;
  std::vector<bool> usable_;
};

// As the peers.
TEST_F(PeerCasesTest, R1PathsThatPartAfterTheFirstBlock) {
  Store(0, {1, 2});
  Store(1, {1, 3});
  EXPECT_THAT(Scores({1}), ElementsAre(1, 1, 0, 0, 0));
  EXPECT_THAT(Scores({1, 2}), ElementsAre(2, 1, 0, 0, 0));
}

// As the peers.
TEST_F(PeerCasesTest, R2ARemovedLastBlockShortensTheMatch) {
  Store(0, {1, 2, 3});
  Remove(0, {1, 2, 3});
  EXPECT_EQ(Score(0, {1, 2, 3}), 2u);
  EXPECT_EQ(Score(0, {1, 2}), 2u);
}

// No cascade, as smg's flat index and not as Dynamo's trees: removals are the node's to say, and
// blocks behind a hole are there, but never counted past it.
TEST_F(PeerCasesTest, R3AHoleEndsTheMatchAndTheRestStays) {
  Store(0, Range(1, 5));
  Remove(0, {1, 2, 3});
  EXPECT_EQ(Score(0, Range(1, 5)), 2u);
  EXPECT_EQ(blocks_.BlocksOf(0), 4u);
}

// As without cascade: the parent's return brings back all that is behind it.
TEST_F(PeerCasesTest, R4AHoleThatIsFilledCountsAgain) {
  Store(0, Range(1, 5));
  Remove(0, {1, 2, 3});
  Store(0, {1, 2, 3}, /*from=*/2);
  EXPECT_EQ(Score(0, {1, 2, 3}), 3u);
  EXPECT_EQ(Score(0, Range(1, 5)), 5u);
}

// A record has no parent, so what a holder says without having the parent is taken and not counted.
TEST_F(PeerCasesTest, R5HoldersThatGoTheirOwnWays) {
  Store(1, Range(1, 6));
  Store(2, {1, 2, 3, 7, 8});
  EXPECT_THAT(Scores(Range(1, 6)), ElementsAre(0, 6, 3, 0, 0));
  EXPECT_THAT(Scores({1, 2, 3, 7, 8}), ElementsAre(0, 3, 5, 0, 0));
  const Ids beyond = Joined(Range(1, 6), {9, 10});
  Store(2, beyond, /*from=*/6);
  EXPECT_THAT(Scores(beyond), ElementsAre(0, 6, 3, 0, 0));
}

// We do not jump, but ask for memory 8 keys ahead; lengths around that are among them.
TEST_F(PeerCasesTest, R6HoldersOfStaggeredLengthsMatchExactlyTheirs) {
  const Ids lengths = {10, 20, 35, 64, 100};
  for (HolderIndex i = 0; i < kHolders; ++i) Store(i, Range(1, lengths[i]));
  EXPECT_THAT(Scores(Range(1, 100)), ElementsAre(10, 20, 35, 64, 100));
  for (const uint32_t length : {1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 1000}) {
    const Ids path = Joined({5000 + length}, Range(1, length - 1));
    Store(0, path);
    Store(1, Joined(path, {9}));
    EXPECT_EQ(Score(0, path), length);
    EXPECT_EQ(Score(1, path), length);
    EXPECT_EQ(Score(0, Joined(path, {8})), length);
    EXPECT_EQ(Score(1, Joined(path, {9, 8})), length + 1);
    Ids parts = path;
    parts.back() = 7777;
    EXPECT_EQ(Score(0, parts), length - 1);
  }
}

// A removed worker is a holder that begins anew; there are no ranks: each engine is a holder.
TEST_F(PeerCasesTest, R7AHolderThatGoesTakesNobodyElsesWithIt) {
  Store(0, {1, 2});
  Store(1, {1, 2});
  blocks_.Begin(0, kShards);
  EXPECT_THAT(Scores({1, 2}), ElementsAre(0, 2, 0, 0, 0));
  blocks_.Begin(3, kShards);  // Had nothing.
  Remove(1, {77});            // Nobody knows it.
  EXPECT_THAT(Scores({}), ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(Scores({1, 2}), ElementsAre(0, 2, 0, 0, 0));
  Store(0, {1});
  EXPECT_THAT(Scores({1, 2}), ElementsAre(1, 2, 0, 0, 0));
}

// Records are absolute: Set tells that the block was there, and nothing else changes.
TEST_F(PeerCasesTest, R8TheSameRecordTwiceIsOnce) {
  EXPECT_EQ(Store(0, {1, 2, 3}), 0u);
  EXPECT_EQ(Store(0, {1, 2, 3}), 3u);
  EXPECT_EQ(blocks_.BlocksOf(0), 3u);
  EXPECT_EQ(blocks_.slot_count(), 3u);
  EXPECT_EQ(Score(0, {1, 2, 3}), 3u);
}

// Keys are digests of their parents, so there are no cycles to refuse; a block whose parent is not
// known is taken, and counts once the parent is there.
TEST_F(PeerCasesTest, R9ABlockBeforeItsParentCountsWithIt) {
  Store(0, {1, 2, 3}, /*from=*/1);
  EXPECT_EQ(Score(0, {1, 2, 3}), 0u);
  Store(0, {1});
  EXPECT_EQ(Score(0, {1, 2, 3}), 3u);
}

// The dump is the node's snapshot (tests/router/feed), in any order; here: another index that is
// told the same, in another order, answers the same.
TEST_F(PeerCasesTest, R10ARebuiltIndexAnswersTheSame) {
  std::mt19937 random(10);
  std::vector<std::pair<HolderIndex, Ids>> stored;
  for (int i = 0; i < 200; ++i) {
    Ids path;
    for (uint32_t depth = 0; depth < 12; ++depth) path.push_back(random() % 2);
    stored.push_back({static_cast<HolderIndex>(random() % kHolders), path});
    Store(stored.back().first, path);
  }
  BlockHolders rebuilt(kHolders, 1 << 20, &partitions_);
  for (HolderIndex i = 0; i < kHolders; ++i) rebuilt.Begin(i, kShards);
  std::shuffle(stored.begin(), stored.end(), random);
  for (const auto& [holder, path] : stored) {
    std::vector<BlockKey> keys = KeysOf(path);
    std::shuffle(keys.begin(), keys.end(), random);
    for (const BlockKey& key : keys) rebuilt.Set(holder, Partition(), key, kHost);
  }
  EXPECT_EQ(rebuilt.slot_count(), blocks_.slot_count());
  for (const auto& [holder, path] : stored) {
    const std::vector<BlockKey> keys = KeysOf(path);
    EXPECT_EQ(rebuilt.Match(keys, {Partition(), std::nullopt}, usable_, nullptr),
              blocks_.Match(keys, {Partition(), std::nullopt}, usable_, nullptr));
  }
}

// R11, R12: there is no ring of old events: a gap asks for the shard's snapshot. feed_tracker_test:
// AGapAsksAtOnceAndKeepsWhatIsThereUntilItIsReplaced, RepeatedAndLateBatchesChangeNothing.
// R13: entries with a TTL are speculative, apart from what is fed. speculative_blocks_test:
// MarksOfABookingThatIsNeverReportedEndByTtl; block_holders_test: SpeculativeMarksFillIn.

// Models and adapters are in the scope that a key begins with; tenants are beside the key too.
TEST_F(PeerCasesTest, R14ScopesOfTheSameTokensShareNothing) {
  for (HolderIndex i = 0; i < 4; ++i) Store(i, {1, 2, 3}, 0, /*scope=*/100 + i);
  for (HolderIndex i = 0; i < 4; ++i) {
    std::vector<uint32_t> expected(kHolders);
    expected[i] = 3;
    EXPECT_EQ(Scores({1, 2, 3}, 100 + i), expected);
  }
}

// As the peers: the same block under another parent has another key.
TEST_F(PeerCasesTest, R15TheSameBlocksUnderAnotherParentDoNotMatch) {
  Store(0, {1, 2, 3});
  EXPECT_EQ(Score(0, {9, 2, 3}), 0u);
  EXPECT_EQ(Score(0, {2, 3}), 0u);
}

// The index is under its owner's lock, so writers take turns; no score may exceed what was stored.
TEST_F(PeerCasesTest, R16ReadersBesideFourWritersNeverSeeMoreThanWasStored) {
  constexpr uint32_t kLength = 200;
  absl::Mutex mutex;
  std::atomic<uint32_t> announced[4] = {};
  std::vector<std::thread> writers;
  const std::vector<BlockKey> keys = KeysOf(Range(1, kLength));
  const PartitionIndex partition = Partition();
  for (HolderIndex writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&, writer] {
      for (uint32_t i = 0; i < kLength; ++i) {
        announced[writer].store(i + 1);
        absl::MutexLock lock(&mutex);
        blocks_.Set(writer, partition, keys[i], kHost);
      }
    });
  }
  bool all_there = false;
  while (!all_there) {
    std::vector<PrefixMatch> matches;
    {
      absl::MutexLock lock(&mutex);
      matches = blocks_.Match(keys, {partition, std::nullopt}, usable_, nullptr);
    }
    all_there = true;
    for (HolderIndex writer = 0; writer < 4; ++writer) {
      ASSERT_LE(matches[writer].blocks, announced[writer].load());
      all_there = all_there && matches[writer].blocks == kLength;
    }
  }
  for (std::thread& writer : writers) writer.join();
}

// Up to kHoldersMax of them.
TEST(PeerCasesAtScaleTest, R16AllHoldersThatThereMayBeHoldOneBlock) {
  PartitionTable partitions(4);
  const PartitionIndex partition = *partitions.Intern(NumberedFingerprint(1), "acme");
  BlockHolders blocks(kHoldersMax, 1 << 16, &partitions);
  const std::vector<BlockKey> keys = KeysOf({1, 2});
  for (size_t i = 0; i < kHoldersMax; ++i) {
    const auto holder = static_cast<HolderIndex>(i);
    blocks.Begin(holder, kShards);
    blocks.Set(holder, partition, keys[0], kHost);
    if (i % 3 == 0) blocks.Set(holder, partition, keys[1], kHost);
  }
  std::vector<PrefixMatch> matches =
      blocks.Match(keys, {partition, std::nullopt}, std::vector<bool>(kHoldersMax, true), nullptr);
  for (size_t i = 0; i < kHoldersMax; ++i) ASSERT_EQ(matches[i].blocks, i % 3 == 0 ? 2u : 1u);
  for (size_t i = 0; i < kHoldersMax; i += 2) {
    blocks.Set(static_cast<HolderIndex>(i), partition, keys[0], 0);
  }
  matches =
      blocks.Match(keys, {partition, std::nullopt}, std::vector<bool>(kHoldersMax, true), nullptr);
  for (size_t i = 0; i < kHoldersMax; ++i) {
    ASSERT_EQ(matches[i].blocks, i % 2 == 0 ? 0u : i % 3 == 0 ? 2u : 1u);
  }
}

// Over made-up prompts that share their beginnings (the peers' trace is not ours), beside a plain
// set of keys: equal scores for all queries, and nothing is left after the drain.
TEST(PeerCasesAtScaleTest, R17ATraceIsAnsweredAsByAPlainSetAndDrainsToNothing) {
  constexpr size_t kWorkers = 10;
  PartitionTable partitions(4);
  const PartitionIndex partition = *partitions.Intern(NumberedFingerprint(1), "acme");
  BlockHolders blocks(kWorkers, 1 << 20, &partitions);
  for (HolderIndex i = 0; i < kWorkers; ++i) blocks.Begin(i, kShards);
  std::vector<std::map<BlockKey, size_t>> plain(kWorkers);
  std::mt19937 random(17);
  std::vector<Ids> conversations(60);
  for (uint32_t request = 0; request < 1000; ++request) {
    Ids& path = conversations[random() % conversations.size()];
    if (path.size() > 100 || path.empty()) path = Range(1, 1 + random() % 8);
    for (size_t turn = random() % 12; turn > 0; --turn) path.push_back(1000 + request);
    const std::vector<BlockKey> keys = KeysOf(path);
    const auto matches =
        blocks.Match(keys, {partition, std::nullopt}, std::vector<bool>(kWorkers, true), nullptr);
    for (size_t i = 0; i < kWorkers; ++i) {
      uint32_t expected = 0;
      while (expected < keys.size() && plain[i].contains(keys[expected])) ++expected;
      ASSERT_EQ(matches[i].blocks, expected);
    }
    const size_t worker = random() % kWorkers;
    for (const BlockKey& key : keys) {
      const bool had = plain[worker].contains(key);
      ASSERT_EQ(blocks.Set(static_cast<HolderIndex>(worker), partition, key, kHost).value() != 0,
                had);
      plain[worker][key] = request;
    }
    while (plain[worker].size() > 500) {
      const auto oldest =
          std::min_element(plain[worker].begin(), plain[worker].end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      ASSERT_NE(blocks.Set(static_cast<HolderIndex>(worker), partition, oldest->first, 0), 0);
      plain[worker].erase(oldest);
    }
  }
  for (size_t i = 0; i < kWorkers; ++i) {
    for (const auto& [key, used] : plain[i]) {
      blocks.Set(static_cast<HolderIndex>(i), partition, key, 0);
    }
  }
  EXPECT_EQ(blocks.slot_count(), 0u);
}

}  // namespace
}  // namespace cairn::router
