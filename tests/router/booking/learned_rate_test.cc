// Reports of known rates, and reports that are none.
#include "router/booking/learned_rate.h"

#include <gmock/gmock.h>

#include <limits>

namespace cairn::router {
namespace {

TEST(LearnedRateTest, StartsAtThePriorAndComesToWhatIsReported) {
  LearnedRate rate(1000);
  EXPECT_EQ(rate.per_second(), 1000);
  rate.Add(3000, 1);
  EXPECT_GT(rate.per_second(), 1000);
  EXPECT_LT(rate.per_second(), 3000);
  for (int i = 0; i < 200; ++i) rate.Add(3000, 1);
  EXPECT_NEAR(rate.per_second(), 3000, 1);
}

TEST(LearnedRateTest, LongRequestsCountForMoreThanShortOnes) {
  LearnedRate rate(1000);
  for (int i = 0; i < 200; ++i) {
    rate.Add(10'000, 10);  // 1,000 a second.
    rate.Add(50, 0.01);    // 5,000 a second.
  }
  EXPECT_NEAR(rate.per_second(), 1000, 10);
}

TEST(LearnedRateTest, WhatIsNoMeasurementChangesNothing) {
  LearnedRate rate(1000);
  rate.Add(0, 1);
  rate.Add(100, 0);
  rate.Add(100, -1);
  rate.Add(100, std::numeric_limits<double>::quiet_NaN());
  rate.Add(std::numeric_limits<double>::infinity(), 1);
  EXPECT_EQ(rate.per_second(), 1000);
}

TEST(LearnedRateTest, StaysWithinAFactorOfThePrior) {
  LearnedRate rate(1000);
  for (int i = 0; i < 100; ++i) rate.Add(1e18, 1);
  EXPECT_NEAR(rate.per_second(), 1e6, 1e-3);
  for (int i = 0; i < 2000; ++i) rate.Add(1, 1e6);
  EXPECT_EQ(rate.per_second(), 1);
}

TEST(LearnedRateTest, OneReportThatCannotBeIsOutweighedByTheNext) {
  LearnedRate rate(15'000);
  rate.Add(100, 1e300);
  for (int i = 0; i < 50; ++i) rate.Add(15'000, 1);
  EXPECT_GT(rate.per_second(), 10'000);
}

}  // namespace
}  // namespace cairn::router
