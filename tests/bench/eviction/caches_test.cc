// The simulated caches against plain ones that go block by block over small random traces: lists
// that are searched, a Belady that looks ahead at each eviction.

#include <gmock/gmock.h>

#include <algorithm>
#include <list>
#include <random>
#include <set>

#include "cache_node/store/policies/lru_policy.h"
#include "cache_node/store/policies/policy_registry.h"
#include "tests/bench/eviction/best_cache.h"
#include "tests/bench/eviction/fake_trace.h"
#include "tests/bench/eviction/simulated_store.h"

namespace cairn::bench {
namespace {

using Block = BlockTrace::Block;
using Path = std::vector<Block>;

// Prompts that share prefixes: each goes on from an earlier one, cut somewhere, or begins anew.
BlockTrace RandomTrace(uint64_t seed, size_t requests) {
  std::mt19937_64 random(seed);
  std::vector<FakeTrace::Prompt> prompts;
  for (size_t i = 0; i < requests; ++i) {
    FakeTrace::Prompt prompt;
    if (!prompts.empty() && random() % 5 != 0) {
      const size_t back = std::min<size_t>(prompts.size(), 1 + random() % 12);
      prompt.ids = prompts[prompts.size() - back].ids;
      if (random() % 3 == 0) prompt.ids.resize(random() % (prompt.ids.size() + 1));
    }
    const size_t more = random() % 6 + (prompt.ids.empty() ? 1 : 0);
    for (size_t j = 0; j < more; ++j) prompt.ids.push_back(random() % 4);
    prompt.arrival_s = static_cast<double>(i);
    prompts.push_back(std::move(prompt));
  }
  FakeTrace reader(std::move(prompts));
  return *BlockTrace::Read(&reader, {});
}

std::vector<Path> PathsOf(const BlockTrace& trace) {
  std::vector<Path> paths(trace.requests().size());
  for (size_t i = 0; i < paths.size(); ++i) trace.PathOf(trace.requests()[i], &paths[i]);
  return paths;
}

uint64_t LeadingHits(const Path& path, const std::set<Block>& there) {
  const auto missing = [&](Block block) { return !there.contains(block); };
  return static_cast<uint64_t>(std::find_if(path.begin(), path.end(), missing) - path.begin());
}

uint64_t PlainUnlimited(const std::vector<Path>& paths) {
  std::set<Block> there;
  uint64_t hits = 0;
  for (const Path& path : paths) {
    hits += LeadingHits(path, there);
    there.insert(path.begin(), path.end());
  }
  return hits;
}

// Touches the first `capacity` blocks of each prompt from the last of them to the first.
uint64_t PlainLru(const std::vector<Path>& paths, size_t capacity) {
  std::list<Block> newest_first;
  uint64_t hits = 0;
  for (const Path& path : paths) {
    hits += LeadingHits(path, {newest_first.begin(), newest_first.end()});
    for (size_t i = std::min(path.size(), capacity); i-- > 0;) {
      newest_first.remove(path[i]);
      newest_first.push_front(path[i]);
      if (newest_first.size() > capacity) newest_first.pop_back();
    }
  }
  return hits;
}

// After each block, of all that it holds, that one leaves which is asked for last.
uint64_t PlainBelady(const std::vector<Path>& paths, size_t capacity) {
  std::vector<Block> asked;
  for (const Path& path : paths) asked.insert(asked.end(), path.begin(), path.end());
  size_t now = 0;
  const auto next_use = [&](Block block) {
    return std::find(asked.begin() + static_cast<ptrdiff_t>(now), asked.end(), block);
  };
  std::set<Block> there;
  uint64_t hits = 0;
  for (const Path& path : paths) {
    bool leading = true;
    for (const Block block : path) {
      ++now;
      leading = leading && there.contains(block);
      hits += leading ? 1 : 0;
      there.insert(block);
      if (there.size() <= capacity) continue;
      there.erase(*std::max_element(there.begin(), there.end(),
                                    [&](Block a, Block b) { return next_use(a) < next_use(b); }));
    }
  }
  return hits;
}

uint64_t SimulatedLru(const BlockTrace& trace, uint32_t capacity) {
  return SimulatedStore(&trace, capacity, std::make_unique<node::LruPolicy>())
      .ServeAll()
      .hit_blocks;
}

class CachesTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(CachesTest, HitWhatPlainOnesHit) {
  const BlockTrace trace = RandomTrace(GetParam(), 120);
  const std::vector<Path> paths = PathsOf(trace);
  EXPECT_EQ(UnlimitedHits(trace).hit_blocks, PlainUnlimited(paths));
  for (const uint32_t capacity : {1, 2, 5, 13, 40, 90, 100000}) {
    SCOPED_TRACE(capacity);
    EXPECT_EQ(SimulatedLru(trace, capacity), PlainLru(paths, capacity));
    EXPECT_EQ(BeladyHits(trace, capacity).hit_blocks, PlainBelady(paths, capacity));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CachesTest, ::testing::Range<uint64_t>(1, 31));

TEST(CachesTest, EachPolicyKeepsPrefixesWholeAndItsSize) {
  for (const absl::string_view name : node::EvictionPolicyNames()) {
    SCOPED_TRACE(std::string(name));
    const BlockTrace trace = RandomTrace(5, 400);
    constexpr uint32_t kCapacity = 30;
    SimulatedStore store(&trace, kCapacity, (*node::MakeEvictionPolicies(name))->Make());
    for (const BlockTrace::Request& request : trace.requests()) {
      store.Serve(request);
      uint32_t held = 0;
      for (Block block = 0; block < trace.block_count(); ++block) {
        if (!store.Holds(block)) continue;
        ++held;
        const Block parent = trace.ParentOf(block);
        ASSERT_TRUE(parent == BlockTrace::kNone || store.Holds(parent));
      }
      ASSERT_EQ(held, store.held());
      ASSERT_LE(held, kCapacity);
    }
    EXPECT_GT(store.evicted(), 0u);
  }
}

TEST(CachesTest, NoPolicyHitsMoreThanTheBest) {
  for (const absl::string_view name : node::EvictionPolicyNames()) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const BlockTrace trace = RandomTrace(seed, 150);
      SimulatedStore store(&trace, 20, (*node::MakeEvictionPolicies(name))->Make());
      EXPECT_LE(store.ServeAll().hit_blocks, BeladyHits(trace, 20).hit_blocks) << name;
    }
  }
}

}  // namespace
}  // namespace cairn::bench
