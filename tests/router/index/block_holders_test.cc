// Records go in as a feed would give them; matches are compared with what the holders were said to
// have, by hand and, under random records, with a plain map.
#include "router/index/block_holders.h"

#include <gmock/gmock.h>

#include <map>
#include <random>

#include "tests/router/numbered_ids.h"

namespace cairn::router {
namespace {

constexpr uint8_t kDevice = 1, kHost = 2, kDisk = 4;
constexpr size_t kHolders = 3;

class BlockHoldersTest : public ::testing::Test {
 protected:
  BlockHoldersTest() {
    for (HolderIndex holder = 0; holder < kHolders; ++holder) blocks_.Begin(holder, 4);
  }

  PartitionIndex PartitionOf(const std::string& tenant) {
    return *partitions_.Intern(NumberedFingerprint(1), tenant);
  }
  void Set(HolderIndex holder, absl::Span<const BlockKey> keys, uint8_t tiers,
           const std::string& tenant = "acme") {
    for (const BlockKey& key : keys) {
      ASSERT_TRUE(blocks_.Set(holder, PartitionOf(tenant), key, tiers).has_value());
    }
  }
  std::vector<PrefixMatch> Match(absl::Span<const BlockKey> keys,
                                 const std::string& tenant = "acme") {
    const ReadablePartitions partitions = {partitions_.Find(NumberedFingerprint(1), tenant),
                                           partitions_.Find(NumberedFingerprint(1), "public")};
    return blocks_.Match(keys, partitions, usable_, nullptr);
  }

  PartitionTable partitions_{100};
  BlockHolders blocks_{kHolders, 1000, &partitions_};
  std::vector<bool> usable_ = std::vector<bool>(kHolders, true);
};

TEST_F(BlockHoldersTest, CountsConsecutiveBlocksByFastestTier) {
  const auto keys = NumberedKeys(0, 6);
  Set(0, absl::MakeSpan(keys).first(2), kDevice | kHost);
  Set(0, absl::MakeSpan(keys).subspan(2, 2), kDisk);
  Set(1, absl::MakeSpan(keys).first(5), kHost);
  const auto matches = Match(keys);
  EXPECT_EQ(matches[0], (PrefixMatch{4, {2, 0, 2}, 0}));
  EXPECT_EQ(matches[1], (PrefixMatch{5, {0, 5, 0}, 0}));
  EXPECT_EQ(matches[2], PrefixMatch{});
}

TEST_F(BlockHoldersTest, AHoleEndsTheMatch) {
  const auto keys = NumberedKeys(0, 5);
  Set(0, keys, kHost);
  Set(1, absl::MakeSpan(keys).subspan(1), kHost);
  Set(0, {keys[3]}, 0);
  const auto matches = Match(keys);
  EXPECT_EQ(matches[0].blocks, 3u);
  EXPECT_EQ(matches[1].blocks, 0u);
}

TEST_F(BlockHoldersTest, OwnAndPublicBlocksCountAndOthersDoNot) {
  const auto keys = NumberedKeys(0, 4);
  Set(0, absl::MakeSpan(keys).first(2), kHost, "public");
  Set(0, absl::MakeSpan(keys).subspan(2, 1), kHost, "acme");
  Set(0, absl::MakeSpan(keys).subspan(3, 1), kHost, "rival");
  EXPECT_EQ(Match(keys, "acme")[0].blocks, 3u);
  EXPECT_EQ(Match(keys, "rival")[0].blocks, 2u);
  EXPECT_EQ(Match(absl::MakeSpan(keys).subspan(3), "rival")[0].blocks, 1u);
  EXPECT_EQ(Match(absl::MakeSpan(keys).subspan(2), "nobody")[0].blocks, 0u);
}

TEST_F(BlockHoldersTest, OneHoldersWrongTenantDoesNotHideAnothersRightOne) {
  const auto keys = NumberedKeys(0, 1);
  Set(0, keys, kHost, "rival");
  Set(1, keys, kHost, "acme");
  const auto matches = Match(keys, "acme");
  EXPECT_EQ(matches[0].blocks, 0u);
  EXPECT_EQ(matches[1].blocks, 1u);
}

TEST_F(BlockHoldersTest, HoldersThatAreNotUsableMatchNothing) {
  const auto keys = NumberedKeys(0, 2);
  Set(0, keys, kHost);
  usable_[0] = false;
  EXPECT_EQ(Match(keys)[0].blocks, 0u);
}

TEST_F(BlockHoldersTest, SpeculativeMarksFillInAndABlockThatIsAlsoFedCountsOnce) {
  const auto keys = NumberedKeys(0, 5);
  Set(0, {keys[0], keys[1], keys[3]}, kHost);
  SpeculativeBlocks marks({}, kHolders, &partitions_);
  marks.Mark(BookingId{}, 0, PartitionOf("acme"), absl::MakeSpan(keys).subspan(1, 2),
             absl::UnixEpoch());
  const auto match_of = [&](const std::string& tenant) {
    return blocks_.Match(keys, {PartitionOf(tenant), std::nullopt}, usable_, &marks)[0];
  };
  EXPECT_EQ(match_of("acme"), (PrefixMatch{4, {0, 3, 0}, 1}));
  EXPECT_EQ(match_of("rival"), PrefixMatch{});
}

TEST_F(BlockHoldersTest, SetSaysWhereTheBlockWas) {
  const BlockKey key = NumberedKey(9);
  const PartitionIndex partition = PartitionOf("acme");
  EXPECT_EQ(blocks_.Set(0, partition, key, kHost), 0);
  EXPECT_EQ(blocks_.Set(0, partition, key, kHost | kDisk), kHost);
  EXPECT_EQ(blocks_.Set(1, partition, key, 0), 0);
  EXPECT_EQ(blocks_.Set(0, partition, key, 0), kHost | kDisk);
  EXPECT_EQ(blocks_.Set(0, partition, key, 0), 0);
  EXPECT_EQ(blocks_.slot_count(), 0u);
}

TEST_F(BlockHoldersTest, AClearedShardIsForgottenAtOnceAndFreedBySweep) {
  const auto keys = NumberedKeys(0, 8);
  Set(0, keys, kHost);
  Set(1, keys, kHost);
  blocks_.ClearShard(0, 1);
  EXPECT_EQ(Match(keys)[0].blocks, 1u);
  EXPECT_EQ(Match(keys)[1].blocks, 8u);
  EXPECT_EQ(blocks_.BlocksOf(0), 6u);
  EXPECT_EQ(blocks_.slot_count(), 16u);
  EXPECT_EQ(blocks_.Set(0, PartitionOf("acme"), keys[1], kHost), 0);
  blocks_.Sweep(BlockHolders::kStripes);
  EXPECT_EQ(blocks_.slot_count(), 15u);
  EXPECT_EQ(Match(keys)[0].blocks, 5u);
}

TEST_F(BlockHoldersTest, AHolderBegunAnewHasNothingWhateverItsShards) {
  const auto keys = NumberedKeys(0, 8);
  Set(0, keys, kHost);
  blocks_.Begin(0, 1);
  EXPECT_EQ(Match(keys)[0].blocks, 0u);
  EXPECT_EQ(blocks_.BlocksOf(0), 0u);
  blocks_.Begin(0, 4);
  EXPECT_EQ(Match(keys)[0].blocks, 0u);
  Set(0, {keys[0]}, kDevice);
  EXPECT_EQ(Match(keys)[0].blocks, 1u);
  blocks_.Sweep(BlockHolders::kStripes);
  EXPECT_EQ(blocks_.slot_count(), 1u);
}

TEST_F(BlockHoldersTest, PastTheBoundNothingIsAddedUntilSomethingGoes) {
  BlockHolders small(1, 2, &partitions_);
  small.Begin(0, 4);
  const PartitionIndex partition = PartitionOf("acme");
  EXPECT_EQ(small.Set(0, partition, NumberedKey(0), kHost), 0);
  EXPECT_EQ(small.Set(0, partition, NumberedKey(4), kHost), 0);
  EXPECT_EQ(small.Set(0, partition, NumberedKey(1), kHost), std::nullopt);
  EXPECT_EQ(small.Set(0, partition, NumberedKey(0), kDisk), kHost);
  EXPECT_EQ(small.Set(0, partition, NumberedKey(4), 0), kHost);
  EXPECT_EQ(small.Set(0, partition, NumberedKey(1), kHost), 0);
  // What was forgotten makes room: a record that finds none looks a bit further each time.
  small.ClearShard(0, 0);
  size_t tries = 0;
  while (!small.Set(0, partition, NumberedKey(5), kHost).has_value()) {
    ASSERT_LT(++tries, BlockHolders::kStripes);
  }
  EXPECT_EQ(small.slot_count(), 2u);
}

TEST_F(BlockHoldersTest, EpochsThatRunOutAreNumberedAnewAndNothingComesBack) {
  BlockHolders counted(2, 1000, &partitions_, /*epochs_max=*/300);
  const PartitionIndex partition = PartitionOf("acme");
  const auto keys = NumberedKeys(0, 8);
  for (HolderIndex holder = 0; holder < 2; ++holder) counted.Begin(holder, 4);
  for (const BlockKey& key : keys) counted.Set(1, partition, key, kDisk);
  const auto match_of = [&](HolderIndex holder) {
    return counted.Match(keys, {partition, std::nullopt}, {true, true}, nullptr)[holder].blocks;
  };
  for (int round = 0; round < 1000; ++round) {
    // Shard 3 is never cleared, shard 1 always, so that its old slots lie about.
    for (const uint32_t number : {0, 1, 2, 3}) counted.Set(0, partition, keys[number], kHost);
    ASSERT_EQ(match_of(0), 4u);
    counted.ClearShard(0, 1);
    ASSERT_EQ(match_of(0), 1u);
    if (round % 100 == 99) {
      counted.Begin(0, round % 200 == 99 ? 3 : 4);
      ASSERT_EQ(match_of(0), 0u);
    }
    ASSERT_EQ(match_of(1), 8u);
  }
}

TEST_F(BlockHoldersTest, AHolderThatSaysAnotherTenantMovesItsOwnPartOnly) {
  const auto keys = NumberedKeys(0, 1);
  for (HolderIndex holder = 0; holder < kHolders; ++holder) Set(holder, keys, kHost, "acme");
  Set(1, keys, kDisk, "rival");
  EXPECT_EQ(Match(keys, "acme")[0].blocks, 1u);
  EXPECT_EQ(Match(keys, "acme")[1].blocks, 0u);
  EXPECT_EQ(Match(keys, "rival")[1], (PrefixMatch{1, {0, 0, 1}, 0}));
  EXPECT_EQ(Match(keys, "rival")[2].blocks, 0u);
  Set(0, keys, 0);
  EXPECT_EQ(Match(keys, "acme")[2].blocks, 1u);
  EXPECT_EQ(blocks_.slot_count(), 2u);
}

TEST_F(BlockHoldersTest, AgreesWithAPlainMapUnderRandomRecords) {
  std::mt19937 random(4);
  const auto pick = [&](uint32_t below) { return static_cast<uint32_t>(random() % below); };
  const std::string tenants[] = {"acme", "rival", "public"};
  std::map<std::pair<HolderIndex, BlockKey>, std::pair<uint8_t, std::string>> model;
  const auto prompt = NumberedKeys(0, 12);
  for (int step = 0; step < 20000; ++step) {
    const auto holder = static_cast<HolderIndex>(pick(kHolders));
    if (pick(400) == 0) {
      const uint32_t shard = pick(4);
      blocks_.ClearShard(holder, shard);
      std::erase_if(model, [&](const auto& entry) {
        return entry.first.first == holder && entry.first.second.bytes[0] % 4 == shard;
      });
    } else {
      const BlockKey key = NumberedKey(pick(12));
      const auto tiers = static_cast<uint8_t>(pick(5) == 0 ? 0 : 1 + pick(7));
      const std::string& tenant = tenants[pick(8) == 0 ? 1 : pick(2) * 2];
      const auto before = model.find({holder, key});
      const uint8_t expected = before == model.end() ? 0 : before->second.first;
      ASSERT_EQ(blocks_.Set(holder, PartitionOf(tenant), key, tiers), expected);
      model.erase({holder, key});
      if (tiers != 0) model[{holder, key}] = {tiers, tenant};
    }
    if (pick(10) == 0) blocks_.Sweep(pick(64));
    const auto matches = Match(prompt);
    for (HolderIndex h = 0; h < kHolders; ++h) {
      uint32_t blocks = 0;
      for (const BlockKey& key : prompt) {
        const auto found = model.find({h, key});
        if (found == model.end() || found->second.second == "rival") break;
        ++blocks;
      }
      ASSERT_EQ(matches[h].blocks, blocks) << "step " << step;
    }
  }
  blocks_.Sweep(BlockHolders::kStripes);
  EXPECT_EQ(blocks_.slot_count(), model.size());
}

}  // namespace
}  // namespace cairn::router
