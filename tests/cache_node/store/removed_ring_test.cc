// Small rings by hand, and random calls against a list that is searched from its end.

#include "cache_node/store/removed_ring.h"

#include <gmock/gmock.h>

#include <deque>
#include <random>

namespace cairn::node {
namespace {

BlockKey Key(uint8_t number) {
  BlockKey key;
  key.bytes[3] = number;
  return key;
}

TEST(RemovedRingTest, RemembersWhyABlockLeft) {
  RemovedRing ring(4);
  ring.Remember(1, Key(1), RemovalReason::kEvicted);
  ring.Remember(1, Key(2), RemovalReason::kDeleted);
  EXPECT_EQ(ring.ReasonOf(1, Key(1)), RemovalReason::kEvicted);
  EXPECT_EQ(ring.ReasonOf(1, Key(2)), RemovalReason::kDeleted);
  EXPECT_EQ(ring.ReasonOf(1, Key(3)), RemovalReason::kNone);
}

TEST(RemovedRingTest, PartitionsDoNotSeeEachOther) {
  RemovedRing ring(4);
  ring.Remember(1, Key(1), RemovalReason::kEvicted);
  EXPECT_EQ(ring.ReasonOf(2, Key(1)), RemovalReason::kNone);
}

TEST(RemovedRingTest, OldestIsForgottenFirst) {
  RemovedRing ring(3);
  for (uint8_t i = 1; i <= 4; ++i) ring.Remember(1, Key(i), RemovalReason::kEvicted);
  EXPECT_EQ(ring.ReasonOf(1, Key(1)), RemovalReason::kNone);
  for (uint8_t i = 2; i <= 4; ++i) EXPECT_NE(ring.ReasonOf(1, Key(i)), RemovalReason::kNone);
  EXPECT_EQ(ring.size(), 3u);
}

TEST(RemovedRingTest, LatestReasonWinsAndOutlivesTheFirstPlace) {
  RemovedRing ring(3);
  ring.Remember(1, Key(1), RemovalReason::kEvicted);
  ring.Remember(1, Key(1), RemovalReason::kCleared);
  ring.Remember(1, Key(2), RemovalReason::kEvicted);
  ring.Remember(1, Key(3), RemovalReason::kEvicted);  // Overwrites the first place of key 1.
  EXPECT_EQ(ring.ReasonOf(1, Key(1)), RemovalReason::kCleared);
}

TEST(RemovedRingTest, KeyThatIsPutAgainIsForgotten) {
  RemovedRing ring(3);
  ring.Remember(1, Key(1), RemovalReason::kEvicted);
  ring.Forget(1, Key(1));
  ring.Forget(1, Key(9));
  EXPECT_EQ(ring.ReasonOf(1, Key(1)), RemovalReason::kNone);
  EXPECT_EQ(ring.size(), 0u);
}

TEST(RemovedRingTest, KnowsHowLongAgoABlockLeft) {
  const absl::Time start = absl::FromUnixSeconds(1000);
  RemovedRing ring(4);
  ring.AdvanceTo(start);
  ring.Remember(1, Key(1), RemovalReason::kEvicted);
  ring.AdvanceTo(start + absl::Seconds(7));
  ring.Remember(1, Key(2), RemovalReason::kEvicted);
  const absl::Time now = start + absl::Seconds(10);
  EXPECT_EQ(ring.AgeOf(1, Key(1), now), absl::Seconds(10));
  EXPECT_EQ(ring.AgeOf(1, Key(2), now), absl::Seconds(3));
  EXPECT_EQ(ring.AgeOf(1, Key(3), now), std::nullopt);
  ring.Remember(1, Key(1), RemovalReason::kDeleted);
  EXPECT_EQ(ring.AgeOf(1, Key(1), now), absl::Seconds(3)) << "it came back and left again";
}

TEST(RemovedRingTest, AgreesWithAListSearchedFromItsEnd) {
  struct Entry {
    uint8_t number;
    RemovalReason reason;  // kNone: forgotten.
  };
  constexpr size_t kEntriesMax = 7;
  RemovedRing ring(kEntriesMax);
  std::deque<Entry> list;
  std::mt19937_64 random(1);
  for (int step = 0; step < 20000; ++step) {
    const auto number = static_cast<uint8_t>(random() % 12);
    if (random() % 4 == 0) {
      ring.Forget(1, Key(number));
      for (Entry& entry : list) {
        if (entry.number == number) entry.reason = RemovalReason::kNone;
      }
    } else {
      const auto reason = static_cast<RemovalReason>(1 + random() % 5);
      ring.Remember(1, Key(number), reason);
      list.push_back({number, reason});
      if (list.size() > kEntriesMax) list.pop_front();
    }
    for (uint8_t key = 0; key < 12; ++key) {
      RemovalReason expected = RemovalReason::kNone;
      for (const Entry& entry : list) {
        if (entry.number == key) expected = entry.reason;
      }
      ASSERT_EQ(ring.ReasonOf(1, Key(key)), expected) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace cairn::node
