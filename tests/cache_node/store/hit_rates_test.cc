// A store of 64 slots under requests for chains of which so many lie between two uses: what it says
// of other sizes.

#include <gmock/gmock.h>

#include "tests/cache_node/store/test_store.h"

namespace cairn::node {
namespace {

constexpr uint64_t kBlockBytes = 1024;

class HitRatesTest : public ::testing::Test {
 protected:
  HitRatesTest() { t_.Register(TestStore::Shape(kBlockBytes)); }

  // Asks for as many prompts of so many blocks, in turns, and puts what is not there.
  void Ask(uint32_t prompts, size_t blocks, int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (uint32_t seed = 1; seed <= prompts; ++seed) {
        const TestPrompt prompt = t_.Prompt("t", seed, blocks);
        const LookupAnswer leased = t_.Lease(prompt);
        t_.Put(prompt);
        if (!leased.lease.has_value()) continue;
        EXPECT_TRUE(t_.store->EndLease("t", *leased.lease, 0, {leased.prompts[0].leased}).ok());
      }
    }
  }
  double At(double factor) const {
    for (const HitRateAtCapacity& rate : t_.store->HitRates()) {
      if (rate.factor == factor && rate.tier == "host") return rate.hit_rate;
    }
    ADD_FAILURE() << "no rate at factor " << factor;
    return -1;
  }

  TestStore t_;
};

TEST_F(HitRatesTest, BeforeAnyRequestAllAreZero) {
  EXPECT_EQ(t_.store->HitRates().size(), kCapacityFactors.size());
  for (const double factor : kCapacityFactors) EXPECT_EQ(At(factor), 0);
}

TEST_F(HitRatesTest, AWorkingSetOfTheStoresOwnSizeNeedsAllOfIt) {
  Ask(/*prompts=*/6, /*blocks=*/10, /*rounds=*/10);
  EXPECT_EQ(At(0.5), 0);
  EXPECT_DOUBLE_EQ(At(1), 0.9);
  EXPECT_DOUBLE_EQ(At(2), 0.9);
  EXPECT_DOUBLE_EQ(At(4), 0.9);
}

TEST_F(HitRatesTest, OneThatIsTooLargeSaysWhatMoreMemoryWouldDo) {
  Ask(/*prompts=*/20, /*blocks=*/10, /*rounds=*/10);
  EXPECT_EQ(At(0.5), 0);
  EXPECT_EQ(At(1), 0);
  EXPECT_EQ(At(2), 0);
  EXPECT_DOUBLE_EQ(At(4), 0.9);
}

TEST_F(HitRatesTest, ProbesDoNotCount) {
  t_.Put(t_.Prompt("t", 1, 4));
  for (int i = 0; i < 3; ++i) t_.Present(t_.Prompt("t", 1, 4));
  EXPECT_EQ(At(4), 0);
  for (int i = 0; i < 2; ++i) t_.Lookup("t", t_.Prompt("t", 1, 4), /*touch=*/true);
  EXPECT_DOUBLE_EQ(At(4), 0.5);
}

TEST_F(HitRatesTest, ALongPromptIsTakenInSteps) {
  // Of a prompt that is longer than a cache, its beginning is kept.
  Ask(/*prompts=*/1, /*blocks=*/3000, /*rounds=*/2);
  EXPECT_EQ(At(1), 64.0 / 6000);
  EXPECT_EQ(At(4), 256.0 / 6000);
  EXPECT_TRUE(t_.store->Audit().ok()) << t_.store->Audit();
}

}  // namespace
}  // namespace cairn::node
