// What answers of nodes amount to, by hand: each reason, and which of two nodes' answers decides.
#include "client/cpp/explain/miss_verdict.h"

#include <gmock/gmock.h>

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint32_t kBlockTokens = 16;

NodeExplanation Node(const std::string& address, uint32_t present, v1::BlockState state) {
  NodeExplanation node = {.address = address, .status = absl::OkStatus(), .answer = {}};
  node.answer.set_node_id("id of " + address);
  node.answer.set_namespace_known(true);
  node.answer.set_blocks_total(4);
  node.answer.set_blocks_present(present);
  node.answer.set_state(state);
  return node;
}

NodeExplanation Diverging(const std::string& address, uint32_t present, uint64_t position,
                          uint32_t differing) {
  NodeExplanation node = Node(address, present, v1::BLOCK_STATE_NEVER_SEEN);
  node.answer.mutable_divergence()->set_position(position);
  node.answer.mutable_divergence()->set_differing_tokens(differing);
  node.answer.mutable_divergence()->set_asked_token(11);
  node.answer.mutable_divergence()->set_held_token(22);
  return node;
}

MissVerdict Verdict(std::vector<NodeExplanation> nodes, uint64_t tokens = 4 * kBlockTokens) {
  return VerdictOf(tokens, kBlockTokens, nodes);
}

TEST(MissVerdictTest, NothingIsMissing) {
  const MissVerdict verdict = Verdict(
      {Node("a", 1, v1::BLOCK_STATE_NEVER_SEEN), Node("b", 4, v1::BLOCK_STATE_UNSPECIFIED)});
  EXPECT_EQ(verdict.reason, MissReason::kHeld);
  EXPECT_EQ(verdict.node, "b");
  EXPECT_EQ(verdict.cached_tokens, 4u * kBlockTokens);
}

TEST(MissVerdictTest, NamesThatNodesSayCannotSteerATerminal) {
  NodeExplanation held = Node("a", 4, v1::BLOCK_STATE_UNSPECIFIED);
  held.answer.set_node_id("n\x1b[2J\n1");
  EXPECT_THAT(Verdict({held}).text, HasSubstr("n?[2J?1 holds all"));
  NodeExplanation differs;
  differs.answer.add_namespaces()->set_name("m\r\x1b");
  differs.answer.mutable_namespaces(0)->set_difference("revision \x07");
  EXPECT_THAT(Verdict({differs}).text, AllOf(HasSubstr("\"m??\""), HasSubstr("revision ?")));
}

TEST(MissVerdictTest, AShortPromptIsShortWhoeverIsAsked) {
  const MissVerdict verdict = Verdict({}, kBlockTokens - 1);
  EXPECT_EQ(verdict.reason, MissReason::kTooShort);
  EXPECT_THAT(verdict.text, AllOf(HasSubstr("15 tokens"), HasSubstr("block 16")));
}

TEST(MissVerdictTest, TheNodesThatHoldMostDecide) {
  const MissVerdict verdict =
      Verdict({Node("a", 1, v1::BLOCK_STATE_EVICTED), Diverging("b", 2, 40, 3)});
  EXPECT_EQ(verdict.reason, MissReason::kChangingValue);
  EXPECT_EQ(verdict.node, "b");
  EXPECT_EQ(verdict.cached_tokens, 2u * kBlockTokens);
}

TEST(MissVerdictTest, AmongThemWhatWasThereSaysMoreThanWhatIsNear) {
  NodeExplanation evicted = Node("a", 2, v1::BLOCK_STATE_EVICTED);
  evicted.answer.set_removed_ms_ago(90'000);
  const MissVerdict verdict = Verdict({Diverging("b", 2, 40, 3), evicted});
  EXPECT_EQ(verdict.reason, MissReason::kRemoved);
  EXPECT_THAT(verdict.text,
              AllOf(HasSubstr("id of a"), HasSubstr("evicted 1m30s ago"), HasSubstr("memory")));
}

TEST(MissVerdictTest, AChangingValueIsNamedByPlaceLengthAndTokens) {
  const MissVerdict verdict = Verdict({Diverging("a", 0, 3, 2)});
  EXPECT_EQ(verdict.reason, MissReason::kChangingValue);
  EXPECT_EQ(verdict.position, 3u);
  EXPECT_EQ(verdict.differing_tokens, 2u);
  EXPECT_THAT(verdict.text, AllOf(HasSubstr("2 tokens changes at position 3"), HasSubstr("is 11"),
                                  HasSubstr("22 in the nearest"), HasSubstr("timestamp")));
}

TEST(MissVerdictTest, AnotherPromptDivergesAndOneWithNothingInCommonIsNotHeld) {
  EXPECT_EQ(Verdict({Diverging("a", 1, 20, 0)}).reason, MissReason::kDiverges);
  const MissVerdict first_token = Verdict({Diverging("a", 0, 0, 0)});
  EXPECT_EQ(first_token.reason, MissReason::kNotHeld);
  EXPECT_EQ(Verdict({Diverging("a", 0, 0, 4)}).reason, MissReason::kChangingValue);
  const MissVerdict fresh = Verdict({Node("a", 3, v1::BLOCK_STATE_NEVER_SEEN)});
  EXPECT_EQ(fresh.reason, MissReason::kNotHeld);
  EXPECT_EQ(fresh.position, 3u * kBlockTokens);
}

TEST(MissVerdictTest, OfTwoNearPrefixesTheLonger) {
  const MissVerdict verdict = Verdict({Diverging("a", 1, 20, 0), Diverging("b", 1, 25, 0)});
  EXPECT_EQ(verdict.position, 25u);
  EXPECT_EQ(verdict.node, "b");
}

TEST(MissVerdictTest, AnotherScopeSaysWhatOfItDiffers) {
  NodeExplanation node = Node("a", 0, v1::BLOCK_STATE_NEVER_SEEN);
  node.answer.mutable_other_scope()->set_adapter("style@1");
  node.answer.mutable_other_scope()->set_adapter_differs(true);
  node.answer.mutable_other_scope()->set_salt_differs(true);
  const MissVerdict verdict = Verdict({node});
  EXPECT_EQ(verdict.reason, MissReason::kScopeDiffers);
  EXPECT_THAT(verdict.text, AllOf(HasSubstr("\"style@1\""), HasSubstr("another salt")));
}

TEST(MissVerdictTest, NamespacesAreNamedWhereNobodyKnowsTheOneAskedFor) {
  NodeExplanation unknown = Node("a", 0, v1::BLOCK_STATE_NAMESPACE_UNKNOWN);
  unknown.answer.set_namespace_known(false);
  EXPECT_EQ(Verdict({unknown}).reason, MissReason::kNamespaceUnknown);
  NodeExplanation near = unknown;
  near.address = "b";
  v1::NamespaceDifference* const difference = near.answer.add_namespaces();
  difference->set_name("llama");
  difference->set_difference("revision is \"1\" there and \"2\" here");
  const MissVerdict verdict = Verdict({unknown, near});
  EXPECT_EQ(verdict.reason, MissReason::kNamespaceDiffers);
  EXPECT_EQ(verdict.node, "b");
  EXPECT_THAT(verdict.text, AllOf(HasSubstr("llama"), HasSubstr("revision is \"1\"")));
  // Where one node knows it, the others do not matter.
  EXPECT_EQ(Verdict({near, Node("c", 0, v1::BLOCK_STATE_NEVER_SEEN)}).reason, MissReason::kNotHeld);
}

TEST(MissVerdictTest, WhatIsOnItsWayIsPending) {
  EXPECT_EQ(Verdict({Node("a", 1, v1::BLOCK_STATE_EVICTED), Node("b", 1, v1::BLOCK_STATE_PENDING)})
                .reason,
            MissReason::kPending);
}

TEST(MissVerdictTest, NodesThatDoNotAnswerAreLeftOut) {
  const NodeExplanation gone = {
      .address = "x", .status = absl::UnavailableError("refused"), .answer = {}};
  const MissVerdict nobody = Verdict({gone});
  EXPECT_EQ(nobody.reason, MissReason::kNobodyAnswered);
  EXPECT_THAT(nobody.text, AllOf(HasSubstr("x"), HasSubstr("refused")));
  EXPECT_EQ(Verdict({gone, Node("a", 4, v1::BLOCK_STATE_UNSPECIFIED)}).reason, MissReason::kHeld);
  EXPECT_EQ(Verdict({}).reason, MissReason::kNobodyAnswered);
}

TEST(MissVerdictTest, EveryReasonHasAName) {
  for (int i = 0; i <= static_cast<int>(MissReason::kNobodyAnswered); ++i) {
    EXPECT_NE(MissReasonName(static_cast<MissReason>(i)), "UNKNOWN") << i;
  }
}

}  // namespace
}  // namespace cairn
