// Ranks single blocks by hand; then a small cache that lets only leaves go, as the store does,
// tells the stories that eviction must get right; then random calls against a policy that searches
// naively.

#include "cache_node/store/policies/lru_policy.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace cairn::node {
namespace {

using ::testing::ElementsAre;

EvictionPolicy::BlockTraits AtDepth(uint32_t depth) {
  EvictionPolicy::BlockTraits traits;
  traits.depth = depth;
  return traits;
}

// Takes out all that may go, in order.
std::vector<BlockHandle> DrainVictims(EvictionPolicy* policy) {
  std::vector<BlockHandle> order;
  while (std::optional<EvictionPolicy::Victim> victim = policy->NextVictim()) {
    order.push_back(victim->block);
    policy->Removed(victim->block);
  }
  return order;
}

class LruPolicyTest : public ::testing::Test {
 protected:
  void Insert(BlockHandle block, uint32_t depth, UseStamp stamp) {
    policy_.Inserted(block, AtDepth(depth), stamp);
    policy_.MayGo(block);
  }
  LruPolicy policy_;
};

TEST_F(LruPolicyTest, LeastRecentlyUsedGoesFirst) {
  Insert(1, 0, 10);
  Insert(2, 0, 30);
  Insert(3, 0, 20);
  EXPECT_THAT(DrainVictims(&policy_), ElementsAre(1, 3, 2));
}

TEST_F(LruPolicyTest, OfOneRequestTheDeepestGoesFirst) {
  Insert(1, 0, 10);
  Insert(2, 2, 10);
  Insert(3, 1, 10);
  EXPECT_THAT(DrainVictims(&policy_), ElementsAre(2, 3, 1));
}

TEST_F(LruPolicyTest, UseMovesABlockBack) {
  Insert(1, 0, 10);
  Insert(2, 0, 20);
  policy_.Used(1, 30);
  EXPECT_THAT(DrainVictims(&policy_), ElementsAre(2, 1));
}

TEST_F(LruPolicyTest, OlderUseThatArrivesLateChangesNothing) {
  Insert(1, 0, 30);
  Insert(2, 0, 20);
  policy_.Used(1, 10);
  EXPECT_THAT(DrainVictims(&policy_), ElementsAre(2, 1));
}

TEST_F(LruPolicyTest, OrphansGoBeforeAllOthersUntilTheirParentReturns) {
  Insert(1, 0, 10);
  Insert(2, 5, 20);
  Insert(3, 5, 30);
  policy_.Orphaned(2, true);
  policy_.Orphaned(3, true);
  EXPECT_TRUE(policy_.NextVictim()->orphaned);
  EXPECT_EQ(policy_.NextVictim()->block, 2u);
  policy_.Orphaned(2, false);
  EXPECT_THAT(DrainVictims(&policy_), ElementsAre(3, 1, 2));
}

TEST_F(LruPolicyTest, BlockStaysUntilItMayGoAndWhenItMustStay) {
  policy_.Inserted(1, AtDepth(0), 10);
  EXPECT_EQ(policy_.NextVictim(), std::nullopt);
  policy_.MayGo(1);
  policy_.MayGo(1);
  EXPECT_EQ(policy_.NextVictim()->block, 1u);
  policy_.MustStay(1);
  policy_.MustStay(1);
  EXPECT_EQ(policy_.NextVictim(), std::nullopt);
}

TEST_F(LruPolicyTest, OrphanThatIsPinnedStays) {
  Insert(1, 0, 10);
  policy_.Orphaned(1, true);
  policy_.MustStay(1);
  EXPECT_EQ(policy_.NextVictim(), std::nullopt);
}

TEST_F(LruPolicyTest, ReusedHandleStartsAnew) {
  Insert(1, 0, 10);
  policy_.Orphaned(1, true);
  policy_.Removed(1);
  policy_.Inserted(1, AtDepth(0), 20);
  EXPECT_EQ(policy_.NextVictim(), std::nullopt);
  policy_.MayGo(1);
  EXPECT_FALSE(policy_.NextVictim()->orphaned);
  EXPECT_EQ(policy_.NextVictim()->stamp, 20u);
}

using LruPolicyDeathTest = LruPolicyTest;

TEST_F(LruPolicyDeathTest, UnknownBlockIsABug) {
  EXPECT_DEATH(policy_.Used(7, 1), "states_");
  EXPECT_DEATH(policy_.Removed(7), "states_");
}

// A cache of `capacity` blocks in which only a block without children may go.
class LeafFirstCache {
 public:
  explicit LeafFirstCache(size_t capacity) : capacity_(capacity) {}

  // One request: what of the chain is there is used, the rest is put, all under one stamp; it holds
  // its blocks until it ends.
  void Request(const std::vector<BlockHandle>& chain) {
    const UseStamp stamp = ++stamp_;
    for (size_t depth = 0; depth < chain.size(); ++depth) {
      if (parents_.contains(chain[depth])) {
        policy_.Used(chain[depth], stamp);
      } else {
        MakeRoom(1);
        Insert(chain, depth, stamp);
      }
      held_.insert(chain[depth]);
      Review(chain[depth]);
    }
    held_.clear();
    for (BlockHandle block : chain) Review(block);
  }

  // Evicts until `needed` more blocks fit.
  void MakeRoom(size_t needed) {
    while (parents_.size() + needed > capacity_) {
      const std::optional<EvictionPolicy::Victim> victim = policy_.NextVictim();
      ASSERT_TRUE(victim.has_value());
      policy_.Removed(victim->block);
      const BlockHandle parent = parents_.at(victim->block);
      parents_.erase(victim->block);
      evicted_.push_back(victim->block);
      --children_[parent];
      if (parent != kNone) Review(parent);
    }
  }

  // Consecutive blocks from the start that are there.
  size_t Hits(const std::vector<BlockHandle>& chain) const {
    const auto missing = [this](BlockHandle block) { return !parents_.contains(block); };
    return static_cast<size_t>(std::find_if(chain.begin(), chain.end(), missing) - chain.begin());
  }

  const std::vector<BlockHandle>& evicted() const { return evicted_; }

 private:
  static constexpr BlockHandle kNone = 0;

  void Insert(const std::vector<BlockHandle>& chain, size_t depth, UseStamp stamp) {
    const BlockHandle parent = depth == 0 ? kNone : chain[depth - 1];
    parents_[chain[depth]] = parent;
    policy_.Inserted(chain[depth], AtDepth(static_cast<uint32_t>(depth)), stamp);
    ++children_[parent];
  }

  void Review(BlockHandle block) {
    if (children_[block] == 0 && !held_.contains(block)) {
      policy_.MayGo(block);
    } else {
      policy_.MustStay(block);
    }
  }

  const size_t capacity_;
  LruPolicy policy_;
  UseStamp stamp_ = 0;
  std::map<BlockHandle, BlockHandle> parents_;  // Of each block that is there.
  std::map<BlockHandle, int> children_;
  std::set<BlockHandle> held_;
  std::vector<BlockHandle> evicted_;
};

TEST(LeafFirstTest, EvictsTheEndOfAChainAndKeepsItsPrefixUsable) {
  LeafFirstCache cache(3);
  cache.Request({1, 2, 3});
  cache.MakeRoom(1);
  EXPECT_THAT(cache.evicted(), ElementsAre(3));
  EXPECT_EQ(cache.Hits({1, 2, 3}), 2u);
}

TEST(LeafFirstTest, SharedSystemPromptSurvivesAFloodOfUniquePrompts) {
  LeafFirstCache cache(20);
  const std::vector<BlockHandle> system_prompt = {1, 2, 3, 4};
  for (BlockHandle i = 0; i < 500; ++i) {
    std::vector<BlockHandle> chain = system_prompt;
    for (BlockHandle j = 0; j < 3; ++j) chain.push_back(1000 + 3 * i + j);
    cache.Request(chain);
    ASSERT_EQ(cache.Hits(system_prompt), system_prompt.size()) << "after request " << i;
  }
}

TEST(LeafFirstTest, EvictsExactlyWhatIsMissing) {
  LeafFirstCache cache(10);
  cache.Request({1, 2, 3, 4});
  cache.Request({11, 12, 13});
  cache.MakeRoom(5);
  EXPECT_THAT(cache.evicted(), ElementsAre(4, 3));
}

TEST(LeafFirstTest, OldRequestGoesWholeFromItsEndBeforeANewerOneIsTouched) {
  LeafFirstCache cache(6);
  cache.Request({1, 2, 3});
  cache.Request({11, 12, 13});
  cache.MakeRoom(4);
  EXPECT_THAT(cache.evicted(), ElementsAre(3, 2, 1, 13));
}

TEST(LeafFirstTest, UseOfAPrefixKeepsThePrefixAndNotItsOldContinuation) {
  LeafFirstCache cache(6);
  cache.Request({1, 2, 3});
  cache.Request({11, 12});
  cache.Request({1});
  cache.MakeRoom(5);
  EXPECT_THAT(cache.evicted(), ElementsAre(3, 2, 12, 11));
  EXPECT_EQ(cache.Hits({1}), 1u);
}

// Searches all blocks at each question.
class NaiveLru {
 public:
  struct Entry {
    bool may_go = false;
    bool orphaned = false;
    uint32_t depth = 0;
    UseStamp stamp = 0;
  };

  std::optional<BlockHandle> NextVictim() const {
    std::optional<BlockHandle> best;
    for (const auto& [block, entry] : entries) {
      if (entry.may_go && (!best.has_value() || Before(entry, entries.at(*best)))) best = block;
    }
    return best;
  }

  std::map<BlockHandle, Entry> entries;

 private:
  static bool Before(const Entry& a, const Entry& b) {
    if (a.orphaned != b.orphaned) return a.orphaned;
    if (a.stamp != b.stamp) return a.stamp < b.stamp;
    return a.depth > b.depth;
  }
};

class LruComparison {
 public:
  explicit LruComparison(uint64_t seed) : random_(seed) {}

  void Step() {
    const auto block = static_cast<BlockHandle>(Below(60));
    auto known = naive_.entries.find(block);
    if (known == naive_.entries.end()) {
      const auto depth = static_cast<uint32_t>(Below(6));
      const UseStamp stamp = 1 + Below(40);
      policy_.Inserted(block, AtDepth(depth), stamp);
      naive_.entries[block] = {false, false, depth, stamp};
      return;
    }
    Change(block, &known->second);
  }

  void Compare() {
    const std::optional<BlockHandle> expected = naive_.NextVictim();
    const std::optional<EvictionPolicy::Victim> victim = policy_.NextVictim();
    ASSERT_EQ(victim.has_value(), expected.has_value());
    if (!victim.has_value()) return;
    EXPECT_EQ(victim->block, *expected);
    EXPECT_EQ(victim->orphaned, naive_.entries[*expected].orphaned);
    EXPECT_EQ(victim->stamp, naive_.entries[*expected].stamp);
  }

 private:
  uint64_t Below(uint64_t limit) {
    return std::uniform_int_distribution<uint64_t>(0, limit - 1)(random_);
  }

  void Change(BlockHandle block, NaiveLru::Entry* entry) {
    const uint64_t stamp = 1 + Below(40);
    const bool orphaned = Below(2) == 0;
    switch (Below(6)) {
      case 0:
        policy_.Used(block, stamp);
        entry->stamp = std::max(entry->stamp, stamp);
        break;
      case 1:
      case 2:
        policy_.MayGo(block);
        entry->may_go = true;
        break;
      case 3:
        policy_.MustStay(block);
        entry->may_go = false;
        break;
      case 4:
        policy_.Orphaned(block, orphaned);
        entry->orphaned = orphaned;
        break;
      default:
        policy_.Removed(block);
        naive_.entries.erase(block);
    }
  }

  std::mt19937_64 random_;
  LruPolicy policy_;
  NaiveLru naive_;
};

TEST(LruPolicyRandomTest, AgreesWithANaiveSearch) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    LruComparison comparison(seed);
    for (int step = 0; step < 5000 && !::testing::Test::HasFailure(); ++step) {
      comparison.Step();
      comparison.Compare();
    }
  }
}

}  // namespace
}  // namespace cairn::node
