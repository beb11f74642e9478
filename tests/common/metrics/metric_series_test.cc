// Feeds a series more label values than it may hold, also from several threads at once.
#include "common/metrics/metric_series.h"

#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/metrics/metrics.h"
#include "gmock/gmock.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricSeriesTest, EachValueHasItsOwnSeries) {
  Metrics metrics;
  const auto bytes = metrics.AddCounterSeries("cairn_bytes_total", "Bytes.", "tenant", 4);
  bytes->With("a").Increment(1);
  bytes->With("b").Increment(2);
  bytes->With("a").Increment(3);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("cairn_bytes_total{tenant=\"a\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("cairn_bytes_total{tenant=\"b\"} 2\n"));
}

TEST(MetricSeriesTest, ValuesBeyondTheBoundShareOther) {
  Metrics metrics;
  const auto bytes = metrics.AddCounterSeries("cairn_bytes_total", "Bytes.", "tenant", 2);
  for (int i = 0; i < 1000; ++i) bytes->With(absl::StrCat("tenant", i)).Increment();
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("cairn_bytes_total{tenant=\"tenant1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("cairn_bytes_total{tenant=\"other\"} 998\n"));
  EXPECT_THAT(text, Not(HasSubstr("tenant2\"")));
}

TEST(MetricSeriesTest, AKnownValueKeepsItsSeriesWhenTheBoundIsReached) {
  Metrics metrics;
  const auto used = metrics.AddGaugeSeries("cairn_used_bytes", "Bytes.", "tenant", 1);
  used->With("first").Set(1);
  used->With("second").Set(2);
  used->With("first").Set(3);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("cairn_used_bytes{tenant=\"first\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("cairn_used_bytes{tenant=\"other\"} 2\n"));
}

TEST(MetricSeriesTest, AnOverlongValueIsCountedUnderOther) {
  Metrics metrics;
  const auto bytes = metrics.AddCounterSeries("cairn_bytes_total", "Bytes.", "tenant", 2);
  bytes->With(std::string(kLabelValueBytesMax + 1, 'x')).Increment();
  EXPECT_THAT(metrics.Text(), HasSubstr("cairn_bytes_total{tenant=\"other\"} 1\n"));
}

TEST(MetricSeriesTest, HistogramsTakeSeriesToo) {
  Metrics metrics;
  const auto seconds =
      metrics.AddHistogramSeries("cairn_call_seconds", "A call.", {1.0}, "method", 2);
  seconds->With("Get").Observe(0.5);
  EXPECT_THAT(metrics.Text(), HasSubstr("cairn_call_seconds_bucket{method=\"Get\",le=\"1\"} 1\n"));
}

TEST(MetricSeriesTest, ThreadsThatRaceForTheLastPlacesLoseNoCount) {
  Metrics metrics;
  const auto bytes = metrics.AddCounterSeries("cairn_bytes_total", "Bytes.", "tenant", 3);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&bytes] {
      for (int i = 0; i < 500; ++i) bytes->With(absl::StrCat("t", i % 10)).Increment();
    });
  }
  for (std::thread& thread : threads) thread.join();
  double sum = bytes->With("other").Value();
  for (int i = 0; i < 10; ++i) {
    const double value = bytes->With(absl::StrCat("t", i)).Value();
    if (value == 200) sum += value;
  }
  EXPECT_EQ(bytes->With("other").Value(), 1400);
  EXPECT_EQ(sum, 2000);
}

}  // namespace
}  // namespace cairn
