// Makes metrics, records, and reads what a scrape would get. Misuse is a death test.
#include "common/metrics/metrics.h"

#include "gmock/gmock.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(MetricsTest, ACounterIsServedWithHelpTypeAndLabels) {
  Metrics metrics;
  const Counter hits = metrics.AddCounter("cairn_hits_total", "Tokens found.", {{"tier", "host"}});
  hits.Increment(3);
  hits.Increment();
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("# HELP cairn_hits_total Tokens found.\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE cairn_hits_total counter\n"));
  EXPECT_THAT(text, HasSubstr("cairn_hits_total{tier=\"host\"} 4\n"));
}

TEST(MetricsTest, AGaugeGoesUpAndDown) {
  Metrics metrics;
  const Gauge watchers = metrics.AddGauge("cairn_watchers", "Feeds that are open.");
  watchers.Set(5);
  watchers.Add(-2);
  EXPECT_EQ(watchers.Value(), 3);
  EXPECT_THAT(metrics.Text(), HasSubstr("cairn_watchers 3\n"));
}

TEST(MetricsTest, AHistogramCountsUpToEachBound) {
  Metrics metrics;
  const Histogram seconds = metrics.AddHistogram("cairn_get_seconds", "A get.", {0.5, 1});
  seconds.Observe(0.25);
  seconds.Observe(0.75);
  seconds.Observe(9);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("cairn_get_seconds_bucket{le=\"0.5\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("cairn_get_seconds_bucket{le=\"1\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("cairn_get_seconds_bucket{le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("cairn_get_seconds_count 3\n"));
}

TEST(MetricsTest, OneNameTakesSeveralLabelValues) {
  Metrics metrics;
  metrics.AddCounter("cairn_hits_total", "Tokens found.", {{"tier", "host"}}).Increment(1);
  metrics.AddCounter("cairn_hits_total", "Tokens found.", {{"tier", "disk"}}).Increment(2);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("cairn_hits_total{tier=\"host\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("cairn_hits_total{tier=\"disk\"} 2\n"));
}

TEST(MetricsTest, AHandleOfNoMetricsRecordsNothing) {
  const Counter counter;
  counter.Increment();
  EXPECT_EQ(counter.Value(), 0);
  const Gauge gauge;
  gauge.Set(7);
  EXPECT_EQ(gauge.Value(), 0);
  Histogram().Observe(1);
}

TEST(MetricsTest, ANegativeIncrementIsIgnored) {
  Metrics metrics;
  const Counter hits = metrics.AddCounter("cairn_hits_total", "Tokens found.");
  hits.Increment(2);
  hits.Increment(-1);
  EXPECT_EQ(hits.Value(), 2);
}

TEST(MetricsTest, ExponentialBucketsGrowByTheFactor) {
  EXPECT_THAT(ExponentialBuckets(1, 2, 4), ElementsAre(1, 2, 4, 8));
  EXPECT_LE(LatencyBucketsSeconds().front(), 50e-6);
  EXPECT_GE(LatencyBucketsSeconds().back(), 20);
}

using MetricsDeathTest = ::testing::Test;

TEST(MetricsDeathTest, NamesFollowTheRules) {
  Metrics metrics;
  EXPECT_DEATH(metrics.AddGauge("watchers", "No prefix."), "watchers");
  EXPECT_DEATH(metrics.AddGauge("cairn_Watchers", "Upper case."), "cairn_Watchers");
  EXPECT_DEATH(metrics.AddGauge("cairn_watchers", ""), "cairn_watchers");
  EXPECT_DEATH(metrics.AddGauge("cairn_watchers_total", "Ends as a counter."), "_total");
  EXPECT_DEATH(metrics.AddCounter("cairn_hits", "Does not."), "cairn_hits");
}

TEST(MetricsDeathTest, ANameMeansOneThing) {
  Metrics metrics;
  metrics.AddCounter("cairn_hits_total", "Tokens found.", {{"tier", "host"}});
  EXPECT_DEATH(metrics.AddCounter("cairn_hits_total", "Tokens found.", {{"tier", "host"}}),
               "made twice");
  EXPECT_DEATH(metrics.AddCounter("cairn_hits_total", "Tokens found."), "another type, help");
  EXPECT_DEATH(metrics.AddCounter("cairn_hits_total", "Other.", {{"tier", "disk"}}),
               "another type, help");
}

}  // namespace
}  // namespace cairn
