// Bookings are made, reported on and left alone, on a clock that the test moves; loads must always
// be the sum of what is open.
#include "router/booking/booking_ledger.h"

#include <gmock/gmock.h>

#include <random>

#include "tests/testing/seeded_random.h"

namespace cairn::router {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class BookingLedgerTest : public ::testing::Test {
 protected:
  // 1,000 tokens and 100 of answer; replica 1 has 400 of them, replica 2 has 100.
  BookingId Book() {
    const auto id = ledger_.Book(
        {.prompt_tokens = 1000, .output_tokens = 100, .predicted = {{1, 400}, {2, 100}}}, now_);
    EXPECT_TRUE(id.ok());
    return *id;
  }
  bool Report(const BookingId& booking, OutcomePhase phase,
              std::optional<ReplicaId> replica = std::nullopt, uint64_t cached = 0,
              uint64_t computed = 0, double seconds = 0) {
    return ledger_.Report({.booking = booking,
                           .phase = phase,
                           .replica = replica,
                           .cached_tokens = cached,
                           .computed_tokens = computed,
                           .compute_seconds = seconds},
                          now_);
  }

  testing::SeededRandom random_{1};
  BookingLedger ledger_{{.prefill_ttl = absl::Seconds(10),
                         .decode_ttl = absl::Seconds(30),
                         .bookings_max = 4,
                         .prefill_tokens_per_second_prior = 1000},
                        &random_};
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(BookingLedgerTest, PrefillCountsUntilTheFirstTokenAndKvUntilTheEnd) {
  const BookingId id = Book();
  EXPECT_EQ(ledger_.LoadOf(1), (ReplicaLoad{600, 1100, 1}));
  EXPECT_TRUE(Report(id, OutcomePhase::kFirstToken));
  EXPECT_EQ(ledger_.LoadOf(1), (ReplicaLoad{0, 1100, 1}));
  EXPECT_TRUE(Report(id, OutcomePhase::kEnd));
  EXPECT_EQ(ledger_.LoadOf(1), ReplicaLoad{});
  EXPECT_EQ(ledger_.booking_count(), 0u);
}

TEST_F(BookingLedgerTest, AnEndWithoutAFirstTokenFreesBothParts) {
  EXPECT_TRUE(Report(Book(), OutcomePhase::kEnd));
  EXPECT_EQ(ledger_.LoadOf(1), ReplicaLoad{});
}

TEST_F(BookingLedgerTest, ReportsAreIdempotentAndUnknownOnesOnlyCounted) {
  const BookingId id = Book();
  EXPECT_TRUE(Report(id, OutcomePhase::kFirstToken, std::nullopt, 300, 700));
  EXPECT_TRUE(Report(id, OutcomePhase::kFirstToken, std::nullopt, 300, 700));
  EXPECT_EQ(ledger_.staleness().predicted_tokens(), 400u);
  EXPECT_EQ(ledger_.staleness().delivered_tokens(), 300u);
  EXPECT_TRUE(Report(id, OutcomePhase::kEnd, std::nullopt, 300, 700));
  EXPECT_EQ(ledger_.staleness().delivered_tokens(), 300u);
  EXPECT_FALSE(Report(id, OutcomePhase::kEnd));
  EXPECT_FALSE(Report(BookingId{}, OutcomePhase::kFirstToken));
  EXPECT_EQ(ledger_.counters().reports_unknown, 2u);
  EXPECT_EQ(ledger_.counters().ended, 1u);
}

TEST_F(BookingLedgerTest, ABookingThatAnotherReplicaTookMovesThere) {
  const BookingId id = Book();
  EXPECT_TRUE(Report(id, OutcomePhase::kFirstToken, 2, 100, 900));
  EXPECT_EQ(ledger_.LoadOf(1), ReplicaLoad{});
  EXPECT_EQ(ledger_.LoadOf(2), (ReplicaLoad{0, 1100, 1}));
  EXPECT_EQ(ledger_.StalenessOf(2)->predicted_tokens(), 100u);
  EXPECT_EQ(ledger_.ReplicaOf(id), ReplicaId{2});
}

TEST_F(BookingLedgerTest, ABookingThatWentElsewhereIsNoLoadHere) {
  const BookingId id = Book();
  EXPECT_TRUE(ledger_.Report({.booking = id,
                              .phase = OutcomePhase::kFirstToken,
                              .replica = std::nullopt,
                              .elsewhere = true},
                             now_));
  EXPECT_EQ(ledger_.LoadOf(1), ReplicaLoad{});
  EXPECT_EQ(ledger_.ReplicaOf(id), std::nullopt);
  EXPECT_TRUE(Report(id, OutcomePhase::kEnd));
}

TEST_F(BookingLedgerTest, WhatIsNotReportedOnEndsByItself) {
  const BookingId silent = Book();
  const BookingId decoding = Book();
  now_ += absl::Seconds(9);
  EXPECT_TRUE(Report(decoding, OutcomePhase::kFirstToken));
  now_ += absl::Seconds(1);
  EXPECT_THAT(ledger_.Expire(now_), ElementsAre(silent));
  EXPECT_EQ(ledger_.LoadOf(1), (ReplicaLoad{0, 1100, 1}));
  now_ += absl::Seconds(28);
  EXPECT_THAT(ledger_.Expire(now_), IsEmpty());
  now_ += absl::Seconds(1);
  EXPECT_THAT(ledger_.Expire(now_), ElementsAre(decoding));
  EXPECT_EQ(ledger_.LoadOf(1), ReplicaLoad{});
  EXPECT_EQ(ledger_.counters().expired, 2u);
}

TEST_F(BookingLedgerTest, PastTheBoundNothingIsBooked) {
  for (int i = 0; i < 4; ++i) Book();
  const auto refused = ledger_.Book({.prompt_tokens = 1, .predicted = {{1, 0}}}, now_);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ledger_.LoadOf(1), (ReplicaLoad{2400, 4400, 4}));
}

TEST_F(BookingLedgerTest, RatesAreLearnedByReplica) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(Report(Book(), OutcomePhase::kEnd, 2, 0, 5000, 1));
  }
  EXPECT_NEAR(ledger_.PrefillTokensPerSecond(2), 5000, 50);
  EXPECT_EQ(ledger_.PrefillTokensPerSecond(1), 1000);
  EXPECT_EQ(ledger_.PrefillTokensPerSecond(77), 1000);
}

TEST_F(BookingLedgerTest, AReplicaThatIsGoneLeavesNoLoadAndItsBookingsCanStillEnd) {
  const BookingId id = Book();
  ledger_.Forget(1);
  EXPECT_EQ(ledger_.LoadOf(1), ReplicaLoad{});
  EXPECT_TRUE(Report(id, OutcomePhase::kFirstToken, std::nullopt, 1, 1, 1));
  EXPECT_TRUE(Report(id, OutcomePhase::kEnd));
}

TEST_F(BookingLedgerTest, LoadsAreTheSumOfWhatIsOpenUnderRandomReports) {
  BookingLedger ledger({.prefill_ttl = absl::Seconds(10), .decode_ttl = absl::Seconds(30)},
                       &random_);
  std::mt19937 random(3);
  const auto pick = [&](uint32_t below) { return static_cast<uint32_t>(random() % below); };
  std::vector<BookingId> ids;
  for (int step = 0; step < 5000; ++step) {
    now_ += absl::Milliseconds(pick(40));
    if (pick(3) == 0 || ids.empty()) {
      ids.push_back(*ledger.Book({.prompt_tokens = pick(1000),
                                  .output_tokens = pick(10),
                                  .predicted = {{1 + pick(3), pick(2000)}, {1 + pick(3), 7}}},
                                 now_));
    } else {
      ledger.Report({.booking = ids[pick(static_cast<uint32_t>(ids.size()))],
                     .phase = pick(2) == 0 ? OutcomePhase::kEnd : OutcomePhase::kFirstToken,
                     .replica = pick(2) == 0 ? std::optional<ReplicaId>(1 + pick(4)) : std::nullopt,
                     .elsewhere = pick(9) == 0,
                     .cached_tokens = pick(5)},
                    now_);
    }
    if (pick(100) == 0) ledger.Expire(now_);
  }
  for (const BookingId& id : ids) ledger.Report({.booking = id, .replica = std::nullopt}, now_);
  for (ReplicaId replica = 1; replica < 6; ++replica) {
    EXPECT_EQ(ledger.LoadOf(replica), ReplicaLoad{});
  }
  EXPECT_EQ(ledger.booking_count(), 0u);
}

}  // namespace
}  // namespace cairn::router
