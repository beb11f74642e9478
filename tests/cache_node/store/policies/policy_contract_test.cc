// What the store counts on whatever the policy: random calls to each policy of the registry, beside
// plain records of what it was told.

#include <gmock/gmock.h>

#include <map>
#include <optional>
#include <random>
#include <string>

#include "cache_node/store/policies/policy_registry.h"

namespace cairn::node {
namespace {

std::unique_ptr<EvictionPolicy> Make(const std::string& name) {
  return (*MakeEvictionPolicies(name))->Make();
}

// Tells a policy random things about a few dozen blocks, and knows what it has told.
class Conversation {
 public:
  struct Block {
    bool may_go = false;
    bool orphaned = false;
    uint8_t priority = kPriorityDefault;
  };

  Conversation(const std::string& name, uint64_t seed) : policy_(Make(name)), random_(seed) {}

  void Step() {
    if (Below(4) == 0) ++stamp_;
    const auto handle = static_cast<BlockHandle>(Below(60));
    const auto known = blocks_.find(handle);
    if (known != blocks_.end()) {
      Change(handle, &known->second);
      return;
    }
    EvictionPolicy::BlockTraits traits;
    traits.key = 1 + Below(200);
    traits.depth = static_cast<uint32_t>(Below(6));
    traits.tokens = 16;
    traits.bytes = 4096;
    traits.priority = SomePriority();
    traits.prompt_blocks = traits.depth + 1 + static_cast<uint32_t>(Below(3));
    traits.prompt_hits = static_cast<uint32_t>(Below(traits.depth + 1));
    policy_->Missed(traits, stamp_);
    policy_->Admits(traits, stamp_, nullptr);
    const std::optional<EvictionPolicy::Victim> victim = policy_->NextVictim();
    if (victim.has_value() && !victim->orphaned) policy_->Admits(traits, stamp_, &*victim);
    policy_->Inserted(handle, traits, stamp_);
    blocks_[handle] = {.priority = traits.priority};
  }

  // The first to go is one that may, of the first rank of those.
  void Check() {
    std::optional<int> first;
    for (const auto& [handle, block] : blocks_) {
      if (block.may_go && (!first.has_value() || RankOf(block) < *first)) first = RankOf(block);
    }
    const std::optional<EvictionPolicy::Victim> victim = policy_->NextVictim();
    ASSERT_EQ(victim.has_value(), first.has_value());
    if (!victim.has_value()) return;
    ASSERT_TRUE(blocks_.contains(victim->block));
    const Block& block = blocks_.at(victim->block);
    EXPECT_TRUE(block.may_go);
    EXPECT_EQ(RankOf(block), *first);
    EXPECT_EQ(victim->orphaned, block.orphaned);
    EXPECT_LE(victim->stamp, stamp_);
    EXPECT_EQ(policy_->NextVictim()->block, victim->block) << "asked again it names another";
  }

  std::optional<BlockHandle> Victim() {
    const std::optional<EvictionPolicy::Victim> victim = policy_->NextVictim();
    if (!victim.has_value()) return std::nullopt;
    return victim->block;
  }

 private:
  uint64_t Below(uint64_t limit) { return random_() % limit; }
  uint8_t SomePriority() { return Below(4) == 0 ? 80 : kPriorityDefault; }
  static int RankOf(const Block& block) { return block.orphaned ? -1 : block.priority; }

  void Change(BlockHandle handle, Block* block) {
    switch (Below(8)) {
      case 0:
      case 1:
        policy_->Used(handle, stamp_ - Below(2));
        break;
      case 2:
      case 3:
        policy_->MayGo(handle);
        block->may_go = true;
        break;
      case 4:
        policy_->MustStay(handle);
        block->may_go = false;
        break;
      case 5:
        block->orphaned = Below(3) == 0;
        policy_->Orphaned(handle, block->orphaned);
        break;
      case 6:
        block->priority = SomePriority();
        policy_->PriorityChanged(handle, block->priority);
        break;
      default:
        policy_->Removed(handle);
        blocks_.erase(handle);
    }
  }

  std::unique_ptr<EvictionPolicy> policy_;
  std::mt19937_64 random_;
  UseStamp stamp_ = 1;
  std::map<BlockHandle, Block> blocks_;
};

class PolicyContractTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PolicyContractTest, NamesOnlyWhatMayGoOrphansFirstThenTheLowestPriority) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    Conversation conversation(GetParam(), seed);
    for (int step = 0; step < 5000 && !HasFailure(); ++step) {
      conversation.Step();
      conversation.Check();
    }
  }
}

TEST_P(PolicyContractTest, TheSameCallsGiveTheSameAnswers) {
  Conversation one(GetParam(), 7);
  Conversation other(GetParam(), 7);
  for (int step = 0; step < 5000; ++step) {
    one.Step();
    other.Step();
    ASSERT_EQ(one.Victim(), other.Victim()) << "after step " << step;
  }
}

TEST_P(PolicyContractTest, WhatItHoldsIsBoundedByTheBlocksThatAreThere) {
  const std::unique_ptr<EvictionPolicy> policy = Make(GetParam());
  constexpr BlockHandle kBlocks = 1000;
  constexpr uint64_t kBytesPerBlockMost = 400;
  constexpr uint64_t kBytesMost = 1 << 20;  // Beside the blocks: tables of what was learnt.
  for (uint64_t i = 0; i < 300 * kBlocks; ++i) {
    const auto handle = static_cast<BlockHandle>(i % kBlocks);
    if (i >= kBlocks) policy->Removed(handle);
    const EvictionPolicy::BlockTraits traits{.key = i * 0x9e3779b97f4a7c15, .tokens = 16};
    policy->Missed(traits, i);
    policy->Inserted(handle, traits, i);
    policy->MayGo(handle);
  }
  EXPECT_LE(policy->MemoryBytes(), kBytesMost + kBlocks * kBytesPerBlockMost);
}

INSTANTIATE_TEST_SUITE_P(EachPolicy, PolicyContractTest, ::testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const absl::string_view name : EvictionPolicyNames()) {
                             names.emplace_back(name);
                           }
                           return names;
                         }()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace cairn::node
