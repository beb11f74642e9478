// Marks are made and ended in each way there is; what still stands is read key by key.
#include "router/index/speculative_blocks.h"

#include <gmock/gmock.h>

#include "tests/router/numbered_ids.h"

namespace cairn::router {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kStart = absl::UnixEpoch();

BookingId Booking(uint8_t number) {
  BookingId id;
  id.bytes.fill(number);
  return id;
}

class SpeculativeBlocksTest : public ::testing::Test {
 protected:
  std::vector<HolderIndex> HoldersOf(uint32_t key) {
    std::vector<HolderIndex> holders;
    marks_.Visit(NumberedKey(key),
                 [&](HolderIndex holder, PartitionIndex) { holders.push_back(holder); });
    return holders;
  }
  void Mark(uint8_t booking, HolderIndex holder, uint32_t first, uint32_t count) {
    marks_.Mark(Booking(booking), holder, partition_, NumberedKeys(first, count), kStart);
  }

  PartitionTable partitions_{4};
  const PartitionIndex partition_ = *partitions_.Intern(NumberedFingerprint(1), "acme");
  SpeculativeBlocks marks_{
      {.ttl = absl::Seconds(60), .linger = absl::Seconds(1), .marks_max = 10}, 2, &partitions_};
};

TEST_F(SpeculativeBlocksTest, ARecordFromThatHolderEndsTheMarksOfItsKey) {
  Mark(1, 0, 0, 2);
  Mark(2, 0, 0, 1);
  Mark(3, 1, 0, 1);
  EXPECT_THAT(HoldersOf(0), ElementsAre(0, 0, 1));
  marks_.Fed(0, NumberedKey(0));
  EXPECT_THAT(HoldersOf(0), ElementsAre(1));
  EXPECT_THAT(HoldersOf(1), ElementsAre(0));
  EXPECT_EQ(marks_.mark_count(), 2u);
}

TEST_F(SpeculativeBlocksTest, AFailedBookingsMarksEndAtOnce) {
  Mark(1, 0, 0, 3);
  Mark(2, 0, 2, 1);
  marks_.End(Booking(1), /*written=*/false, kStart);
  EXPECT_THAT(HoldersOf(0), IsEmpty());
  EXPECT_THAT(HoldersOf(2), ElementsAre(0));
  EXPECT_EQ(marks_.mark_count(), 1u);
  marks_.End(Booking(1), false, kStart);
  marks_.End(Booking(9), true, kStart);
}

TEST_F(SpeculativeBlocksTest, AWrittenBookingsMarksLingerForTheFeedAndNoLonger) {
  Mark(1, 0, 0, 1);
  marks_.End(Booking(1), /*written=*/true, kStart);
  marks_.Expire(kStart + absl::Milliseconds(999));
  EXPECT_THAT(HoldersOf(0), ElementsAre(0));
  marks_.End(Booking(1), true, kStart + absl::Milliseconds(999));  // Said again: nothing new.
  marks_.Expire(kStart + absl::Seconds(1));
  EXPECT_THAT(HoldersOf(0), IsEmpty());
}

TEST_F(SpeculativeBlocksTest, MarksOfABookingThatIsNeverReportedEndByTtl) {
  Mark(1, 0, 0, 1);
  marks_.Expire(kStart + absl::Seconds(59));
  EXPECT_THAT(HoldersOf(0), ElementsAre(0));
  marks_.End(Booking(1), true, kStart + absl::Milliseconds(59'500));
  marks_.Expire(kStart + absl::Seconds(60));
  EXPECT_THAT(HoldersOf(0), IsEmpty());
  EXPECT_EQ(marks_.mark_count(), 0u);
}

TEST_F(SpeculativeBlocksTest, ANewIncarnationOfTheHolderEndsItsMarks) {
  Mark(1, 0, 0, 1);
  Mark(2, 1, 0, 1);
  marks_.EndHolder(0);
  EXPECT_THAT(HoldersOf(0), ElementsAre(1));
  Mark(3, 0, 0, 1);
  EXPECT_THAT(HoldersOf(0), ElementsAre(1, 0));
}

TEST_F(SpeculativeBlocksTest, PastTheBoundTheFirstKeysAreMarked) {
  Mark(1, 0, 0, 12);
  EXPECT_EQ(marks_.mark_count(), 10u);
  EXPECT_THAT(HoldersOf(9), ElementsAre(0));
  EXPECT_THAT(HoldersOf(10), IsEmpty());
  Mark(2, 0, 20, 1);
  EXPECT_THAT(HoldersOf(20), IsEmpty());
  marks_.End(Booking(1), false, kStart);
  EXPECT_EQ(marks_.mark_count(), 0u);
}

TEST_F(SpeculativeBlocksTest, WhatIsRememberedOfFedMarksCountsToTheBound) {
  Mark(1, 0, 0, 6);
  for (uint32_t key = 0; key < 5; ++key) marks_.Fed(0, NumberedKey(key));
  EXPECT_EQ(marks_.mark_count(), 1u);
  EXPECT_EQ(marks_.key_count(), 6u);
  Mark(2, 0, 20, 6);
  EXPECT_THAT(HoldersOf(23), ElementsAre(0));
  EXPECT_THAT(HoldersOf(24), IsEmpty());
  EXPECT_EQ(marks_.key_count(), 10u);
}

TEST_F(SpeculativeBlocksTest, ABookingIsForgottenWithTheLastOfItsMarks) {
  Mark(1, 0, 0, 10);
  Mark(2, 0, 0, 1);
  for (uint32_t key = 0; key < 10; ++key) marks_.Fed(0, NumberedKey(key));
  EXPECT_EQ(marks_.key_count(), 0u);
  marks_.End(Booking(1), true, kStart);
  marks_.Expire(kStart + absl::Minutes(5));
  Mark(3, 0, 0, 10);
  EXPECT_EQ(marks_.mark_count(), 10u);
}

TEST_F(SpeculativeBlocksTest, AKeyThatAPromptHasTwiceIsCountedRight) {
  const std::vector<BlockKey> keys = {NumberedKey(1), NumberedKey(1)};
  marks_.Mark(Booking(1), 0, partition_, keys, kStart);
  EXPECT_EQ(marks_.mark_count(), 1u);
  EXPECT_EQ(marks_.key_count(), 2u);
  marks_.Fed(0, NumberedKey(1));
  EXPECT_EQ(marks_.key_count(), 0u);
  marks_.Mark(Booking(1), 0, partition_, keys, kStart);
  marks_.End(Booking(1), false, kStart);
  EXPECT_EQ(marks_.mark_count(), 0u);
}

// 65,536 times the same key is a prompt that a client can send; each of them is looked up.
TEST_F(SpeculativeBlocksTest, AKeyThatAPromptHasOftenIsVisitedOnce) {
  const std::vector<BlockKey> keys = {NumberedKey(1), NumberedKey(2), NumberedKey(1),
                                      NumberedKey(1), NumberedKey(2)};
  marks_.Mark(Booking(1), 0, partition_, keys, kStart);
  EXPECT_THAT(HoldersOf(1), ElementsAre(0));
  EXPECT_THAT(HoldersOf(2), ElementsAre(0));
  marks_.Mark(Booking(2), 1, partition_, keys, kStart);
  EXPECT_THAT(HoldersOf(1), ElementsAre(0, 1));
  marks_.End(Booking(1), false, kStart);
  EXPECT_THAT(HoldersOf(1), ElementsAre(1));
  EXPECT_EQ(marks_.mark_count(), 2u);
}

}  // namespace
}  // namespace cairn::router
