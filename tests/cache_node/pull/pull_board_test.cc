// Method: calls join the board in turn; who brings a block, who shares it, and what a bound
// refuses.
#include "cache_node/pull/pull_board.h"

#include <gmock/gmock.h>

#include "common/rpc/retry_status.h"

namespace cairn::node {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

BlockKey Key(uint32_t number) {
  BlockKey key;
  for (size_t i = 0; i < 4; ++i) key.bytes[i] = static_cast<uint8_t>(number >> (8 * i));
  return key;
}

std::vector<BlockKey> Keys(uint32_t first, uint32_t end) {
  std::vector<BlockKey> keys;
  for (uint32_t i = first; i < end; ++i) keys.push_back(Key(i));
  return keys;
}

const PullTarget kTarget{"t", Fingerprint()};

TEST(PullBoard, OneBringsABlockAndAllGetItsOutcome) {
  PullBoard board;
  const auto first = board.Join(kTarget, Keys(0, 2));
  const auto second = board.Join(kTarget, Keys(1, 3));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_THAT(first->own, ElementsAre(true, true));
  EXPECT_THAT(second->own, ElementsAre(false, true));
  EXPECT_EQ(board.OutcomeOf(second->flights[0]), std::nullopt);
  board.End(kTarget, Key(1), PullOutcome::kPulled);
  EXPECT_EQ(board.OutcomeOf(first->flights[1]), PullOutcome::kPulled);
  EXPECT_EQ(board.OutcomeOf(second->flights[0]), PullOutcome::kPulled);
  // What is over is taken anew.
  const auto third = board.Join(kTarget, Keys(1, 2));
  EXPECT_THAT(third->own, ElementsAre(true));
  for (const BlockKey& key : Keys(0, 3)) board.End(kTarget, key, PullOutcome::kSkipped);
  EXPECT_EQ(board.OutcomeOf(first->flights[1]), PullOutcome::kPulled) << "an outcome stays";
  EXPECT_EQ(board.blocks(), 0u);
}

TEST(PullBoard, TenantsAndNamespacesAreApart) {
  PullBoard board;
  const PullTarget other{"u", Fingerprint()};
  EXPECT_THAT(board.Join(kTarget, Keys(0, 1))->own, ElementsAre(true));
  EXPECT_THAT(board.Join(other, Keys(0, 1))->own, ElementsAre(true));
}

TEST(PullBoard, OverABoundNothingIsJoined) {
  PullBoard board;
  ASSERT_TRUE(board.Join(kTarget, Keys(0, PullBoard::kBlocksPerTenantMax)).ok());
  const auto refused = board.Join(kTarget, Keys(0, PullBoard::kBlocksPerTenantMax + 1));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(RetryAfter(refused.status()).has_value());
  const PullTarget other{"u", Fingerprint()};
  ASSERT_TRUE(
      board.Join(other, Keys(0, PullBoard::kBlocksMax - PullBoard::kBlocksPerTenantMax)).ok());
  const PullTarget third{"v", Fingerprint()};
  EXPECT_FALSE(board.Join(third, Keys(0, 1)).ok());
  EXPECT_THAT(board.Join(kTarget, Keys(0, 4))->own, Each(false)) << "to share is always possible";
}

}  // namespace
}  // namespace cairn::node
