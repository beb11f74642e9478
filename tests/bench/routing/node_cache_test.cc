// The cache of a simulated node beside a plain list that does the same by its definition.

#include "tests/bench/routing/node_cache.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <list>
#include <random>

namespace cairn::bench {
namespace {

using Path = std::vector<BlockTrace::Block>;

TEST(NodeCacheTest, MatchesTheLeadingBlocksThatAreThere) {
  NodeCache cache(10, 4);
  cache.Use(Path{0, 1, 2});
  EXPECT_EQ(cache.Match(Path{0, 1, 2, 3}), 3u);
  EXPECT_EQ(cache.Match(Path{0, 5, 2}), 1u);
  EXPECT_EQ(cache.Match(Path{5}), 0u);
  EXPECT_EQ(cache.Match(Path{}), 0u);
}

TEST(NodeCacheTest, TheDeepestOfTheOldestLeaveFirst) {
  NodeCache cache(10, 4);
  cache.Use(Path{0, 1, 2});
  cache.Use(Path{3, 4});
  EXPECT_EQ(cache.Match(Path{0, 1, 2}), 2u);
  cache.Use(Path{0});
  cache.Use(Path{5});
  EXPECT_TRUE(cache.Holds(0));
  EXPECT_FALSE(cache.Holds(1));
}

TEST(NodeCacheTest, KeepsTheFirstBlocksOfAPromptThatIsTooLong) {
  NodeCache cache(10, 3);
  cache.Use(Path{0, 1, 2, 3, 4});
  EXPECT_EQ(cache.Match(Path{0, 1, 2, 3, 4}), 3u);
}

TEST(NodeCacheTest, DoesAsAListDoes) {
  constexpr uint32_t kCapacity = 7;
  NodeCache cache(30, kCapacity);
  std::list<BlockTrace::Block> order;  // Newest first.
  std::mt19937 random(3);
  for (int step = 0; step < 3000; ++step) {
    const auto first = static_cast<BlockTrace::Block>(random() % 3 * 10);
    Path path;
    for (uint32_t i = 0; i <= random() % 10; ++i) path.push_back(first + i);
    cache.Use(path);
    for (size_t i = std::min<size_t>(path.size(), kCapacity); i-- > 0;) {
      order.remove(path[i]);
      order.push_front(path[i]);
      if (order.size() > kCapacity) order.pop_back();
    }
    for (BlockTrace::Block block = 0; block < 30; ++block) {
      ASSERT_EQ(cache.Holds(block), std::count(order.begin(), order.end(), block) > 0)
          << block << " after step " << step;
    }
  }
}

}  // namespace
}  // namespace cairn::bench
