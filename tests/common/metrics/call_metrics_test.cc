// Calls of two methods begin and end on a fake clock; what a scrape would get says so.
#include "common/metrics/call_metrics.h"

#include <gmock/gmock.h>

#include <optional>

#include "tests/testing/fake_clock.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;

constexpr absl::string_view kMethods[] = {"Ask", "Tell"};

class CallMetricsTest : public ::testing::Test {
 protected:
  std::string Scrape() const { return metrics_.Text(); }

  testing::FakeClock clock_;
  Metrics metrics_;
  CallMetrics calls_{"cairn_sample", kMethods, &metrics_, &clock_};
};

TEST_F(CallMetricsTest, ACallCountsByMethodAndCodeWithItsTime) {
  CallMetrics::Call call = calls_.Begin(1);
  EXPECT_THAT(Scrape(), HasSubstr("cairn_sample_rpcs_running{method=\"Tell\"} 1"));
  clock_.Advance(absl::Seconds(3));
  call.End(absl::StatusCode::kNotFound);
  EXPECT_THAT(Scrape(), HasSubstr("cairn_sample_rpcs_running{method=\"Tell\"} 0"));
  EXPECT_THAT(Scrape(), HasSubstr("cairn_sample_rpcs_total{code=\"NOT_FOUND\",method=\"Tell\"} 1"));
  EXPECT_THAT(Scrape(), HasSubstr("cairn_sample_rpc_seconds_sum{method=\"Tell\"} 3"));
  EXPECT_THAT(Scrape(), HasSubstr("cairn_sample_rpc_seconds_count{method=\"Ask\"} 0"));
}

TEST_F(CallMetricsTest, ACallEndsOnce) {
  CallMetrics::Call call = calls_.Begin(0);
  call.End(absl::StatusCode::kOk);
  call.End(absl::StatusCode::kInternal);
  EXPECT_THAT(Scrape(), HasSubstr("cairn_sample_rpcs_total{code=\"OK\",method=\"Ask\"} 1"));
  EXPECT_THAT(Scrape(), HasSubstr("cairn_sample_rpcs_total{code=\"INTERNAL\",method=\"Ask\"} 0"));
  EXPECT_THAT(Scrape(), HasSubstr("cairn_sample_rpcs_running{method=\"Ask\"} 0"));
}

TEST_F(CallMetricsTest, ACallThatIsOnlyDestroyedOrReplacedWasCancelled) {
  {
    std::optional<CallMetrics::Call> moved(calls_.Begin(0));
    CallMetrics::Call holder = *std::move(moved);
    moved.reset();
    EXPECT_THAT(Scrape(), HasSubstr("cairn_sample_rpcs_running{method=\"Ask\"} 1"));
    holder = calls_.Begin(0);
    EXPECT_THAT(Scrape(),
                HasSubstr("cairn_sample_rpcs_total{code=\"CANCELLED\",method=\"Ask\"} 1"));
  }
  EXPECT_THAT(Scrape(), HasSubstr("cairn_sample_rpcs_total{code=\"CANCELLED\",method=\"Ask\"} 2"));
  EXPECT_THAT(Scrape(), HasSubstr("cairn_sample_rpcs_running{method=\"Ask\"} 0"));
}

}  // namespace
}  // namespace cairn
