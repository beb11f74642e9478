// Quantiles of known and of random values against the sorted values themselves.
#include "client/replay/latency_recorder.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <vector>

namespace cairn::replay {
namespace {

TEST(LatencyRecorder, SaysZeroBeforeAnythingIsRecorded) {
  const LatencyRecorder recorder;
  EXPECT_EQ(recorder.count(), 0u);
  EXPECT_EQ(recorder.Quantile(0.5), absl::ZeroDuration());
}

TEST(LatencyRecorder, OneValueIsEveryQuantile) {
  LatencyRecorder recorder;
  recorder.Record(absl::Microseconds(123457));
  EXPECT_EQ(recorder.Quantile(0.001), absl::Microseconds(123457));
  EXPECT_EQ(recorder.Quantile(1), absl::Microseconds(123457));
}

TEST(LatencyRecorder, SmallValuesAreExact) {
  LatencyRecorder recorder;
  for (int i = 1; i <= 50; ++i) recorder.Record(absl::Nanoseconds(i));
  EXPECT_EQ(recorder.Quantile(0.02), absl::Nanoseconds(1));
  EXPECT_EQ(recorder.Quantile(0.5), absl::Nanoseconds(25));
  EXPECT_EQ(recorder.Quantile(0.99), absl::Nanoseconds(50));
}

TEST(LatencyRecorder, TheRareSlowOnesShowInP99NotInP50) {
  LatencyRecorder recorder;
  for (int i = 0; i < 98; ++i) recorder.Record(absl::Milliseconds(1));
  for (int i = 0; i < 2; ++i) recorder.Record(absl::Seconds(1));
  EXPECT_NEAR(absl::ToDoubleMilliseconds(recorder.Quantile(0.5)), 1, 1.0 / 64);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(recorder.Quantile(0.99)), 1000, 1000.0 / 64);
}

TEST(LatencyRecorder, QuantilesAreWithinOne64thOfTheTruth) {
  std::mt19937_64 random(11);
  LatencyRecorder recorder;
  std::vector<int64_t> values;
  for (int i = 0; i < 20000; ++i) {
    const int bits = static_cast<int>(random() % 60);
    values.push_back(static_cast<int64_t>(random() >> (63 - bits)));
    recorder.Record(absl::Nanoseconds(values.back()));
  }
  std::sort(values.begin(), values.end());
  for (const double q : {0.01, 0.25, 0.5, 0.9, 0.99, 0.999}) {
    const auto rank = static_cast<size_t>(q * 20000) - 1;
    const auto truth = static_cast<double>(values[rank]);
    EXPECT_NEAR(absl::ToDoubleNanoseconds(recorder.Quantile(q)), truth, truth / 64 + 1) << q;
  }
}

TEST(LatencyRecorder, TheExtremesAreTaken) {
  LatencyRecorder recorder;
  recorder.Record(-absl::Seconds(1));
  recorder.Record(absl::InfiniteDuration());
  EXPECT_EQ(recorder.count(), 2u);
  EXPECT_EQ(recorder.Quantile(0.5), absl::ZeroDuration());
  EXPECT_GT(recorder.Quantile(1), absl::Hours(24 * 365 * 200));
}

TEST(LatencyRecorder, MergingIsRecordingInOnePlace) {
  LatencyRecorder first, second, both;
  for (int i = 0; i < 1000; ++i) {
    const absl::Duration value = absl::Microseconds(i * i);
    (i % 3 == 0 ? first : second).Record(value);
    both.Record(value);
  }
  first.Merge(second);
  first.Merge(LatencyRecorder());
  EXPECT_EQ(first.count(), both.count());
  for (const double q : {0.001, 0.5, 0.99, 1.0}) EXPECT_EQ(first.Quantile(q), both.Quantile(q));
}

TEST(LatencyRecorder, MergingIntoAnEmptyOneCopies) {
  LatencyRecorder two, copy;
  two.Record(absl::Microseconds(123457));
  two.Record(absl::Seconds(1));
  copy.Merge(two);
  EXPECT_EQ(copy.count(), 2u);
  EXPECT_EQ(copy.Quantile(0.5), two.Quantile(0.5));
  EXPECT_EQ(copy.Quantile(1), two.Quantile(1));
}

}  // namespace
}  // namespace cairn::replay
