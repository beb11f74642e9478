// A small cache that does what a store does with the policy, under kinds of traffic that a policy
// by age alone serves badly: how many blocks were found is counted beside the same under LRU.

#include "cache_node/store/policies/reuse/reuse_policy.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "cache_node/store/policies/lru_policy.h"

namespace cairn::node {
namespace {

using Prompt = std::vector<uint64_t>;  // Keys; a key stands for one place of one prompt.

class SmallCache {
 public:
  SmallCache(std::unique_ptr<EvictionPolicy> policy, uint32_t blocks_max)
      : policy_(std::move(policy)) {
    for (BlockHandle handle = blocks_max; handle-- > 0;) free_.push_back(handle);
  }

  // A lookup, then the reserve of what it missed. Returns how many blocks it found.
  size_t Ask(const Prompt& prompt) {
    const UseStamp lookup = ++stamp_;
    size_t found = 0;
    while (found < prompt.size() && there_.contains(prompt[found])) ++found;
    if (found > 0) policy_->MustStay(there_[prompt[found - 1]].handle);
    EvictionPolicy::BlockTraits traits{.tokens = 16,
                                       .bytes = 4096,
                                       .prompt_blocks = static_cast<uint32_t>(prompt.size()),
                                       .prompt_hits = static_cast<uint32_t>(found)};
    for (size_t i = found; i < prompt.size(); ++i) {
      Fill(&traits, prompt, i);
      policy_->Missed(traits, lookup);
    }
    const UseStamp reserve = ++stamp_;
    size_t end = found;
    for (; end < prompt.size(); ++end) {
      Fill(&traits, prompt, end);
      if (free_.empty() && !MakeRoom(traits, reserve)) break;
      Put(prompt, end, traits, reserve);
    }
    for (size_t i = found; i-- > 0;) policy_->Used(there_[prompt[i]].handle, lookup);
    if (end > 0 && there_[prompt[end - 1]].children == 0) {
      policy_->MayGo(there_[prompt[end - 1]].handle);
    }
    return found;
  }

  uint64_t declined() const { return declined_; }
  bool Holds(uint64_t key) const { return there_.contains(key); }
  EvictionPolicy* policy() { return policy_.get(); }

 private:
  struct Block {
    BlockHandle handle = kNoBlock;
    uint64_t parent = 0;  // 0: none.
    uint32_t children = 0;
  };

  void Fill(EvictionPolicy::BlockTraits* traits, const Prompt& prompt, size_t place) {
    traits->key = prompt[place];
    traits->depth = static_cast<uint32_t>(place);
    traits->parent = kNoBlock;
    if (place > 0 && there_.contains(prompt[place - 1])) {
      traits->parent = there_[prompt[place - 1]].handle;
    }
  }

  bool MakeRoom(const EvictionPolicy::BlockTraits& newcomer, UseStamp stamp) {
    const std::optional<EvictionPolicy::Victim> victim = policy_->NextVictim();
    if (!victim.has_value()) return false;
    if (!policy_->Admits(newcomer, stamp, &*victim)) {
      ++declined_;
      return false;
    }
    const uint64_t key = keys_[victim->block];
    const Block block = there_[key];
    EXPECT_EQ(block.children, 0u);
    policy_->Removed(victim->block);
    there_.erase(key);
    free_.push_back(victim->block);
    if (block.parent == 0) return true;
    Block& parent = there_[block.parent];
    if (--parent.children == 0 && newcomer.parent != parent.handle) policy_->MayGo(parent.handle);
    return true;
  }

  void Put(const Prompt& prompt, size_t place, const EvictionPolicy::BlockTraits& traits,
           UseStamp stamp) {
    const BlockHandle handle = free_.back();
    free_.pop_back();
    Block block{.handle = handle};
    if (place > 0) {
      block.parent = prompt[place - 1];
      ++there_[block.parent].children;
    }
    there_[prompt[place]] = block;
    keys_[handle] = prompt[place];
    policy_->Inserted(handle, traits, stamp);
  }

  std::unique_ptr<EvictionPolicy> policy_;
  std::vector<BlockHandle> free_;
  std::map<uint64_t, Block> there_;
  std::map<BlockHandle, uint64_t> keys_;
  UseStamp stamp_ = 0;
  uint64_t declined_ = 0;
};

SmallCache Reuse(uint32_t blocks) { return SmallCache(ReusePolicyFactory().Make(), blocks); }
SmallCache Lru(uint32_t blocks) { return SmallCache(LruPolicyFactory().Make(), blocks); }

Prompt MakePrompt(uint64_t number, size_t blocks) {
  Prompt prompt;
  for (size_t i = 0; i < blocks; ++i) prompt.push_back(number * 1000 + i + 1);
  return prompt;
}

// Conversations that come back every `gap` requests for as many turns, between prompts that never
// do and are longer.
class Traffic {
 public:
  Traffic(size_t conversations, size_t turns) : conversations_(conversations), turns_(turns) {}

  Prompt Next() {
    ++asked_;
    if (asked_ % 2 == 0) return MakePrompt(1'000'000 + asked_, 12);
    const size_t turn_of_all = asked_ / 2;
    const size_t conversation = turn_of_all % conversations_;
    const size_t turn = turn_of_all / conversations_;
    return MakePrompt(conversation + turn / turns_ * conversations_ + 1, 4 + turn % turns_ * 2);
  }

 private:
  const size_t conversations_;
  const size_t turns_;
  size_t asked_ = 0;
};

TEST(ReusePolicyTest, KeepsConversationsThatOnceSeenPromptsWouldPushOut) {
  SmallCache reuse = Reuse(400);
  SmallCache lru = Lru(400);
  Traffic one(40, 8);
  Traffic other(40, 8);
  size_t found = 0;
  size_t found_by_lru = 0;
  for (int request = 0; request < 8000; ++request) {
    found += reuse.Ask(one.Next());
    found_by_lru += lru.Ask(other.Next());
  }
  EXPECT_GT(found, 5 * found_by_lru / 2);
  EXPECT_GT(found, 25'000u);
  EXPECT_GT(reuse.declined(), 0u);
}

TEST(ReusePolicyTest, WithRoomForAllItDeclinesNothing) {
  SmallCache reuse = Reuse(2000);
  for (int request = 0; request < 100; ++request) reuse.Ask(MakePrompt(1 + request, 15));
  EXPECT_EQ(reuse.declined(), 0u);
  for (int request = 0; request < 100; ++request) {
    EXPECT_EQ(reuse.Ask(MakePrompt(1 + request, 15)), 15u);
  }
}

TEST(ReusePolicyTest, ANewSessionIsNotDeclinedBehindOneThatJustEnded) {
  // Agents one after another, each longer than half the cache.
  SmallCache reuse = Reuse(60);
  SmallCache lru = Lru(60);
  size_t found = 0;
  size_t found_by_lru = 0;
  for (uint64_t session = 1; session <= 60; ++session) {
    for (size_t turn = 0; turn < 20; ++turn) {
      const Prompt prompt = MakePrompt(session, 30 + turn);
      found += reuse.Ask(prompt);
      found_by_lru += lru.Ask(prompt);
    }
  }
  EXPECT_EQ(found, found_by_lru);
  EXPECT_EQ(reuse.declined(), 0u);
}

TEST(ReusePolicyTest, WhatWasDeclinedIsRememberedWhenItComesAgain) {
  SmallCache reuse = Reuse(400);
  Traffic traffic(40, 8);
  for (int request = 0; request < 8000; ++request) reuse.Ask(traffic.Next());
  // One that is asked for at every fourth request now: it is declined at first, as its kind was.
  const Prompt often = MakePrompt(5'000'000, 12);
  size_t asked = 0;
  while (reuse.Ask(often) < often.size() && ++asked < 40) {
    for (int other = 0; other < 3; ++other) reuse.Ask(traffic.Next());
  }
  EXPECT_LT(asked, 10u);
}

TEST(ReusePolicyTest, AReserveWithoutALookupBeforeItIsClassedToo) {
  const std::unique_ptr<EvictionPolicy> policy = ReusePolicyFactory().Make();
  const EvictionPolicy::BlockTraits first{.key = 1, .prompt_blocks = 2};
  policy->Inserted(0, first, 1);
  policy->Inserted(1, {.key = 2, .depth = 1, .prompt_blocks = 2, .parent = 0}, 1);
  policy->MayGo(1);
  EXPECT_EQ(policy->NextVictim()->block, 1u);
  policy->Used(1, 2);
  policy->Used(0, 2);
  policy->Removed(1);
  policy->MayGo(0);
  EXPECT_EQ(policy->NextVictim()->block, 0u);
  EXPECT_EQ(policy->NextVictim()->stamp, 2u);
}

TEST(ReusePolicyTest, AClassIsAsOldAsItsLeastRecentlyUsedBlockWhoeverGoesFirst) {
  const std::unique_ptr<EvictionPolicy> policy = ReusePolicyFactory().Make();
  for (BlockHandle block = 0; block < 4; ++block) {
    // The newest is of the lowest priority: it goes first.
    const auto priority = static_cast<uint8_t>(50 - block);
    policy->Inserted(block, {.key = 10 + block, .priority = priority, .prompt_blocks = 1},
                     100 + block);
    policy->MayGo(block);
  }
  EXPECT_EQ(policy->NextVictim()->block, 3u);
  EXPECT_EQ(policy->NextVictim()->stamp, 100u);
  policy->Used(0, 200);
  EXPECT_EQ(policy->NextVictim()->stamp, 101u);
  policy->PriorityChanged(1, 90);
  EXPECT_EQ(policy->NextVictim()->stamp, 101u) << "it is no newer for its priority";
  policy->Removed(1);
  EXPECT_EQ(policy->NextVictim()->stamp, 102u);
}

TEST(ReusePolicyTest, ALowerPriorityIsDeclinedAndAHigherOneAdmittedWhateverTheirWorth) {
  const std::unique_ptr<EvictionPolicy> policy = ReusePolicyFactory().Make();
  policy->Inserted(0, {.key = 1, .priority = 50, .prompt_blocks = 1}, 1);
  policy->MayGo(0);
  const EvictionPolicy::Victim victim = *policy->NextVictim();
  EXPECT_FALSE(policy->Admits({.key = 2, .priority = 49, .prompt_blocks = 1}, 2, &victim));
  EXPECT_TRUE(policy->Admits({.key = 2, .priority = 51, .prompt_blocks = 1}, 2, &victim));
  EXPECT_TRUE(policy->Admits({.key = 2, .priority = 50, .prompt_blocks = 1}, 2, &victim))
      << "untaught, the newer is worth more";
}

TEST(ReusePolicyTest, ClassesOfOneFactoryLearnFromEachOther) {
  const ReusePolicyFactory factory;
  Traffic traffic(40, 8);
  SmallCache taught(factory.Make(), 400);
  for (int request = 0; request < 8000; ++request) taught.Ask(traffic.Next());
  // A class that comes later serves its first conversations as well at once.
  SmallCache later(factory.Make(), 400);
  SmallCache alone = Reuse(400);
  size_t found = 0;
  size_t found_alone = 0;
  Traffic one(40, 8);
  Traffic other(40, 8);
  for (int request = 0; request < 600; ++request) {
    found += later.Ask(one.Next());
    found_alone += alone.Ask(other.Next());
  }
  EXPECT_GT(found, found_alone);
}

// One tenant's conversations beside another that asks far more often, to teach that what they do is
// worth nothing: its prompts of one kind come back at once, its conversations never do.
TEST(ReusePolicyTest, WhatOneTenantTeachesHardlyMovesWhatAnotherFinds) {
  const ReusePolicyFactory factory;
  SmallCache beside(factory.Make(), 400);
  SmallCache other(factory.Make(), 400);
  SmallCache alone = Reuse(400);
  SmallCache by_lru = Lru(400);
  Traffic traffic(40, 8);
  size_t found_beside = 0;
  size_t found_alone = 0;
  size_t found_by_lru = 0;
  uint64_t number = 9'000'000;
  const auto teach = [&other, &number] {
    // Continued at once, and never again.
    ++number;
    for (size_t turn = 0; turn < 4; ++turn) other.Ask(MakePrompt(number, 4 + 2 * turn));
    // Asked for once, and again when many requests have passed.
    other.Ask(MakePrompt(10'000'000 + number, 12));
    other.Ask(MakePrompt(10'000'000 + number - 30, 12));
  };
  for (int before = 0; before < 5000; ++before) teach();
  for (int request = 0; request < 6000; ++request) {
    for (int more = 0; more < 10; ++more) teach();
    const Prompt prompt = traffic.Next();
    found_beside += beside.Ask(prompt);
    found_alone += alone.Ask(prompt);
    found_by_lru += by_lru.Ask(prompt);
  }
  EXPECT_GT(found_beside, found_alone - found_alone / 20) << found_by_lru << " by age alone";
}

TEST(ReusePolicyTest, TrafficThatChangesIsLearntSoon) {
  SmallCache reuse = Reuse(400);
  SmallCache lru = Lru(400);
  Traffic before(40, 8);
  for (int request = 0; request < 5000; ++request) {
    const Prompt prompt = before.Next();
    reuse.Ask(prompt);
    lru.Ask(prompt);
  }
  // Nothing ever returns, and then a few prompts do all the time.
  for (uint64_t request = 0; request < 5000; ++request) {
    reuse.Ask(MakePrompt(20'000'000 + request, 12));
    lru.Ask(MakePrompt(20'000'000 + request, 12));
  }
  size_t found = 0;
  size_t found_by_lru = 0;
  for (uint64_t request = 0; request < 2000; ++request) {
    const Prompt hot = MakePrompt(30'000'000 + request * 7 % 20, 12);
    found += reuse.Ask(hot);
    found_by_lru += lru.Ask(hot);
  }
  EXPECT_GE(found + found_by_lru / 50, found_by_lru);
}

}  // namespace
}  // namespace cairn::node
