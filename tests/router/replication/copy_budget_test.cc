// Method: bytes are taken at given times; what is granted and what is refused.
#include "router/replication/copy_budget.h"

#include <gtest/gtest.h>

namespace cairn::router {
namespace {

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(1);

TEST(CopyBudget, WhatIsTakenOverASecondsWorthIsPaidBeforeTheNext) {
  CopyBudget budget(100, 10);
  EXPECT_TRUE(budget.Take(250, kNow));
  EXPECT_FALSE(budget.Take(1, kNow + absl::Seconds(1))) << "still in debt";
  EXPECT_TRUE(budget.Take(1, kNow + absl::Seconds(2)));
}

TEST(CopyBudget, NotMoreIsUnderWayThanMay) {
  CopyBudget budget(100, 2);
  EXPECT_TRUE(budget.Take(50, kNow));
  EXPECT_TRUE(budget.Take(100, kNow + absl::Seconds(1)));
  EXPECT_FALSE(budget.Take(100, kNow + absl::Seconds(5)));
  budget.End(100, 100);
  EXPECT_TRUE(budget.Take(100, kNow + absl::Seconds(5)));
  EXPECT_EQ(budget.outstanding_bytes(), 150);
}

TEST(CopyBudget, WhatWasBookedAndDidNotMoveIsGivenBack) {
  CopyBudget budget(100, 10);
  EXPECT_TRUE(budget.Take(1000, kNow));
  budget.End(1000, 0);
  EXPECT_TRUE(budget.Take(10, kNow + absl::Milliseconds(1)));
}

// Whatever is asked for, over a long time no more is granted than the rate allows.
TEST(CopyBudget, ALongTimesBytesAreWithinTheRate) {
  CopyBudget budget(1000, 4);
  uint64_t granted = 0;
  for (int step = 0; step < 10'000; ++step) {
    const uint64_t bytes = 50 + 37 * static_cast<uint64_t>(step % 11);
    if (!budget.Take(bytes, kNow + absl::Milliseconds(10 * step))) continue;
    granted += bytes;
    budget.End(bytes, bytes);
  }
  EXPECT_LE(granted, 1000u * 100 + 1000 + 420);
  EXPECT_GE(granted, 1000u * 99);
}

}  // namespace
}  // namespace cairn::router
