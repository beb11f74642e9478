// What callers can make the policy do at most: requests that no real prompt makes, orders of calls
// that only races make, groups that come due all at once, and many days of requests.

#include <gtest/gtest.h>

#include <cfenv>
#include <random>
#include <vector>

#include "cache_node/store/policies/reuse/reuse_groups.h"
#include "cache_node/store/policies/reuse/reuse_policy.h"

namespace cairn::node {
namespace {

constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;

TEST(ReuseLimitsTest, APromptOfBlocksAskedForUnlikeOftenIsRememberedInFewRuns) {
  const std::unique_ptr<EvictionPolicy> policy = ReusePolicyFactory().Make();
  constexpr uint32_t kBlocks = 4000;
  UseStamp stamp = 0;
  for (uint32_t block = 0; block < kBlocks; ++block) {
    for (uint32_t times = block % 2; times <= 1; ++times) {
      policy->Missed({.key = (block + 1) * kSpread, .prompt_blocks = 1}, ++stamp);
    }
  }
  const uint64_t before = policy->MemoryBytes();
  ++stamp;
  for (uint32_t block = 0; block < kBlocks; ++block) {
    policy->Missed({.key = (block + 1) * kSpread, .depth = block, .prompt_blocks = kBlocks}, stamp);
  }
  constexpr uint64_t kOneRequestBytesMost = 8192;
  EXPECT_LE(policy->MemoryBytes(), before + kOneRequestBytesMost);
}

TEST(ReuseLimitsTest, OneRequestMovesOnNoMoreThanSoManyGroupsHoweverManyAreDue) {
  ReuseModel model;
  ReuseGroups groups(&model);
  const ReuseModel::Cell cell = model.CellOf({});
  constexpr size_t kGroups = 50'000;
  std::vector<GroupId> made;
  for (size_t i = 0; i < kGroups; ++i) {
    made.push_back(groups.Make());
    groups.At(made.back()).cell = cell;
  }
  const auto aged = [&] {
    size_t count = 0;
    for (const GroupId group : made) count += groups.At(group).age_bin > 0 ? 1 : 0;
    return count;
  };
  for (size_t passed = 1; passed <= 3; ++passed) {
    model.Tick();
    groups.Advance();
    EXPECT_LE(aged(), passed * ReuseGroups::kMovesMax);
  }
  // Enough for each to pass each edge by itself.
  for (size_t i = 0; i < kGroups / ReuseGroups::kMovesMax * kReuseAgeBins; ++i) {
    model.Tick();
    groups.Advance();
  }
  for (const GroupId group : made) {
    const size_t bin = groups.At(group).age_bin;
    ASSERT_GE(model.now(), kReuseAgeEdges[bin]);
    ASSERT_LT(model.now(), kReuseAgeEdges[bin + 2]);
  }
}

TEST(ReuseLimitsTest, AHitOfAGroupThatWasNotMovedOnIsCountedAtItsAge) {
  ReuseModel prompt_model;
  ReuseModel late_model;
  ReuseGroups prompt(&prompt_model);
  ReuseGroups late(&late_model);
  const ReuseModel::Cell cell = prompt_model.CellOf({});
  ASSERT_EQ(late_model.CellOf({}), cell);
  for (uint64_t round = 1; round <= 200; ++round) {
    const GroupId one = prompt.Make();
    const GroupId other = late.Make();
    prompt.At(one).cell = late.At(other).cell = cell;
    for (int passed = 0; passed < 50; ++passed) {
      prompt_model.Tick();
      late_model.Tick();
      prompt.Advance();
    }
    prompt.CountHit(one, round, prompt_model.now());
    late.CountHit(other, round, late_model.now());
    prompt.Drop(one);
    late.Drop(other);
  }
  for (size_t bin = 0; bin < kReuseAgeBins; ++bin) {
    EXPECT_EQ(prompt_model.WorthOf(cell, bin), late_model.WorthOf(cell, bin)) << bin;
  }
}

TEST(ReuseLimitsTest, CountsThatOnlyFadeEndAtNothing) {
  ReuseModel model;
  const ReuseModel::Cell cell = model.CellOf({});
  model.CountHit(cell, 3);
  constexpr uint64_t kEpochs = 4000;
  for (uint64_t i = 0; i < kEpochs * ReuseModel::kRequestsAnEpoch; ++i) model.Tick();
  std::feclearexcept(FE_UNDERFLOW);
  for (uint64_t i = 0; i < ReuseModel::kRequestsAnEpoch; ++i) model.Tick();
  EXPECT_EQ(std::fetestexcept(FE_UNDERFLOW), 0) << "numbers too small to be quick";
}

TEST(ReuseLimitsTest, TenMillionRequestsLeaveWorthsInOrder) {
  ReuseModel model;
  const ReuseModel::Cell used = model.CellOf({.touches = 2, .turn = 1});
  const ReuseModel::Cell passed_by = model.CellOf({.touches = 1});
  constexpr uint64_t kRequests = 10'000'000;
  for (uint64_t i = 0; i < kRequests; ++i) {
    model.Tick();
    model.CountHit(used, i % 12);
    for (size_t bin = 0; bin < 12; ++bin) model.CountSurvived(passed_by, bin, 1);
    model.CountSurvived(passed_by, 12, -1);
  }
  for (size_t bin = 0; bin < 12; ++bin) {
    EXPECT_GT(model.WorthOf(used, bin), model.WorthOf(passed_by, bin));
    EXPECT_LE(model.WorthOf(used, bin), ReuseModel::kWorthMax);
  }
}

// Tells a policy of a store's blocks in whatever order, with stamps long forgotten, keys asked for
// twice in a prompt and prompts that never settle.
class OddCaller {
 public:
  explicit OddCaller(uint64_t seed) : random_(seed) {}

  void Step() {
    if (Below(3) == 0) ++now_;
    const UseStamp stamp = now_ - std::min<UseStamp>(now_, Below(8) == 0 ? Below(3000) : Below(4));
    const auto block = static_cast<BlockHandle>(Below(kBlocks));
    EvictionPolicy::BlockTraits traits{.key = Below(300) * kSpread,
                                       .depth = static_cast<uint32_t>(Below(40)),
                                       .tokens = 16,
                                       .priority = static_cast<uint8_t>(49 + Below(3)),
                                       .prompt_blocks = static_cast<uint32_t>(Below(40)),
                                       .prompt_hits = static_cast<uint32_t>(Below(60)),
                                       .parent = there_[block] ? block : kNoBlock};
    if (Below(2) == 0) {
      for (uint64_t more = Below(12); more > 0; --more, ++traits.depth) {
        policy_->Missed(traits, stamp);
        if (Below(3) != 0) traits.key = Below(300) * kSpread;
      }
    }
    const std::optional<EvictionPolicy::Victim> victim = policy_->NextVictim();
    if (victim.has_value()) {
      ASSERT_TRUE(there_[victim->block]);
      policy_->Admits(traits, stamp, &*victim);
    }
    if (!there_[block]) {
      traits.parent = kNoBlock;
      policy_->Inserted(block, traits, stamp);
      there_[block] = true;
      return;
    }
    Change(block, stamp);
  }

 private:
  static constexpr size_t kBlocks = 200;

  uint64_t Below(uint64_t limit) { return random_() % limit; }

  void Change(BlockHandle block, UseStamp stamp) {
    switch (Below(8)) {
      case 0:
        return policy_->MustStay(block);
      case 1:
        return policy_->Orphaned(block, Below(2) == 0);
      case 2:
        return policy_->PriorityChanged(block, static_cast<uint8_t>(49 + Below(3)));
      case 3:
        policy_->Removed(block);
        there_[block] = false;
        return;
      case 4:
      case 5:
        return policy_->MayGo(block);
      default:
        return policy_->Used(block, stamp);
    }
  }

  const std::unique_ptr<EvictionPolicy> policy_ = ReusePolicyFactory().Make();
  std::mt19937_64 random_;
  UseStamp now_ = 0;
  std::vector<bool> there_ = std::vector<bool>(kBlocks);
};

TEST(ReuseLimitsTest, NoOrderOfCallsIsTooOdd) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    OddCaller caller(seed);
    for (int step = 0; step < 30'000 && !::testing::Test::HasFailure(); ++step) caller.Step();
  }
}

}  // namespace
}  // namespace cairn::node
