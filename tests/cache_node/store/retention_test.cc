// How long blocks stay, as their writers wish: who makes room first, and what is gone at its time.
// Each test is a story on a pool of 16 memory segments of 4 KiB, with 4 blocks in each.
#include <gmock/gmock.h>

#include "tests/cache_node/store/test_store.h"

namespace cairn::node {
namespace {

using ::testing::Each;

constexpr uint64_t kBlockBytes = 1024;
constexpr uint32_t kPoolBlocks = 64;

class RetentionTest : public ::testing::Test {
 protected:
  RetentionTest() { t_.Register(TestStore::Shape(kBlockBytes)); }

  int64_t UnixMsIn(absl::Duration duration) {
    return absl::ToUnixMillis(t_.clock.WallNow() + duration);
  }
  TestPrompt Put(uint32_t seed, size_t blocks, const Retention& retention) {
    t_.retention = retention;
    const TestPrompt prompt = t_.Prompt("t", seed, blocks);
    EXPECT_EQ(t_.Put(prompt), blocks);
    t_.retention = {};
    return prompt;
  }
  void Flood(uint32_t first_seed, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) Put(first_seed + i, 1, {});
  }
  void PassTime(absl::Duration duration) {
    t_.Advance(duration);
    t_.store->EndRetention(t_.clock.WallNow());
  }
  void Audit() { EXPECT_TRUE(t_.store->Audit().ok()) << t_.store->Audit(); }

  TestStore t_;
};

TEST_F(RetentionTest, LowPriorityMakesRoomFirstAndHighLastHoweverOld) {
  const TestPrompt high = Put(1, 2, {.priority = 90});
  Flood(100, kPoolBlocks - 4);
  const TestPrompt low = Put(2, 2, {.priority = 10});
  Flood(200, 2);
  EXPECT_EQ(t_.Present(low), 0u);
  Flood(300, 3 * kPoolBlocks);
  EXPECT_EQ(t_.Present(high), 2u);
  Audit();
}

TEST_F(RetentionTest, APriorityEndsAtItsTime) {
  const TestPrompt high =
      Put(1, 2, {.priority = 90, .priority_until_unix_ms = UnixMsIn(absl::Seconds(10))});
  PassTime(absl::Seconds(9));
  Flood(100, 2 * kPoolBlocks);
  ASSERT_EQ(t_.Present(high), 2u);
  PassTime(absl::Seconds(1));
  Flood(300, kPoolBlocks);
  EXPECT_EQ(t_.Present(high), 0u);
  Audit();
}

TEST_F(RetentionTest, AtItsTimeABlockIsGoneAndWhatFollowsItToo) {
  const TestPrompt prompt = Put(1, 2, {.expires_unix_ms = UnixMsIn(absl::Seconds(10))});
  // Others go on from it, with a later end and with none.
  t_.retention = {.expires_unix_ms = UnixMsIn(absl::Hours(1))};
  const TestPrompt later = t_.Branch(prompt, 2, 7, 2);
  ASSERT_EQ(t_.Put(later), 2u);
  t_.retention = {};
  const TestPrompt never = t_.Branch(prompt, 1, 8, 2);
  ASSERT_EQ(t_.Put(never), 2u);
  const TestPrompt other = Put(2, 2, {});
  PassTime(absl::Milliseconds(9'999));
  EXPECT_EQ(t_.Present(later), 4u);
  EXPECT_EQ(t_.Present(never), 3u);
  PassTime(absl::Milliseconds(1));
  for (const TestPrompt& gone : {prompt, later, never}) {
    EXPECT_THAT(t_.States(gone), Each(BlockState::kDeleted));
  }
  EXPECT_EQ(t_.Present(other), 2u);
  EXPECT_EQ(t_.counters.expired_blocks, 6u);
  EXPECT_EQ(t_.UsedBlocks(kBlockBytes), 2u);
  Audit();
}

TEST_F(RetentionTest, ALeaseDoesNotOutliveTheTimeOfItsBlocks) {
  const TestPrompt prompt = Put(1, 2, {.expires_unix_ms = UnixMsIn(absl::Seconds(10))});
  const LeaseId lease = *t_.Lease(prompt, 1, absl::Minutes(5)).lease;
  PassTime(absl::Seconds(10));
  EXPECT_FALSE(t_.store->PinForRead("t", t_.fingerprint(), lease, prompt.keys[0]).ok());
  EXPECT_EQ(t_.UsedBlocks(kBlockBytes), 0u);
  Audit();
}

TEST_F(RetentionTest, WhatIsBeingWrittenWhenItsTimeComesNeverBecomesReadable) {
  t_.retention = {.expires_unix_ms = UnixMsIn(absl::Seconds(1))};
  const TestPrompt prompt = t_.Prompt("t", 1, 1);
  const absl::StatusOr<ReserveAnswer> reserved = t_.Reserve(prompt);
  ASSERT_TRUE(reserved.ok());
  PassTime(absl::Seconds(1));
  EXPECT_FALSE(t_.WriteBlock("t", *reserved->token, prompt.keys[0], 0).ok());
  EXPECT_EQ(t_.Present(prompt), 0u);
  ASSERT_TRUE(t_.store->Abort("t", *reserved->token).ok());
  EXPECT_EQ(t_.UsedBlocks(kBlockBytes), 0u);
  Audit();
}

TEST_F(RetentionTest, ABlockPutAgainAfterItsTimeHasAnotherOne) {
  Put(1, 2, {.expires_unix_ms = UnixMsIn(absl::Seconds(10))});
  PassTime(absl::Seconds(10));
  const TestPrompt again = Put(1, 2, {});
  PassTime(absl::Hours(24));
  EXPECT_EQ(t_.Present(again), 2u);
  Audit();
}

TEST_F(RetentionTest, WhatWasEvictedBeforeItsTimeIsForgotten) {
  Put(1, 4, {.priority = 1, .expires_unix_ms = UnixMsIn(absl::Seconds(10))});
  Flood(100, 2 * kPoolBlocks);
  PassTime(absl::Seconds(10));
  EXPECT_EQ(t_.counters.expired_blocks, 0u);
  Audit();
}

}  // namespace
}  // namespace cairn::node
