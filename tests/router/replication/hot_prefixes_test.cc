// Method: prompts as the router answered them, made by hand, at given times; which copies come of
// them, from where to where, and when none may.
#include "router/replication/hot_prefixes.h"

#include <gmock/gmock.h>

#include "common/identity/rendezvous.h"
#include "tests/router/replication/routed.h"

namespace cairn::router {
namespace {

constexpr uint32_t kShared = 16;  // Blocks: 4,096 tokens.

class HotPrefixesTest : public ::testing::Test {
 protected:
  HotPrefixesTest() { options_.bytes_per_token = 1024; }

  void Make() { hot_.emplace(options_); }
  // A prompt of the shared prefix and blocks of its own.
  std::optional<CopyOrder> Route(const std::vector<RankedReplica>& replicas) {
    if (!hot_.has_value()) Make();
    const std::vector<BlockKey> keys = KeysOf(kShared, ++prompt_, 2);
    now_ += absl::Milliseconds(10);
    return hot_->Observe({.tenant = "acme",
                          .fingerprint = Fingerprint(),
                          .keys = keys,
                          .public_blocks = public_blocks_,
                          .block_tokens = kBlockTokens,
                          .replicas = replicas},
                         now_);
  }
  // The first copy of so many such prompts.
  std::optional<CopyOrder> RouteMany(const std::vector<RankedReplica>& replicas, int times = 20) {
    std::optional<CopyOrder> first;
    for (int i = 0; i < times; ++i) {
      std::optional<CopyOrder> order = Route(replicas);
      if (!first.has_value()) first = std::move(order);
    }
    return first;
  }
  void End(const CopyOrder& order, absl::Status status = absl::OkStatus()) {
    CopyResult result;
    result.status = status;
    if (status.ok()) {
      result.blocks_pulled = order.keys.size();
      result.bytes_pulled = order.bytes;
    }
    hot_->EndCopy(order, result, now_);
  }

  const std::vector<RankedReplica> saturated_ = {NodeWith(1, kShared, 3), NodeWith(2, 0, 0.1),
                                                 NodeWith(3, 0, 0.1), NodeWith(4, 0, 3)};
  ReplicationOptions options_;
  std::optional<HotPrefixes> hot_;
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  uint32_t prompt_ = 0;
  size_t public_blocks_ = 0;
};

TEST_F(HotPrefixesTest, APrefixWhoseHoldersAreSaturatedIsCopiedToWhoIsNot) {
  const std::optional<CopyOrder> order = RouteMany(saturated_);
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(order->keys, KeysOf(kShared, 0, 0)) << "what they share, and nothing of their own";
  EXPECT_EQ(order->tenant, "acme");
  EXPECT_EQ(order->source_node_id, "node-1");
  EXPECT_THAT(order->node_id, ::testing::AnyOf("node-2", "node-3"));
  EXPECT_EQ(order->bytes, kShared * kBlockTokens * 1024u);
  EXPECT_EQ(hot_->counters().orders, 1u) << "one copy of a prefix at a time";
}

TEST_F(HotPrefixesTest, AnOrderSaysWhichOfItsBlocksArePublic) {
  public_blocks_ = 4;
  EXPECT_EQ(RouteMany(saturated_)->public_blocks, 4u);
  Make();
  public_blocks_ = kShared + 2;
  EXPECT_EQ(RouteMany(saturated_)->public_blocks, kShared) << "of those that are copied";
}

TEST_F(HotPrefixesTest, OtherRoutersChooseTheSameNode) {
  std::set<std::string> chosen;
  for (int router = 0; router < 5; ++router) {
    Make();
    std::vector<RankedReplica> replicas = saturated_;
    std::rotate(replicas.begin(), replicas.begin() + router % 4, replicas.end());
    chosen.insert(RouteMany(replicas)->node_id);
  }
  EXPECT_EQ(chosen.size(), 1u);
}

TEST_F(HotPrefixesTest, AFewPromptsMakeNoPrefixHot) {
  EXPECT_FALSE(RouteMany(saturated_, 7).has_value());
  now_ += absl::Minutes(1);
  EXPECT_FALSE(RouteMany(saturated_, 7).has_value()) << "those of a minute ago do not count";
}

TEST_F(HotPrefixesTest, APrefixThatOneHolderServesInTimeIsNotCopied) {
  std::vector<RankedReplica> replicas = saturated_;
  replicas.push_back(NodeWith(5, kShared, 0.15));
  EXPECT_FALSE(RouteMany(replicas).has_value());
  EXPECT_EQ(hot_->counters().saturated_prompts, 0u);
}

TEST_F(HotPrefixesTest, AWaitThatACopyWouldNotShortenMakesNone) {
  // 4,096 tokens of 1 MiB each take 32 s to copy.
  options_.bytes_per_token = 1 << 20;
  EXPECT_FALSE(RouteMany(saturated_).has_value());
}

TEST_F(HotPrefixesTest, ShortPrefixesAreAsSoonComputed) {
  options_.prefix_tokens_min = kShared * kBlockTokens + 1;
  EXPECT_FALSE(RouteMany(saturated_).has_value());
}

TEST_F(HotPrefixesTest, WhatIsNotCertainNeitherGivesNorTakes) {
  for (const HolderState state :
       {HolderState::kRecovering, HolderState::kDegraded, HolderState::kOut}) {
    std::vector<RankedReplica> replicas = saturated_;
    replicas[0].holder_state = state;
    EXPECT_FALSE(RouteMany(replicas).has_value());
    replicas = saturated_;
    replicas[1].holder_state = replicas[2].holder_state = state;
    Make();
    const std::optional<CopyOrder> order = RouteMany(replicas);
    EXPECT_FALSE(order.has_value()) << order->node_id;
  }
}

TEST_F(HotPrefixesTest, WhatIsComingIsNoHolding) {
  std::vector<RankedReplica> replicas = saturated_;
  replicas[0].matched = {};
  replicas[0].matched.coming = kShared * kBlockTokens;
  EXPECT_FALSE(RouteMany(replicas).has_value());
}

TEST_F(HotPrefixesTest, ACopyThatCameMakesItsNodeAHolder) {
  const std::optional<CopyOrder> order = RouteMany(saturated_);
  ASSERT_TRUE(order.has_value());
  End(*order);
  now_ += absl::Seconds(2);
  std::vector<RankedReplica> replicas = saturated_;
  for (RankedReplica& replica : replicas) {
    if (replica.node_id == order->node_id) replica = NodeWith(9, kShared, 0.1);
  }
  EXPECT_FALSE(RouteMany(replicas).has_value());
  // Until that one is saturated too.
  for (RankedReplica& replica : replicas) {
    if (replica.node_id == "node-9") replica.terms.queued_seconds = 3;
  }
  const std::optional<CopyOrder> next = RouteMany(replicas, 60);
  ASSERT_TRUE(next.has_value());
  EXPECT_NE(next->node_id, "node-9");
  EXPECT_EQ(hot_->counters().blocks_copied, kShared);
}

TEST_F(HotPrefixesTest, CopiesKeepToTheBudget) {
  options_.bytes_per_second = kShared * kBlockTokens * 1024 / 10;  // One copy in ten seconds.
  int orders = 0;
  for (int i = 0; i < 6000; ++i) {  // A minute.
    const std::optional<CopyOrder> order = Route(saturated_);
    if (!order.has_value()) continue;
    ++orders;
    End(*order);
  }
  EXPECT_GE(orders, 5);
  EXPECT_LE(orders, 7);
  EXPECT_GT(hot_->counters().over_budget, 0u);
  EXPECT_EQ(hot_->outstanding_bytes(), 0u);
}

TEST_F(HotPrefixesTest, WithoutABudgetNothingIsLookedAt) {
  options_.bytes_per_second = 0;
  EXPECT_FALSE(RouteMany(saturated_).has_value());
  EXPECT_EQ(hot_->size(), 0u);
}

TEST_F(HotPrefixesTest, ANodeThatRefusesIsLeftAlone) {
  const std::optional<CopyOrder> order = RouteMany(saturated_);
  End(*order, absl::FailedPreconditionError("it has no peers"));
  now_ += absl::Seconds(5);
  const std::optional<CopyOrder> other = RouteMany(saturated_);
  ASSERT_TRUE(other.has_value());
  EXPECT_NE(other->node_id, order->node_id);
  End(*other, absl::FailedPreconditionError("it has no peers"));
  now_ += absl::Seconds(5);
  EXPECT_FALSE(RouteMany(saturated_).has_value());
  EXPECT_EQ(hot_->counters().failed, 2u);
  now_ += HotPrefixes::kRefusedPause;
  EXPECT_TRUE(RouteMany(saturated_).has_value());
}

TEST_F(HotPrefixesTest, WhatCopiesMovedSaysHowLargeATokenIs) {
  options_.bytes_per_token = 8 * 1024;
  const std::optional<CopyOrder> order = RouteMany(saturated_);
  CopyResult result;
  result.blocks_pulled = kShared;
  result.bytes_pulled = kShared * kBlockTokens * 2048;
  hot_->EndCopy(*order, result, now_);
  now_ += absl::Seconds(5);
  EXPECT_EQ(RouteMany(saturated_)->bytes, kShared * kBlockTokens * 2048u);
}

// The node was asked twice, and had all by the second time: nobody said how many bytes came.
TEST_F(HotPrefixesTest, ACopyThatCannotTellItsBytesIsBookedAsWhatItsBlocksAre) {
  const std::optional<CopyOrder> order = RouteMany(saturated_);
  CopyResult result;
  result.blocks_pulled = kShared;
  hot_->EndCopy(*order, result, now_);
  EXPECT_EQ(hot_->counters().bytes_copied, order->bytes);
  now_ += absl::Seconds(5);
  const std::optional<CopyOrder> next = RouteMany(saturated_);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->bytes, order->bytes) << "the next is not for nothing";
}

TEST_F(HotPrefixesTest, CopiesThatBringNothingBecomeRare) {
  int orders = 0;
  for (int i = 0; i < 30'000; ++i) {  // Five minutes, and never cool.
    const std::optional<CopyOrder> order = Route(saturated_);
    if (!order.has_value()) continue;
    ++orders;
    hot_->EndCopy(*order, CopyResult(), now_);
  }
  EXPECT_GE(orders, 8);
  EXPECT_LE(orders, 12) << "1, 2, 4, ... seconds between them, then a minute";
}

TEST_F(HotPrefixesTest, ACopyThatDoesNotStayIsNotMadeAgainAndAgain) {
  int orders = 0;
  for (int i = 0; i < 30'000; ++i) {
    const std::optional<CopyOrder> order = Route(saturated_);
    if (!order.has_value()) continue;
    ++orders;
    End(*order);  // Its node drops it at once: nobody is seen to hold it.
  }
  EXPECT_GE(orders, 8);
  EXPECT_LE(orders, 13);
  // Once it has cooled, all is forgotten.
  now_ += absl::Minutes(2);
  EXPECT_TRUE(RouteMany(saturated_).has_value());
}

TEST_F(HotPrefixesTest, APrefixThatCoolsIsForgottenAndCounted) {
  End(*RouteMany(saturated_));
  now_ += absl::Minutes(1);
  Route(saturated_);
  EXPECT_EQ(hot_->counters().cooled, 1u);
}

TEST_F(HotPrefixesTest, WhatIsRememberedIsBounded) {
  Make();
  std::vector<RankedReplica> replicas = {NodeWith(1, 8, 0), NodeWith(2, 0, 0)};
  for (uint32_t i = 0; i < 2 * HotPrefixes::kPrefixesMax; ++i) {
    const std::vector<BlockKey> keys = KeysOf(0, i, 8);
    hot_->Observe({.tenant = "acme",
                   .fingerprint = Fingerprint(),
                   .keys = keys,
                   .block_tokens = kBlockTokens,
                   .replicas = replicas},
                  now_);
  }
  EXPECT_EQ(hot_->size(), HotPrefixes::kPrefixesMax);
}

}  // namespace
}  // namespace cairn::router
