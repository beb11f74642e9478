// A tail that moves to a holder with fewer blocks than the one before: fake nodes, of which one is
// lost after it had pinned more than was wished for.
#include <gmock/gmock.h>

#include "tests/client/cpp/decode/session_fixture.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;

using MovedTailTest = SessionTest;

TEST_F(MovedTailTest, WhatTheNextHolderLacksIsRunAgainThere) {
  const auto first = Holder(0, 3);
  const auto second = Holder(3, kBlocks);
  const auto spare = Holder(0, 0);
  Open({Wish(0, 3, {NodeOf(first)}), Wish(3, 3, {NodeOf(second), NodeOf(spare)}, 40)});
  EXPECT_EQ(session_->CoveredTokens(kSequence), kPromptTokens);
  FakeSequence whole = Whole(20);
  Run(MakeStep(kPromptTokens, 4), &whole);
  second->decode.Die();
  EXPECT_TRUE(absl::IsAborted(Attend(MakeStep(kPromptTokens + 4, 1), 0).status));
  EXPECT_THAT(session_->TakeLost(),
              ElementsAre(AllOf(Field(&LostTokens::tokens, TokenRange{12, kPromptTokens + 4}),
                                Field(&LostTokens::again, true))));
  EXPECT_FALSE(session_->TailIsOwn(kSequence));
  EXPECT_EQ(session_->CoveredTokens(kSequence), 12);
}

}  // namespace
}  // namespace cairn::testing
