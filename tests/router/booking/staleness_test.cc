// Predictions that hold, and ones that cease to.
#include "router/booking/staleness.h"

#include <gmock/gmock.h>

namespace cairn::router {
namespace {

TEST(StalenessTest, IsQuietWhilePredictionsHoldAndRaisedWhenTheyCease) {
  Staleness staleness;
  for (int i = 0; i < 100; ++i) staleness.Add(1000, 990);
  EXPECT_FALSE(staleness.Alarm());
  for (int i = 0; i < 100; ++i) staleness.Add(1000, 500);
  EXPECT_TRUE(staleness.Alarm());
  EXPECT_EQ(staleness.predicted_tokens(), 200'000u);
  for (int i = 0; i < 300; ++i) staleness.Add(1000, 1000);
  EXPECT_FALSE(staleness.Alarm());
}

TEST(StalenessTest, AFewBadPredictionsRaiseNoAlarm) {
  Staleness staleness;
  EXPECT_EQ(staleness.RecentShare(), 0);
  staleness.Add(1000, 0);
  EXPECT_EQ(staleness.RecentShare(), 1);
  EXPECT_FALSE(staleness.Alarm());
}

TEST(StalenessTest, TheCautiousShareBelievesManyPredictionsAndNotAFew) {
  Staleness staleness;
  EXPECT_EQ(staleness.CautiousShare(), 0);
  staleness.Add(4000, 0);
  EXPECT_LT(staleness.CautiousShare(), 0.1);
  for (int i = 0; i < 300; ++i) staleness.Add(10'000, 5000);
  EXPECT_NEAR(staleness.CautiousShare(), 0.44, 0.01) << "half, and the tokens of before the first";
  for (int i = 0; i < 300; ++i) staleness.Add(10'000, 20'000);
  EXPECT_EQ(staleness.CautiousShare(), 0) << "more than was predicted is no reproach";
}

TEST(StalenessTest, MoreThanPredictedIsNoAlarm) {
  Staleness staleness;
  for (int i = 0; i < 100; ++i) staleness.Add(1000, 2000);
  EXPECT_LT(staleness.RecentShare(), 0);
  EXPECT_FALSE(staleness.Alarm());
}

}  // namespace
}  // namespace cairn::router
