// Charges as move-only values, budgets at their edge, and random traffic against plain sums.

#include "cache_node/store/tenant_ledger.h"

#include <gmock/gmock.h>

#include <limits>
#include <random>
#include <type_traits>

namespace cairn::node {
namespace {

static_assert(!std::is_copy_constructible_v<TenantLedger::Charge>);
static_assert(std::is_nothrow_move_constructible_v<TenantLedger::Charge>);

constexpr TenantLedger::Budgets kBudgets = {.leased_bytes_max = 1000, .reserved_bytes_max = 500};

class TenantLedgerTest : public ::testing::Test {
 protected:
  TenantLedger ledger_{kBudgets};
  const TenantIndex alice_ = ledger_.IndexOf("alice");
  const TenantIndex bob_ = ledger_.IndexOf("bob");
};

TEST_F(TenantLedgerTest, TenantKeepsItsNumber) {
  EXPECT_NE(alice_, 0u);
  EXPECT_NE(alice_, bob_);
  EXPECT_EQ(ledger_.IndexOf("alice"), alice_);
  EXPECT_EQ(ledger_.Find("bob"), bob_);
  EXPECT_EQ(ledger_.Find("carol"), 0u);
  EXPECT_EQ(ledger_.NameOf(bob_), "bob");
  EXPECT_EQ(ledger_.tenant_count(), 2u);
}

TEST_F(TenantLedgerTest, TenantsBeyondTheBoundGetNoNumber) {
  for (uint32_t i = ledger_.tenant_count(); i < TenantLedger::kTenantsMax; ++i) {
    ASSERT_NE(ledger_.IndexOf("tenant " + std::to_string(i)), 0u);
  }
  EXPECT_EQ(ledger_.IndexOf("one too many"), 0u);
  EXPECT_EQ(ledger_.tenant_count(), TenantLedger::kTenantsMax);
  EXPECT_EQ(ledger_.IndexOf("alice"), alice_);
}

TEST_F(TenantLedgerTest, ChargeIsGivenBackWhenItEnds) {
  {
    const TenantLedger::Charge charge = ledger_.Take(alice_, 300);
    EXPECT_EQ(charge.bytes(), 300u);
    EXPECT_EQ(ledger_.UsageOf(alice_).charged_bytes, 300u);
    EXPECT_EQ(ledger_.UsageOf(bob_).charged_bytes, 0u);
    EXPECT_EQ(ledger_.Total().charged_bytes, 300u);
  }
  EXPECT_EQ(ledger_.UsageOf(alice_).charged_bytes, 0u);
  EXPECT_EQ(ledger_.Total().charged_bytes, 0u);
}

TEST_F(TenantLedgerTest, MovedChargeIsCountedOnce) {
  TenantLedger::Charge first = ledger_.Take(alice_, 300);
  TenantLedger::Charge second = std::move(first);
  EXPECT_EQ(ledger_.Total().charged_bytes, 300u);
  second = ledger_.Take(bob_, 50);
  EXPECT_EQ(ledger_.UsageOf(alice_).charged_bytes, 0u);
  EXPECT_EQ(ledger_.UsageOf(bob_).charged_bytes, 50u);
  second = TenantLedger::Charge();
  EXPECT_EQ(ledger_.Total().charged_bytes, 0u);
}

TEST_F(TenantLedgerTest, LeaseBeyondTheBudgetOfAllIsRefusedAndCountsNothing) {
  EXPECT_TRUE(ledger_.TryLease(alice_, 600));
  EXPECT_FALSE(ledger_.TryLease(bob_, 401));
  EXPECT_EQ(ledger_.UsageOf(bob_).leased_bytes, 0u);
  EXPECT_TRUE(ledger_.TryLease(bob_, 400));
  ledger_.EndLease(alice_, 600);
  EXPECT_EQ(ledger_.Total().leased_bytes, 400u);
}

TEST_F(TenantLedgerTest, ReserveBeyondTheBudgetOfAllIsRefusedAndCountsNothing) {
  EXPECT_TRUE(ledger_.TryReserve(alice_, 500));
  EXPECT_FALSE(ledger_.TryReserve(bob_, 1));
  EXPECT_EQ(ledger_.Total().reserved_bytes, 500u);
  ledger_.EndReserve(alice_, 500);
  EXPECT_TRUE(ledger_.TryReserve(bob_, 1));
}

TEST_F(TenantLedgerTest, HugeAmountDoesNotWrapAround) {
  EXPECT_TRUE(ledger_.TryLease(alice_, 1));
  EXPECT_TRUE(ledger_.TryReserve(alice_, 1));
  EXPECT_FALSE(ledger_.TryLease(alice_, std::numeric_limits<uint64_t>::max()));
  EXPECT_FALSE(ledger_.TryReserve(alice_, std::numeric_limits<uint64_t>::max()));
  EXPECT_EQ(ledger_.Total().leased_bytes, 1u);
}

using TenantLedgerDeathTest = TenantLedgerTest;

TEST_F(TenantLedgerDeathTest, EndingMoreThanWasCountedIsABug) {
  EXPECT_TRUE(ledger_.TryLease(alice_, 10));
  EXPECT_DEATH(ledger_.EndLease(bob_, 10), "leased_bytes");
  EXPECT_DEATH(ledger_.EndReserve(alice_, 1), "reserved_bytes");
}

TEST_F(TenantLedgerDeathTest, ChargeOfNobodyIsABug) {
  EXPECT_DEATH(ledger_.Take(0, 10), "tenant");
  EXPECT_DEATH(ledger_.Take(3, 10), "tenant");
}

TEST(TenantLedgerLifetimeDeathTest, ChargeThatOutlivesTheLedgerIsABug) {
  EXPECT_DEATH(
      {
        TenantLedger::Charge charge;
        TenantLedger ledger(kBudgets);
        charge = ledger.Take(ledger.IndexOf("alice"), 1);
      },
      "charged_bytes");
}

TEST(TenantLedgerRandomTest, SumsOverTenantsAreTheTotal) {
  TenantLedger ledger({.leased_bytes_max = 5000, .reserved_bytes_max = 0});
  std::mt19937_64 random(7);
  std::vector<TenantLedger::Charge> charges;
  std::vector<std::pair<TenantIndex, uint64_t>> leases;
  for (const char* name : {"a", "b", "c"}) ledger.IndexOf(name);
  for (int step = 0; step < 10000; ++step) {
    const auto tenant = static_cast<TenantIndex>(1 + random() % 3);
    const uint64_t bytes = random() % 400;
    const uint64_t dice = random() % 4;
    if (dice == 0) charges.push_back(ledger.Take(tenant, bytes));
    if (dice == 1 && !charges.empty()) {
      std::swap(charges[random() % charges.size()], charges.back());
      charges.pop_back();
    }
    if (dice == 2 && ledger.TryLease(tenant, bytes)) leases.push_back({tenant, bytes});
    if (dice == 3 && !leases.empty()) {
      ledger.EndLease(leases.back().first, leases.back().second);
      leases.pop_back();
    }
    uint64_t charged = 0;
    for (const TenantLedger::Charge& charge : charges) charged += charge.bytes();
    uint64_t leased = 0;
    for (const auto& lease : leases) leased += lease.second;
    uint64_t charged_by_tenant = 0;
    for (TenantIndex i = 1; i <= 3; ++i) charged_by_tenant += ledger.UsageOf(i).charged_bytes;
    ASSERT_EQ(ledger.Total().charged_bytes, charged);
    ASSERT_EQ(charged_by_tenant, charged);
    ASSERT_EQ(ledger.Total().leased_bytes, leased);
    ASSERT_LE(leased, 5000u);
  }
}

}  // namespace
}  // namespace cairn::node
