// Registers functions, scrapes with Text(), and lets registrations go, also during a scrape.
#include "common/metrics/callback_metric.h"

#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/metrics/metrics.h"
#include "gmock/gmock.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(CallbackMetricTest, IsAskedAtEachScrape) {
  Metrics metrics;
  double used = 1;
  const CallbackMetric metric = metrics.AddCallback(CallbackKind::kGauge, "cairn_used_bytes",
                                                    "Bytes in use.", [&] { return used; });
  EXPECT_THAT(metrics.Text(), HasSubstr("cairn_used_bytes 1\n"));
  used = 2;
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("# TYPE cairn_used_bytes gauge\n"));
  EXPECT_THAT(text, HasSubstr("cairn_used_bytes 2\n"));
}

TEST(CallbackMetricTest, EndsWithItsRegistration) {
  Metrics metrics;
  {
    const CallbackMetric metric = metrics.AddCallback(CallbackKind::kGauge, "cairn_used_bytes",
                                                      "Bytes in use.", [] { return 1; });
    EXPECT_THAT(metrics.Text(), HasSubstr("cairn_used_bytes"));
  }
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("cairn_used_bytes")));
}

TEST(CallbackMetricTest, MayBeRegisteredAnewUnderTheSameName) {
  Metrics metrics;
  CallbackMetric metric =
      metrics.AddCallback(CallbackKind::kCounter, "cairn_runs_total", "Runs.", [] { return 1; });
  metric = CallbackMetric();
  metric =
      metrics.AddCallback(CallbackKind::kCounter, "cairn_runs_total", "Runs.", [] { return 2; });
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("# TYPE cairn_runs_total counter\n"));
  EXPECT_THAT(text, HasSubstr("cairn_runs_total 2\n"));
}

TEST(CallbackMetricTest, OneNameWithSeveralLabelsIsOneFamily) {
  Metrics metrics;
  const CallbackMetric host = metrics.AddCallback(CallbackKind::kGauge, "cairn_used_bytes",
                                                  "Bytes.", [] { return 1; }, {{"tier", "host"}});
  const CallbackMetric disk = metrics.AddCallback(CallbackKind::kGauge, "cairn_used_bytes",
                                                  "Bytes.", [] { return 2; }, {{"tier", "disk"}});
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("cairn_used_bytes{tier=\"host\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("cairn_used_bytes{tier=\"disk\"} 2\n"));
  EXPECT_EQ(text.find("# HELP"), text.rfind("# HELP"));
}

TEST(CallbackMetricTest, ASeriesAddsUpWhatIsBeyondItsBound) {
  Metrics metrics;
  const CallbackMetric metric = metrics.AddCallbackSeries(
      CallbackKind::kGauge, "cairn_tenant_bytes", "Bytes of a tenant.", "tenant", 2, [] {
        return std::vector<CallbackSample>{{"a", 1}, {"b", 2}, {"c", 4}, {"d", 8}};
      });
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("cairn_tenant_bytes{tenant=\"a\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("cairn_tenant_bytes{tenant=\"b\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("cairn_tenant_bytes{tenant=\"other\"} 12\n"));
  EXPECT_THAT(text, Not(HasSubstr("tenant=\"c\"")));
}

TEST(CallbackMetricTest, AFunctionMayRegisterAndScrapeItself) {
  Metrics metrics;
  CallbackMetric inner;
  const CallbackMetric outer =
      metrics.AddCallback(CallbackKind::kGauge, "cairn_outer", "Takes every lock.", [&] {
        inner = metrics.AddCallback(CallbackKind::kGauge, "cairn_inner", "In.", [] { return 7; });
        return 1;
      });
  EXPECT_THAT(metrics.Text(), HasSubstr("cairn_outer 1\n"));
  inner = CallbackMetric();
}

TEST(CallbackMetricTest, DestructionWaitsForTheCallUnderWay) {
  Metrics metrics;
  absl::Notification called, release;
  bool returned = false;
  auto metric = std::make_unique<CallbackMetric>(
      metrics.AddCallback(CallbackKind::kGauge, "cairn_slow", "Slow.", [&] {
        called.Notify();
        release.WaitForNotification();
        returned = true;
        return 1;
      }));
  std::thread scraper([&] { metrics.Text(); });
  called.WaitForNotification();
  std::thread releaser([&] { release.Notify(); });
  metric.reset();
  EXPECT_TRUE(returned);
  scraper.join();
  releaser.join();
}

using CallbackMetricDeathTest = ::testing::Test;

TEST(CallbackMetricDeathTest, TheSameNameAndLabelsTwiceIsABug) {
  Metrics metrics;
  const CallbackMetric metric =
      metrics.AddCallback(CallbackKind::kGauge, "cairn_x", "X.", [] { return 1; });
  EXPECT_DEATH((void)metrics.AddCallback(CallbackKind::kGauge, "cairn_x", "X.", [] { return 1; }),
               "cairn_x");
}

}  // namespace
}  // namespace cairn
