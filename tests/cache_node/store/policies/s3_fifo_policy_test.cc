// Single blocks by hand, each a prompt of its own: what a scan does to what is used, and what is
// remembered.

#include "cache_node/store/policies/s3_fifo_policy.h"

#include <gmock/gmock.h>

#include <vector>

namespace cairn::node {
namespace {

using ::testing::ElementsAre;

class S3FifoPolicyTest : public ::testing::Test {
 protected:
  void Insert(BlockHandle block) {
    policy_.Inserted(block, {.key = block + uint64_t{1000}}, ++stamp_);
    policy_.MayGo(block);
  }
  void Use(BlockHandle block) { policy_.Used(block, ++stamp_); }
  BlockHandle Evict() {
    const BlockHandle block = policy_.NextVictim()->block;
    policy_.Removed(block);
    return block;
  }
  std::vector<BlockHandle> EvictAll() {
    std::vector<BlockHandle> order;
    while (policy_.NextVictim().has_value()) order.push_back(Evict());
    return order;
  }

  S3FifoPolicy policy_;
  UseStamp stamp_ = 0;
};

TEST_F(S3FifoPolicyTest, UnusedBlocksGoInTheOrderInWhichTheyCame) {
  for (const BlockHandle block : {3, 1, 2}) Insert(block);
  EXPECT_THAT(EvictAll(), ElementsAre(3, 1, 2));
}

TEST_F(S3FifoPolicyTest, OneUseDoesNotSaveANewcomerTwoDo) {
  for (BlockHandle block = 0; block < 20; ++block) Insert(block);
  Use(0);
  Use(1);
  Use(1);
  EXPECT_EQ(Evict(), 0u);
  EXPECT_EQ(Evict(), 2u);
}

TEST_F(S3FifoPolicyTest, WhatIsUsedOutlivesAScan) {
  for (BlockHandle block = 0; block < 20; ++block) Insert(block);
  Use(0);
  Use(0);
  for (BlockHandle block = 100; block < 1000; ++block) {
    EXPECT_NE(Evict(), 0u);
    Insert(block);
  }
}

TEST_F(S3FifoPolicyTest, WhatLeftAndReturnsGoesToTheMainQueueAtOnce) {
  for (BlockHandle block = 0; block < 20; ++block) Insert(block);
  EXPECT_EQ(Evict(), 0u);
  Insert(0);
  for (BlockHandle block = 100; block < 200; ++block) {
    EXPECT_NE(Evict(), 0u);
    Insert(block);
  }
}

TEST_F(S3FifoPolicyTest, TheMemoryOfWhatLeftEndsWithItsBound) {
  for (BlockHandle block = 0; block < 20; ++block) Insert(block);
  EXPECT_EQ(Evict(), 0u);
  for (BlockHandle block = 100; block < 200; ++block) {
    Insert(block);
    Evict();
  }
  Insert(0);
  for (int i = 0; i < 20; ++i) {
    if (Evict() == 0u) return;
    Insert(static_cast<BlockHandle>(300 + i));
  }
  ADD_FAILURE() << "a block that was forgotten is kept like one that is remembered";
}

TEST_F(S3FifoPolicyTest, InTheMainQueueEachUseIsARoundMore) {
  for (BlockHandle block = 0; block < 4; ++block) Insert(block);
  for (BlockHandle block = 0; block < 3; ++block) {
    Use(block);
    Use(block);
  }
  // Three move to the main queue; then one of them is used.
  EXPECT_EQ(policy_.NextVictim()->block, 0u);
  Use(0);
  EXPECT_THAT(EvictAll(), ElementsAre(1, 2, 0, 3));
}

TEST_F(S3FifoPolicyTest, ABlockOnWhichALaterOneHangsWhenItsTurnComesGoesToTheMainQueue) {
  for (BlockHandle block = 0; block < 20; ++block) Insert(block);
  policy_.MustStay(0);
  EXPECT_EQ(Evict(), 1u);
  policy_.MayGo(0);
  for (BlockHandle block = 100; block < 200; ++block) {
    EXPECT_NE(Evict(), 0u);
    Insert(block);
  }
}

TEST_F(S3FifoPolicyTest, OfOneRequestTheDeepestHasItsTurnFirst) {
  ++stamp_;
  for (const BlockHandle block : {0, 1, 2}) {
    policy_.Inserted(block, {.key = block, .depth = block}, stamp_);
    policy_.MayGo(block);
  }
  EXPECT_THAT(EvictAll(), ElementsAre(2, 1, 0));
}

TEST_F(S3FifoPolicyTest, BlocksThatMayNotGoAreNotNamed) {
  for (const BlockHandle block : {1, 2, 3}) Insert(block);
  policy_.MustStay(1);
  policy_.MustStay(3);
  EXPECT_EQ(Evict(), 2u);
  EXPECT_EQ(policy_.NextVictim(), std::nullopt);
  policy_.MayGo(1);
  EXPECT_EQ(Evict(), 1u);
}

}  // namespace
}  // namespace cairn::node
