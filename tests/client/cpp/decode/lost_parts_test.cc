// What a session does when nodes fail it: streams lost, nodes gone, sequences forgotten, answers
// that are wrong. The result is what one place that holds everything gives, or the session says
// which tokens are lost; never anything else.
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/rpc/retry_status.h"
#include "tests/client/cpp/decode/session_fixture.h"

namespace cairn::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class LostPartsTest : public SessionTest {
 protected:
  // The first half of the prompt on `first`, in this order, the rest and the tail on `second`.
  void OpenHalves(std::vector<DecodeNode> first, std::vector<DecodeNode> second) {
    Open({Wish(0, 3, std::move(first)), Wish(3, kBlocks, std::move(second), 40)});
  }

  LostTokens ExpectLost(const Answer& answer, const TokenRange& tokens, bool again) {
    EXPECT_TRUE(absl::IsAborted(answer.status)) << answer.status;
    EXPECT_THAT(answer.status.message(),
                HasSubstr(absl::StrCat("tokens ", tokens.begin, " to ", tokens.end, " are lost")));
    const std::vector<LostTokens> lost = session_->TakeLost();
    EXPECT_THAT(lost, SizeIs(1));
    if (lost.size() != 1) return {};
    EXPECT_EQ(lost[0].tokens, tokens);
    EXPECT_EQ(lost[0].again, again);
    return lost[0];
  }

  // Blocks [begin, end) as the caller holds them.
  FakeSequence Own(uint32_t begin, uint32_t end) const {
    FakeSequence own(&handle_.payload_map(), begin * kBlockTokens);
    for (uint32_t i = begin; i < end; ++i) {
      own.Pin(std::string(blocks_[i].begin(), blocks_[i].end()));
    }
    own.Reserve(40);
    return own;
  }

  static void Put(std::string* bytes, float value) {
    std::memcpy(bytes->data(), &value, sizeof(value));
  }

  FakeSequence whole_ = Whole(40);
};

TEST_F(LostPartsTest, ALostStreamIsOpenedAgainAndTheSequenceGoesOn) {
  const auto first = Holder(0, 3);
  const auto second = Holder(3, kBlocks);
  second->decode.CutStreams(1, 1);
  OpenHalves({NodeOf(first)}, {NodeOf(second)});
  Run(MakeStep(kPromptTokens, 3), &whole_);
  Run(MakeStep(kPromptTokens + 3, 1), &whole_);
  EXPECT_EQ(second->decode.streams(), 2);
  EXPECT_EQ(second->decode.opens(), 1);
  EXPECT_EQ(first->decode.streams(), 1);
  EXPECT_EQ(session_->counters().reconnects, 1);
  EXPECT_EQ(session_->counters().retries, 1);
  EXPECT_EQ(session_->counters().parts_moved, 0);
}

TEST_F(LostPartsTest, TheNextHolderIsAskedWhenANodeIsGone) {
  const auto first = Holder(0, 3);
  const auto spare = Holder();
  const auto second = Holder(3, kBlocks);
  OpenHalves({NodeOf(first), NodeOf(spare)}, {NodeOf(second)});
  Run(MakeStep(kPromptTokens, 2), &whole_);
  first->decode.Die();
  Run(MakeStep(kPromptTokens + 2, 1), &whole_);
  EXPECT_EQ(session_->counters().parts_moved, 1);
  EXPECT_EQ(spare->decode.open_sequences(), 1);
  EXPECT_EQ(session_->counters().lost_tokens, 0);
}

TEST_F(LostPartsTest, WhatNobodyHoldsIsLostAndTheCallersOnceItSaysSo) {
  const auto first = Holder(0, 3);
  const auto second = Holder(3, kBlocks);
  OpenHalves({NodeOf(first)}, {NodeOf(second)});
  Run(MakeStep(kPromptTokens, 2), &whole_);
  first->decode.Die();
  const Step step = MakeStep(kPromptTokens + 2, 1);
  ExpectLost(Attend(step, 0), {0, 12}, /*again=*/false);
  // It stays lost until the caller has it.
  const LostTokens lost = ExpectLost(Attend(step, 0), {0, 12}, /*again=*/false);
  session_->TakeOver(lost);
  FakeSequence own = Own(0, 3);
  for (uint32_t layer = 0; layer < sizes_.layers; ++layer) {
    Step asked = step;
    v1::AttendItem item;
    item.set_position(step.position);
    item.set_rows(1);
    item.set_queries(step.queries[layer]);
    v1::AttendResult result;
    ASSERT_TRUE(own.Run(parameters_, layer, item, &result).ok());
    const std::vector<float> output = FloatsOf(result.output());
    const std::vector<float> log_sum_exp = FloatsOf(result.log_sum_exp());
    const OwnRows rows{0, {0, 12}, output.data(), log_sum_exp.data()};
    ExpectSame(Attend(step, layer, true, {&rows, 1}), Reference(&whole_, step, layer));
  }
  EXPECT_EQ(session_->counters().lost_tokens, 24);  // Twelve, and said twice.
}

TEST_F(LostPartsTest, ATailThatIsLostIsRunAgainAtAnotherHolder) {
  const auto first = Holder(0, 3);
  const auto second = Holder(3, kBlocks);
  const auto spare = Holder(3, kBlocks);
  OpenHalves({NodeOf(first)}, {NodeOf(second), NodeOf(spare)});
  const Step before = MakeStep(kPromptTokens, 4);
  Run(before, &whole_);
  second->decode.Die();
  const Step step = MakeStep(kPromptTokens + 4, 1);
  ExpectLost(Attend(step, 0), {kPromptTokens, kPromptTokens + 4}, /*again=*/true);
  EXPECT_EQ(session_->CoveredTokens(kSequence), kPromptTokens);
  Run(before, &whole_);
  Run(step, &whole_);
  EXPECT_EQ(session_->counters().lost_tokens, 4);
  EXPECT_EQ(session_->counters().recomputed_tokens, 5);
}

TEST_F(LostPartsTest, ATailThatNobodyTakesIsTheCallersFromItsFirstBlockOn) {
  const auto first = Holder(0, 3);
  const auto second = Holder(3, kBlocks);
  OpenHalves({NodeOf(first)}, {NodeOf(second)});
  const Step before = MakeStep(kPromptTokens, 4);
  Run(before, &whole_);
  second->decode.Die();
  const Step step = MakeStep(kPromptTokens + 4, 1);
  session_->TakeOver(ExpectLost(Attend(step, 0), {12, kPromptTokens + 4}, /*again=*/false));
  EXPECT_TRUE(session_->TailIsOwn(kSequence));
  EXPECT_EQ(session_->CoveredTokens(kSequence), 12);
  FakeSequence own = Own(3, kBlocks);
  for (const Step& again : {before, step}) {
    for (uint32_t layer = 0; layer < sizes_.layers; ++layer) {
      const Answer tail = Reference(&own, again, layer);
      const OwnRows rows{
          0, {12, again.position + again.rows}, tail.output.data(), tail.log_sum_exp.data()};
      ExpectSame(Attend(again, layer, true, {&rows, 1}), Reference(&whole_, again, layer));
    }
  }
}

TEST_F(LostPartsTest, SequencesThatANodeForgotAreOpenedThereAgain) {
  const auto first = Holder(0, 3);
  const auto second = Holder(3, kBlocks);
  OpenHalves({NodeOf(first)}, {NodeOf(second)});
  second->decode.ForgetSequences();  // Before anything was appended: nothing is lost.
  const Step before = MakeStep(kPromptTokens, 2);
  Run(before, &whole_);
  first->decode.ForgetSequences();
  Run(MakeStep(kPromptTokens + 2, 1), &whole_);
  EXPECT_EQ(first->decode.opens(), 2);
  EXPECT_EQ(second->decode.opens(), 2);
  second->decode.ForgetSequences();
  const Step step = MakeStep(kPromptTokens + 3, 1);
  ExpectLost(Attend(step, 0), {kPromptTokens, kPromptTokens + 3}, /*again=*/true);
  EXPECT_EQ(second->decode.opens(), 3);
}

TEST_F(LostPartsTest, WhatASequenceLacksAfterALostStreamIsRunAgain) {
  const auto holder = Holder();
  Open({Wish(0, kBlocks, {NodeOf(holder)}, 40)});
  const Step first = MakeStep(kPromptTokens, 1);
  const Step second = MakeStep(kPromptTokens + 1, 3);
  holder->decode.CutStreams(1, 4);
  Run(first, &whole_);
  Run(second, &whole_);
  // As a node that came up again with less than it had.
  holder->decode.LoseTokensAfter(kPromptTokens + 1);
  const Step step = MakeStep(kPromptTokens + 4, 1);
  ExpectLost(Attend(step, 0), {kPromptTokens + 1, kPromptTokens + 4}, /*again=*/true);
  Run(second, &whole_);
  Run(step, &whole_);
  EXPECT_EQ(holder->decode.opens(), 1);
}

TEST_F(LostPartsTest, WrongAnswersAreNeverMerged) {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::function<void(v1::AttendResult*)>> bends = {
      [&](v1::AttendResult* result) { Put(result->mutable_output(), nan); },
      [&](v1::AttendResult* result) { Put(result->mutable_output(), INFINITY); },
      [&](v1::AttendResult* result) { Put(result->mutable_log_sum_exp(), nan); },
      [&](v1::AttendResult* result) { Put(result->mutable_log_sum_exp(), INFINITY); },
      [&](v1::AttendResult* result) { Put(result->mutable_log_sum_exp(), -INFINITY); },
      [](v1::AttendResult* result) { result->mutable_output()->pop_back(); },
      [](v1::AttendResult* result) { result->mutable_output()->resize(4); },
      [](v1::AttendResult* result) { result->mutable_log_sum_exp()->append("1234"); },
      [](v1::AttendResult* result) { result->set_length_tokens(8); },
      [](v1::AttendResult* result) { result->set_length_tokens(16); },
      [](v1::AttendResult* result) { result->Clear(); }};
  for (const auto& bend : bends) {
    const auto first = Holder(0, 3);
    const auto spare = Holder(0, 3);
    const auto second = Holder(3, kBlocks);
    first->decode.Bend([&](v1::DecodeResponse* response) { bend(response->mutable_results(0)); });
    MakeSession();
    OpenHalves({NodeOf(first), NodeOf(spare)}, {NodeOf(second)});
    FakeSequence whole = Whole(40);
    Run(MakeStep(kPromptTokens, 1), &whole);
    EXPECT_EQ(session_->counters().bad_answers, 1);
    EXPECT_EQ(spare->decode.open_sequences(), 1);
    // Where nobody else has it, it is lost.
    MakeSession();
    OpenHalves({NodeOf(first)}, {NodeOf(second)});
    ExpectLost(Attend(MakeStep(kPromptTokens, 1), 0), {0, 12}, /*again=*/false);
  }
}

TEST_F(LostPartsTest, HoldersThatAllAnswerWrongAreNotAskedForEver) {
  const auto first = Holder();
  const auto second = Holder();
  for (FakeHolder* holder : {first, second}) {
    holder->decode.Bend([](v1::DecodeResponse* response) {
      response->mutable_results(0)->mutable_output()->clear();
    });
  }
  Open({Wish(0, kBlocks, {NodeOf(first), NodeOf(second)}, 40)});
  ExpectLost(Attend(MakeStep(kPromptTokens, 1), 0), {0, 24}, /*again=*/false);
  EXPECT_LE(session_->counters().bad_answers, 3);
}

TEST_F(LostPartsTest, ABusyNodeIsAskedAgainWhenItSaysAndThenItsNext) {
  const auto first = Holder(0, 3);
  const auto spare = Holder(0, 3);
  const auto second = Holder(3, kBlocks);
  OpenHalves({NodeOf(first), NodeOf(spare)}, {NodeOf(second)});
  first->decode.FailItems(2, absl::ResourceExhaustedError("busy"), 30);
  Run(MakeStep(kPromptTokens, 1), &whole_);
  EXPECT_THAT(wait_.waits(), ElementsAre(absl::Milliseconds(30), absl::Milliseconds(30)));
  EXPECT_EQ(session_->counters().parts_moved, 0);
  first->decode.FailItems(100, absl::UnavailableError("draining"), 10);
  Run(MakeStep(kPromptTokens + 1, 1), &whole_);
  EXPECT_EQ(session_->counters().parts_moved, 1);
  EXPECT_THAT(wait_.waits(), SizeIs(2 + 4));
}

TEST_F(LostPartsTest, ANodeThatTakesNoMoreStreamsIsAskedAgainWhenItSays) {
  const auto first = Holder(0, 3);
  const auto spare = Holder(0, 3);
  const auto second = Holder(3, kBlocks);
  first->decode.FailStreams(
      3, WithRetryAfter(absl::ResourceExhaustedError("streams"), absl::Milliseconds(40)));
  OpenHalves({NodeOf(first), NodeOf(spare)}, {NodeOf(second)});
  Run(MakeStep(kPromptTokens, 1), &whole_);
  EXPECT_THAT(wait_.waits(),
              ElementsAre(absl::Milliseconds(40), absl::Milliseconds(40), absl::Milliseconds(40)));
  EXPECT_EQ(session_->counters().parts_moved, 0);
}

TEST_F(LostPartsTest, ANodeThatServesNoAttentionIsSaidWhereNoOtherDoes) {
  const auto first = Holder();
  const auto spare = Holder();
  first->decode.FailStreams(1, absl::FailedPreconditionError("serves no attention"));
  Open({Wish(0, kBlocks, {NodeOf(first)}, 40)});
  const Step step = MakeStep(kPromptTokens, 1);
  const Answer answer = Attend(step, 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(answer.status)) << answer.status;
  EXPECT_THAT(answer.status.message(), HasSubstr("serves no attention"));
  const auto second = Holder();
  second->decode.FailStreams(1, absl::FailedPreconditionError("serves no attention"));
  MakeSession();
  Open({Wish(0, kBlocks, {NodeOf(second), NodeOf(spare)}, 40)});
  Run(step, &whole_);
  EXPECT_EQ(session_->counters().parts_moved, 1);
}

TEST_F(LostPartsTest, WhatNoOtherHolderWouldHelpAgainstIsSaidAndNothingIsMoved) {
  const auto holder = Holder();
  const auto spare = Holder();
  Open({Wish(0, kBlocks, {NodeOf(holder), NodeOf(spare)}, 2)});
  Step step = MakeStep(kPromptTokens, 1);
  const Step good = step;
  Put(&step.queries[0], std::numeric_limits<float>::quiet_NaN());
  Answer answer = Attend(step, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(answer.status)) << answer.status;
  EXPECT_THAT(answer.status.message(), HasSubstr("sequence 5: a row is not finite"));
  FakeSequence whole = Whole(2);
  Run(good, &whole);
  answer = Attend(MakeStep(kPromptTokens + 1, 2), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(answer.status)) << answer.status;
  EXPECT_THAT(answer.status.message(), HasSubstr("rows up to 27 of 26"));
  answer = Attend(MakeStep(kPromptTokens + 2, 1), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(answer.status) ||
              absl::IsFailedPrecondition(answer.status));
  EXPECT_EQ(session_->counters().parts_moved, 0);
  EXPECT_EQ(spare->decode.opens(), 0);
}

TEST_F(LostPartsTest, ANodeThatHangsIsGivenUpInTime) {
  const SystemClock clock;
  const auto slow = Holder(0, 3);
  const auto spare = Holder(0, 3);
  const auto second = Holder(3, kBlocks);
  SessionOptions options;
  options.stream.step_timeout = absl::Milliseconds(300);
  const ClientParts real{&hasher_, &clock, &random_, &wait_};
  ClientOptions of_client;
  of_client.target = slow->cache.target();
  DecodeClient slow_client(of_client, real);
  of_client.target = second->cache.target();
  DecodeClient second_client(of_client, real);
  session_ = DecodeSession::Make(handle_, {&parameters_, 1}, real, options).value();
  OpenHalves({DecodeNode{&slow_client, nullptr}, NodeOf(spare)}, {{&second_client, nullptr}});
  slow->decode.Hold();
  Run(MakeStep(kPromptTokens, 1), &whole_);
  EXPECT_EQ(session_->counters().parts_moved, 1);
  slow->decode.Release();
  session_.reset();  // Before its clients.
}

TEST_F(LostPartsTest, ForksLoseTogetherWhatTheyShare) {
  const auto first = Holder(0, 3);
  const auto second = Holder(3, kBlocks);
  OpenHalves({NodeOf(first)}, {NodeOf(second)});
  Run(MakeStep(kPromptTokens, 1), &whole_);
  ASSERT_TRUE(session_->Fork(kSequence, {6}, 10).ok());
  first->decode.Die();
  const Step step = MakeStep(kPromptTokens + 1, 1);
  session_->TakeOver(ExpectLost(Attend(step, 0), {0, 12}, /*again=*/false));
  EXPECT_THAT(session_->OwnTokens(kSequence, 25), ElementsAre(TokenRange{0, 12}));
  const Answer of_fork = Attend(step, 0, true, {}, 6);
  EXPECT_THAT(of_fork.status.message(), HasSubstr("sequence 6: tokens 0 to 12 are lost"));
}

TEST_F(LostPartsTest, WhatForksShareIsOpenedAgainOnceForAllOfABatch) {
  const auto first = Holder(0, 3);
  const auto second = Holder(3, kBlocks);
  OpenHalves({NodeOf(first)}, {NodeOf(second)});
  ASSERT_TRUE(session_->Fork(kSequence, {6, 7}, 10).ok());
  first->decode.ForgetSequences();
  const Step step = MakeStep(kPromptTokens, 1);
  std::vector<Answer> answers(3);
  std::vector<SessionRows> rows;
  for (uint64_t i = 0; i < 3; ++i) rows.push_back(RowsOf(step, 0, true, &answers[i], 5 + i));
  const absl::Status status = session_->Attend(0, 0, rows);
  ASSERT_TRUE(status.ok()) << status;
  const Answer want = Reference(&whole_, step, 0);
  for (const Answer& answer : answers) ExpectSame(answer, want);
  EXPECT_EQ(first->decode.opens(), 2);
}

TEST_F(LostPartsTest, ALeaseThatIsOverIsTakenAgainOrElsewhere) {
  const auto first = Holder();
  const auto spare = Holder();
  PartWish wish = Wish(0, kBlocks, {NodeOf(first), NodeOf(spare)});
  wish.form = PartForm::kLease;
  Open({wish});
  first->decode.ForgetLeases();
  FakeSequence whole = Whole();
  const Step step = MakeStep(kPromptTokens - 1, 1);
  ExpectSame(Attend(step, 0), Reference(&whole, step, 0));
  EXPECT_EQ(first->cache.Calls("Lookup"), 2);
  EXPECT_EQ(spare->cache.Calls("Lookup"), 1);
  EXPECT_EQ(session_->counters().parts_moved, 2);
}

}  // namespace
}  // namespace cairn::testing
