// Tickets under a fake clock: each is good once, for a while, for whom it was issued to.
#include "cache_node/local/local_tickets.h"

#include <gmock/gmock.h>

#include "common/rpc/retry_status.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/seeded_random.h"

namespace cairn::node {
namespace {

Caller CallerOf(const std::string& tenant) { return {.id = "worker-1", .tenant = tenant}; }

class LocalTicketsTest : public ::testing::Test {
 protected:
  void Advance(absl::Duration by) {
    clock_.Advance(by);
    time_.Tick();
  }

  testing::FakeClock clock_;
  GuardedTime time_{&clock_, absl::Hours(1)};
  testing::SeededRandom random_{1};
  LocalTickets tickets_{&time_, &random_};
};

TEST_F(LocalTicketsTest, IsGoodOnceForItsCaller) {
  const auto ticket = tickets_.Issue(CallerOf("acme"));
  const auto other = tickets_.Issue(CallerOf("umbra"));
  ASSERT_TRUE(ticket.ok() && other.ok());
  EXPECT_NE(*ticket, *other);
  EXPECT_EQ(tickets_.Take(other->view())->tenant, "umbra");
  EXPECT_EQ(tickets_.Take(ticket->view())->tenant, "acme");
  EXPECT_FALSE(tickets_.Take(ticket->view()).has_value()) << "replayed";
  EXPECT_EQ(tickets_.size(), 0u);
}

TEST_F(LocalTicketsTest, WhatIsNoTicketIsNone) {
  ASSERT_TRUE(tickets_.Issue(CallerOf("acme")).ok());
  EXPECT_FALSE(tickets_.Take("").has_value());
  EXPECT_FALSE(tickets_.Take("short").has_value());
  EXPECT_FALSE(tickets_.Take(std::string(16, '\0')).has_value());
  EXPECT_FALSE(tickets_.Take(std::string(1 << 20, 'x')).has_value());
}

TEST_F(LocalTicketsTest, ExpiresAndLeavesRoom) {
  const auto ticket = tickets_.Issue(CallerOf("acme"));
  ASSERT_TRUE(ticket.ok());
  Advance(LocalTickets::kTimeToLive - absl::Milliseconds(1));
  const auto later = tickets_.Issue(CallerOf("acme"));
  Advance(absl::Milliseconds(1));
  EXPECT_FALSE(tickets_.Take(ticket->view()).has_value());
  EXPECT_TRUE(tickets_.Take(later->view()).has_value());
  EXPECT_EQ(tickets_.size(), 0u);
}

TEST_F(LocalTicketsTest, ATenantThatTakesTooManyLeavesOthersTheirs) {
  for (size_t i = 0; i < LocalTickets::kTicketsPerTenantMax; ++i) {
    ASSERT_TRUE(tickets_.Issue(CallerOf("acme")).ok());
  }
  const absl::Status refused = tickets_.Issue(CallerOf("acme")).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(RetryAfter(refused).has_value());
  EXPECT_TRUE(tickets_.Issue(CallerOf("umbra")).ok());
  Advance(LocalTickets::kTimeToLive);
  EXPECT_TRUE(tickets_.Issue(CallerOf("acme")).ok());
}

TEST_F(LocalTicketsTest, AllTenantsTogetherAreBounded) {
  size_t issued = 0;
  for (size_t i = 0; i < 2 * LocalTickets::kTicketsMax; ++i) {
    if (tickets_.Issue(CallerOf(std::to_string(i))).ok()) ++issued;
  }
  EXPECT_EQ(issued, LocalTickets::kTicketsMax);
}

TEST_F(LocalTicketsTest, TakenOnesDoNotCountHoweverManyThereAre) {
  for (size_t i = 0; i < 5 * LocalTickets::kTicketsMax; ++i) {
    const auto ticket = tickets_.Issue(CallerOf("acme"));
    ASSERT_TRUE(ticket.ok()) << i;
    ASSERT_TRUE(tickets_.Take(ticket->view()).has_value());
  }
}

TEST_F(LocalTicketsTest, NoneIsGoodOnceRightsHaveChanged) {
  const auto ticket = tickets_.Issue(CallerOf("acme"));
  ASSERT_TRUE(ticket.ok());
  tickets_.Clear();
  EXPECT_FALSE(tickets_.Take(ticket->view()).has_value());
  EXPECT_TRUE(tickets_.Issue(CallerOf("acme")).ok());
}

}  // namespace
}  // namespace cairn::node
