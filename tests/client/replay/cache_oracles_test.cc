// Hand-counted cases, then random prompts against naive models: a set of prefixes, and an LRU list
// that touches block by block.
#include "client/replay/cache_oracles.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <list>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace cairn::replay {
namespace {

constexpr uint32_t kBlockTokens = 4;

TracePrompt Ids(std::vector<IdRun> runs, uint64_t name_space = 0, uint64_t extra_tokens = 0) {
  std::vector<IdRun> merged;
  uint64_t tokens = extra_tokens;
  for (const IdRun& run : runs) {
    AppendRun(run, &merged);
    tokens += run.count * kBlockTokens;
  }
  if (extra_tokens > 0) AppendRun({1'000'000, 1}, &merged);
  return TracePrompt::FromIds(name_space, kBlockTokens, merged, tokens);
}

OracleHits Observe(CacheOracles* oracles, const TracePrompt& prompt) {
  const absl::StatusOr<OracleHits> hits = oracles->Observe(prompt);
  EXPECT_TRUE(hits.ok()) << hits.status();
  return hits.ok() ? *hits : OracleHits{~uint64_t{0}, 0};
}

TEST(CacheOracles, CountsLeadingBlocksOnly) {
  CacheOracles oracles(kBlockTokens, 100);
  EXPECT_EQ(Observe(&oracles, Ids({{1, 5}})), (OracleHits{0, 0}));
  EXPECT_EQ(Observe(&oracles, Ids({{1, 5}})), (OracleHits{5, 5}));
  EXPECT_EQ(Observe(&oracles, Ids({{1, 3}, {9, 4}})), (OracleHits{3, 3}));
  EXPECT_EQ(Observe(&oracles, Ids({{2, 4}})), (OracleHits{0, 0}));
  EXPECT_EQ(Observe(&oracles, Ids({{1, 8}})), (OracleHits{5, 5}));
  EXPECT_EQ(oracles.distinct_blocks(), 5u + 4u + 4u + 3u);
}

TEST(CacheOracles, APartialBlockIsNeverAHitButItsTokensCount) {
  CacheOracles oracles(kBlockTokens, 100);
  Observe(&oracles, Ids({{1, 2}}, 0, 3));
  EXPECT_EQ(Observe(&oracles, Ids({{1, 2}}, 0, 3)), (OracleHits{2, 2}));
  EXPECT_EQ(oracles.prompt_tokens(), 22u);
  EXPECT_EQ(oracles.full_blocks(), 4u);
  EXPECT_EQ(oracles.ideal_hit_tokens(), 8u);
  EXPECT_EQ(Observe(&oracles, Ids({}, 0, 3)), (OracleHits{0, 0}));
}

TEST(CacheOracles, NamespacesShareNothing) {
  CacheOracles oracles(kBlockTokens, 100);
  Observe(&oracles, Ids({{1, 5}}, 1));
  EXPECT_EQ(Observe(&oracles, Ids({{1, 5}}, 2)), (OracleHits{0, 0}));
  EXPECT_EQ(Observe(&oracles, Ids({{1, 5}}, 1)), (OracleHits{5, 5}));
}

TEST(CacheOracles, TheLruLosesTheDeepestBlocksOfTheOldestPromptFirst) {
  CacheOracles oracles(kBlockTokens, 6);
  Observe(&oracles, Ids({{1, 4}}));
  Observe(&oracles, Ids({{11, 4}}));  // Two blocks too many: 4 and 3 go.
  EXPECT_EQ(Observe(&oracles, Ids({{1, 4}})), (OracleHits{4, 2}));
}

TEST(CacheOracles, TheLruKeepsTheFirstBlocksOfAPromptThatIsTooLong) {
  CacheOracles oracles(kBlockTokens, 3);
  Observe(&oracles, Ids({{1, 10}}));
  EXPECT_EQ(Observe(&oracles, Ids({{1, 10}})), (OracleHits{10, 3}));
  Observe(&oracles, Ids({{21, 1}}));
  EXPECT_EQ(Observe(&oracles, Ids({{1, 10}})), (OracleHits{10, 2}));
}

TEST(CacheOracles, AnLruOfNothingHitsNothing) {
  CacheOracles oracles(kBlockTokens, 0);
  Observe(&oracles, Ids({{1, 4}}));
  EXPECT_EQ(Observe(&oracles, Ids({{1, 4}})), (OracleHits{4, 0}));
}

TEST(CacheOracles, RealTokensAreComparedBlockByBlock) {
  CacheOracles oracles(2, 100);
  Observe(&oracles, TracePrompt::FromTokens({1, 2, 3, 4, 5}));
  EXPECT_EQ(Observe(&oracles, TracePrompt::FromTokens({1, 2, 3, 9})), (OracleHits{1, 1}));
  EXPECT_EQ(Observe(&oracles, TracePrompt::FromTokens({3, 4, 1, 2})), (OracleHits{0, 0}));
  EXPECT_EQ(Observe(&oracles, TracePrompt::FromTokens({1, 2, 3, 4, 5, 6})), (OracleHits{2, 2}));
}

TEST(CacheOracles, BlocksSmallerThanTheTracesAreCountedByTheirTokens) {
  CacheOracles oracles(2, 100);
  const TracePrompt prompt = TracePrompt::FromIds(0, 4, {{1, 3}}, 11);
  Observe(&oracles, prompt);
  EXPECT_EQ(Observe(&oracles, prompt), (OracleHits{5, 5}));
  // The last block of the first prompt is partial: only half of this one's is known.
  EXPECT_EQ(Observe(&oracles, TracePrompt::FromIds(0, 4, {{1, 3}}, 12)), (OracleHits{5, 5}));
}

// What CacheOracles says, one block at a time.
class NaiveCaches {
 public:
  explicit NaiveCaches(size_t lru_blocks) : lru_blocks_(lru_blocks) {}

  OracleHits Observe(uint64_t name_space, const std::vector<uint64_t>& ids) {
    std::vector<Prefix> prefixes;
    Prefix prefix = {name_space};
    for (const uint64_t id : ids) {
      prefix.push_back(id);
      prefixes.push_back(prefix);
    }
    OracleHits hits;
    while (hits.ideal_blocks < ids.size() && seen_.contains(prefixes[hits.ideal_blocks])) {
      ++hits.ideal_blocks;
    }
    while (hits.lru_blocks < ids.size() && where_.contains(prefixes[hits.lru_blocks])) {
      ++hits.lru_blocks;
    }
    seen_.insert(prefixes.begin(), prefixes.end());
    for (size_t i = std::min(prefixes.size(), lru_blocks_); i-- > 0;) Touch(prefixes[i]);
    return hits;
  }

 private:
  using Prefix = std::vector<uint64_t>;

  void Touch(const Prefix& prefix) {
    const auto found = where_.find(prefix);
    if (found != where_.end()) {
      order_.erase(found->second);
    } else if (order_.size() == lru_blocks_) {
      where_.erase(order_.back());
      order_.pop_back();
    }
    order_.push_front(prefix);
    where_[prefix] = order_.begin();
  }

  const size_t lru_blocks_;
  std::set<Prefix> seen_;
  std::list<Prefix> order_;  // Youngest first.
  std::map<Prefix, std::list<Prefix>::iterator> where_;
};

// Ids of a prompt that shares a random share of an earlier one, then goes on in runs.
std::vector<uint64_t> RandomIds(const std::vector<std::vector<uint64_t>>& earlier,
                                std::mt19937_64* random) {
  std::vector<uint64_t> ids;
  if (!earlier.empty() && (*random)() % 8 != 0) {
    ids = earlier[(*random)() % earlier.size()];
    ids.resize((*random)() % (ids.size() + 1));
  }
  const uint64_t runs = (*random)() % 3;
  for (uint64_t run = 0; run < runs; ++run) {
    const uint64_t first = (*random)() % 20;
    const uint64_t count = (*random)() % 10;
    for (uint64_t i = 0; i < count; ++i) ids.push_back(first + i);
  }
  return ids;
}

TEST(CacheOracles, AgreesWithNaiveCachesOnRandomPrompts) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const uint64_t lru_blocks = random() % 60;
    CacheOracles oracles(kBlockTokens, lru_blocks);
    NaiveCaches naive(lru_blocks);
    std::vector<std::vector<uint64_t>> earlier;
    for (int request = 0; request < 200; ++request) {
      const std::vector<uint64_t> ids = RandomIds(earlier, &random);
      const uint64_t name_space = random() % 2;
      std::vector<IdRun> runs;
      for (const uint64_t id : ids) AppendRun({id, 1}, &runs);
      ASSERT_EQ(Observe(&oracles, Ids(runs, name_space)), naive.Observe(name_space, ids))
          << "request " << request;
      earlier.push_back(ids);
    }
  }
}

}  // namespace
}  // namespace cairn::replay
