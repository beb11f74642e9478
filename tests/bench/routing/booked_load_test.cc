// What a router believes of a replica, from booking to end.

#include "tests/bench/routing/booked_load.h"

#include <gtest/gtest.h>

#include "tests/bench/eviction/fake_trace.h"

namespace cairn::bench {
namespace {

class BookedLoadTest : public ::testing::Test {
 protected:
  BookedLoadTest() {
    FakeTrace reader({{.ids = {1, 2, 3}, .output_tokens = 7}, {.ids = {1, 2, 4}}});
    trace_ = *BlockTrace::Read(&reader, {});
    load_ = std::make_unique<BookedLoad>(&trace_, 1000);
    cache_ = std::make_unique<NodeCache>(trace_.block_count(), 10);
  }
  router::ReplicaView Shown() const {
    router::ReplicaView replica;
    load_->Show(&replica);
    return replica;
  }
  uint32_t Match(uint32_t request) const {
    std::vector<BlockTrace::Block> path;
    trace_.PathOf(trace_.requests()[request], &path);
    return load_->MatchWithComing(path, *cache_, cache_->Match(path));
  }

  BlockTrace trace_;
  std::unique_ptr<BookedLoad> load_;
  std::unique_ptr<NodeCache> cache_;
};

TEST_F(BookedLoadTest, PrefillUntilTheFirstTokenKvUntilTheEnd) {
  load_->Book(0, 0, 10);
  EXPECT_EQ(Shown().queued_prefill_tokens, 20u);
  EXPECT_EQ(Shown().running_kv_tokens, 37u);
  EXPECT_EQ(Shown().requests, 1u);
  load_->FirstToken(0, 20, 0.1);
  EXPECT_EQ(Shown().queued_prefill_tokens, 0u);
  EXPECT_EQ(Shown().running_kv_tokens, 37u);
  load_->Ended(0);
  EXPECT_EQ(Shown().running_kv_tokens, 0u);
  EXPECT_EQ(Shown().requests, 0u);
}

TEST_F(BookedLoadTest, WhatIsBookedIsComingUntilItsFirstToken) {
  EXPECT_EQ(Match(1), 0u);
  load_->Book(0, 0, 0);
  EXPECT_EQ(Match(1), 2u);
  load_->Book(1, 0, 20);
  load_->FirstToken(0, 30, 0.1);
  EXPECT_EQ(Match(0), 2u) << "the second one writes these two";
  load_->FirstToken(1, 30, 0.1);
  EXPECT_EQ(Match(0), 0u) << "by now the cache tells of them";
}

TEST_F(BookedLoadTest, WhatTheCacheHeldAtBookingIsNotComing) {
  load_->Book(0, 1, 10);
  EXPECT_EQ(Match(1), 0u) << "the cache has lost the first block, and nobody writes it";
}

TEST_F(BookedLoadTest, TheRateIsLearnedFromFirstTokens) {
  EXPECT_NEAR(Shown().prefill_tokens_per_second, 1000, 1e-9);
  for (int i = 0; i < 100; ++i) {
    load_->Book(0, 0, 0);
    load_->FirstToken(0, 30, 0.06);
    load_->Ended(0);
  }
  EXPECT_NEAR(Shown().prefill_tokens_per_second, 500, 10);
}

}  // namespace
}  // namespace cairn::bench
