// Rates of tenants on a fake clock: how much passes, how long the rest is told to wait.
#include "cache_node/tenants/tenant_rates.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "common/rpc/retry_status.h"
#include "tests/testing/fake_clock.h"

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

class TenantRatesTest : public ::testing::Test {
 protected:
  // How many of `calls` requests at once are admitted.
  int Admitted(const std::string& tenant, int calls) {
    int admitted = 0;
    for (int i = 0; i < calls; ++i) admitted += rates_.Admit(tenant).ok() ? 1 : 0;
    return admitted;
  }
  void Limit(const std::string& tenant, const TenantRate& rate) {
    limits_.named[tenant] = rate;
    rates_.SetLimits(limits_);
  }

  testing::FakeClock clock_;
  TenantRates rates_{&clock_};
  TenantRateLimits limits_;
};

TEST_F(TenantRatesTest, WithoutLimitsEverythingPasses) {
  EXPECT_EQ(Admitted("a", 1000), 1000);
  rates_.Charge("a", uint64_t{1} << 60);
  EXPECT_EQ(Admitted("a", 1000), 1000);
}

TEST_F(TenantRatesTest, ASecondsWorthPassesAtOnceAndThenAsTimeGoes) {
  Limit("a", {.requests_per_second = 100});
  EXPECT_EQ(Admitted("a", 1000), 100);
  clock_.Advance(absl::Milliseconds(500));
  EXPECT_EQ(Admitted("a", 1000), 50);
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(Admitted("a", 1000), 100);
  EXPECT_EQ(Admitted("b", 1000), 1000);
  EXPECT_EQ(rates_.refused().over_requests, 900u + 950u + 900u);
  EXPECT_EQ(rates_.refused().over_bytes, 0u);
}

TEST_F(TenantRatesTest, WhoIsRefusedIsToldHowLongToWaitAndThenPasses) {
  Limit("a", {.requests_per_second = 4});
  Admitted("a", 4);
  const absl::Status refused = rates_.Admit("a");
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("tenant a: over its 4 requests"));
  ASSERT_EQ(RetryAfter(refused), absl::Milliseconds(250));
  clock_.Advance(absl::Milliseconds(249));
  EXPECT_FALSE(rates_.Admit("a").ok());
  clock_.Advance(absl::Milliseconds(2));
  EXPECT_TRUE(rates_.Admit("a").ok());
}

TEST_F(TenantRatesTest, ALargeTransferIsPaidOffBeforeTheNextRequest) {
  Limit("a", {.bytes_per_second = 1000});
  ASSERT_TRUE(rates_.Admit("a").ok());
  rates_.Charge("a", 3000);
  const absl::Status refused = rates_.Admit("a");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("1000 bytes a second"));
  EXPECT_EQ(rates_.refused().over_bytes, 1u);
  ASSERT_TRUE(RetryAfter(refused).has_value());
  clock_.Advance(absl::Milliseconds(1999));
  EXPECT_FALSE(rates_.Admit("a").ok());
  clock_.Advance(absl::Milliseconds(2));
  EXPECT_TRUE(rates_.Admit("a").ok());
}

TEST_F(TenantRatesTest, ALimitOfNothingRefusesEverything) {
  Limit("a", {.requests_per_second = 0});
  EXPECT_EQ(Admitted("a", 10), 0);
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(Admitted("a", 10), 0);
}

TEST_F(TenantRatesTest, ManyTenantsAreBoundedAndTheLimitHoldsForAllOfThem) {
  limits_.others = {.requests_per_second = 2};
  rates_.SetLimits(limits_);
  for (size_t i = 0; i < TenantRates::kTenantsMax; ++i) {
    ASSERT_TRUE(rates_.Admit(absl::StrCat("t", i)).ok());
  }
  // Those beyond share what one has.
  EXPECT_EQ(Admitted("x", 1) + Admitted("y", 1) + Admitted("z", 1), 2);
  clock_.Advance(absl::Seconds(2));
  EXPECT_EQ(Admitted("new", 5), 2);
}

}  // namespace
}  // namespace cairn::node
