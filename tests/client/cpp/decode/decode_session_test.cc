// A session over one to three nodes gives what one place that holds everything gives: wherever the
// prefix is cut, wherever the tail goes, in whatever batches; and it says what it did.
#include "client/cpp/decode/decode_session.h"

#include <thread>

#include "common/wire/decode_limits.h"
#include "tests/client/cpp/decode/session_fixture.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class DecodeSessionTest : public SessionTest {};

TEST_F(DecodeSessionTest, OnePartGivesTheNodesOwnBits) {
  const auto holder = Holder();
  Open({Wish(0, kBlocks, {NodeOf(holder)}, 10)});
  FakeSequence whole = Whole(10);
  const Step step = MakeStep(kPromptTokens, 3);
  for (uint32_t layer = 0; layer < sizes_.layers; ++layer) {
    const Answer got = Attend(step, layer);
    const Answer want = Reference(&whole, step, layer);
    ASSERT_TRUE(got.status.ok()) << got.status;
    EXPECT_EQ(got.output, want.output);
    EXPECT_EQ(got.log_sum_exp, want.log_sum_exp);
  }
}

TEST_F(DecodeSessionTest, APrefixIsCutBetweenTwoNodesAtAnyBlock) {
  for (uint32_t cut = 1; cut < kBlocks; ++cut) {
    const auto first = Holder(0, cut);
    const auto second = Holder(cut, kBlocks);
    MakeSession();
    Open({Wish(0, cut, {NodeOf(first)}), Wish(cut, kBlocks, {NodeOf(second)}, 20)});
    FakeSequence whole = Whole(20);
    Run(MakeStep(kPromptTokens, 5), &whole);
    Run(MakeStep(kPromptTokens + 5, 1), &whole);
    EXPECT_EQ(session_->counters().round_trips, 4);
    EXPECT_EQ(session_->counters().requests, 8);
    session_.reset();
    EXPECT_EQ(first->decode.open_sequences() + second->decode.open_sequences(), 0);
  }
}

TEST_F(DecodeSessionTest, TheTailMayLieWhereNoBlockDoes) {
  const auto first = Holder(0, 3);
  const auto second = Holder(3, kBlocks);
  const auto third = Holder(0, 0);
  Open({Wish(0, 3, {NodeOf(first)}), Wish(3, kBlocks, {NodeOf(second)}),
        Wish(kBlocks, kBlocks, {NodeOf(third)}, 20)});
  EXPECT_EQ(session_->CoveredTokens(kSequence), kPromptTokens);
  EXPECT_FALSE(session_->TailIsOwn(kSequence));
  FakeSequence whole = Whole(20);
  Run(MakeStep(kPromptTokens, 2), &whole);
  Run(MakeStep(kPromptTokens + 2, 1), &whole);
  EXPECT_THAT(session_->Places(kSequence),
              ElementsAre(HasSubstr(first->cache.target()), HasSubstr("tokens 12 to 24: at"),
                          HasSubstr("tokens 24 to the end: at")));
}

TEST_F(DecodeSessionTest, ATailBeginsBehindWhateverItsNodeHolds) {
  const auto first = Holder(0, 3);
  const auto second = Holder(3, 5);
  Open({Wish(0, 3, {NodeOf(first)}), Wish(3, 3, {NodeOf(second)}, 20)});
  EXPECT_EQ(session_->CoveredTokens(kSequence), 20);
}

TEST_F(DecodeSessionTest, PartsAreAskedBeforeAnyHasAnswered) {
  const auto first = Holder(0, 3);
  const auto second = Holder(3, kBlocks);
  Open({Wish(0, 3, {NodeOf(first)}), Wish(3, kBlocks, {NodeOf(second)}, 20)});
  first->decode.Hold();
  second->decode.Hold();
  FakeSequence whole = Whole(20);
  const Step step = MakeStep(kPromptTokens, 1);
  Answer got;
  std::thread worker([&] { got = Attend(step, 0); });
  first->decode.AwaitSteps(1);
  second->decode.AwaitSteps(1);
  first->decode.Release();
  second->decode.Release();
  worker.join();
  ExpectSame(got, Reference(&whole, step, 0));
}

TEST_F(DecodeSessionTest, TheCallersOwnTailIsMergedLast) {
  const auto first = Holder(0, 3);
  const auto second = Holder(3, kBlocks);
  Open({Wish(0, 3, {NodeOf(first)}), Wish(3, kBlocks, {NodeOf(second)})});
  EXPECT_TRUE(session_->TailIsOwn(kSequence));
  FakeSequence whole = Whole(20);
  FakeSequence own(&handle_.payload_map(), kPromptTokens);
  own.Reserve(20);
  for (const uint64_t position : {kPromptTokens, kPromptTokens + 2}) {
    const Step step = MakeStep(position, 2);
    for (uint32_t layer = 0; layer < sizes_.layers; ++layer) {
      const Answer tail = Reference(&own, step, layer);
      const OwnRows rows{
          0, {kPromptTokens, position + 2}, tail.output.data(), tail.log_sum_exp.data()};
      EXPECT_THAT(session_->OwnTokens(kSequence, position + 2), ElementsAre(rows.tokens));
      ExpectSame(Attend(step, layer, true, {&rows, 1}), Reference(&whole, step, layer));
    }
  }
}

TEST_F(DecodeSessionTest, WhatTheCallerBringsIsExactlyWhatItHolds) {
  const auto holder = Holder();
  Open({Wish(0, kBlocks, {NodeOf(holder)})});
  const Step step = MakeStep(kPromptTokens, 1);
  const std::vector<float> zeros(sizes_.OutputFloats());
  EXPECT_THAT(Attend(step, 0).status.message(), HasSubstr("tokens 24 to 25 are the caller's own"));
  for (const TokenRange tokens : {TokenRange{24, 26}, TokenRange{23, 25}, TokenRange{0, 25}}) {
    const OwnRows wrong{0, tokens, zeros.data(), zeros.data()};
    EXPECT_TRUE(absl::IsInvalidArgument(Attend(step, 0, true, {&wrong, 1}).status));
  }
  const OwnRows right{0, {24, 25}, zeros.data(), zeros.data()};
  const std::vector<OwnRows> twice = {right, right};
  EXPECT_THAT(Attend(step, 0, true, twice).status.message(), HasSubstr("not the caller's own"));
  EXPECT_TRUE(Attend(step, 0, true, {&right, 1}).status.ok());
}

TEST_F(DecodeSessionTest, EachBlockIsOfExactlyOnePart) {
  const auto holder = Holder();
  MakeSession();
  const DecodeNode node = NodeOf(holder);
  const std::vector<std::vector<PartWish>> wrong = {
      {Wish(1, kBlocks, {node})},
      {Wish(0, 3, {node}), Wish(4, kBlocks, {node})},
      {Wish(0, 3, {node}), Wish(2, kBlocks, {node})},
      {Wish(0, kBlocks + 1, {node})},
      {Wish(0, 0, {node})},
      {Wish(0, 3, {node}, 5), Wish(3, kBlocks, {node})},
      {Wish(0, kBlocks, {}, 5)},
      {Wish(0, kBlocks, {DecodeNode{}})}};
  for (const std::vector<PartWish>& parts : wrong) {
    const absl::Status status = session_->Open(kSequence, MakePrompt(), parts);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("part "));
  }
  EXPECT_EQ(holder->decode.open_sequences(), 0);
  Open({Wish(0, kBlocks, {node})});
  EXPECT_TRUE(
      absl::IsAlreadyExists(session_->Open(kSequence, MakePrompt(), {Wish(0, kBlocks, {node})})));
}

TEST_F(DecodeSessionTest, AHolderThatLacksBlocksIsNotTaken) {
  const auto little = Holder(0, 4);
  const auto all = Holder();
  Open({Wish(0, kBlocks, {NodeOf(little), NodeOf(all)}, 5)});
  EXPECT_EQ(little->decode.open_sequences(), 0);
  EXPECT_EQ(all->decode.open_sequences(), 1);
  session_.reset();
  MakeSession();
  const absl::Status status =
      session_->Open(kSequence, MakePrompt(), {Wish(0, kBlocks, {NodeOf(little)})});
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("holds tokens up to 16 of those up to 24"));
  EXPECT_THAT(status.message(), HasSubstr(little->cache.target()));
}

TEST_F(DecodeSessionTest, LeasesDoWhereANodeHasNoMemoryForSequences) {
  const auto holder = Holder();
  holder->decode.HaveNoMemory();
  PartWish wish = Wish(2, kBlocks, {NodeOf(holder)});
  PartWish before = Wish(0, 2, {NodeOf(holder)});
  wish.form = before.form = PartForm::kLease;
  Open({before, wish});
  FakeSequence whole = Whole();
  Step step = MakeStep(kPromptTokens - 1, 1);  // Whose keys and values are there.
  ExpectSame(Attend(step, 1), Reference(&whole, step, 1));
  EXPECT_EQ(holder->cache.Calls("RenewLease"), 0);
  clock_.Advance(absl::Milliseconds(400));
  ExpectSame(Attend(step, 1), Reference(&whole, step, 1));
  EXPECT_EQ(holder->cache.Calls("RenewLease"), 2);
  session_.reset();
  EXPECT_THAT(holder->cache.ended(), SizeIs(2));
}

TEST_F(DecodeSessionTest, ForksShareThePrefixAndGoTheirOwnWays) {
  const auto first = Holder(0, 3);
  const auto second = Holder(3, kBlocks);
  Open({Wish(0, 3, {NodeOf(first)}), Wish(3, kBlocks, {NodeOf(second)}, 20)});
  FakeSequence whole = Whole(20);
  Run(MakeStep(kPromptTokens, 2), &whole);
  const std::vector<uint64_t> forks = {6, 7};
  ASSERT_TRUE(session_->Fork(kSequence, forks, 10).ok());
  EXPECT_EQ(first->decode.open_sequences(), 1);
  EXPECT_EQ(second->decode.open_sequences(), 3);
  FakeSequence as_six = whole;
  FakeSequence as_seven = whole;
  Run(MakeStep(kPromptTokens + 2, 1), &as_six, 6);
  Run(MakeStep(kPromptTokens + 2, 3), &as_seven, 7);
  Run(MakeStep(kPromptTokens + 2, 1), &whole);
  session_->Close(kSequence);
  Run(MakeStep(kPromptTokens + 3, 1), &as_six, 6);
  EXPECT_TRUE(absl::IsAlreadyExists(session_->Fork(6, {7}, 1)));
}

TEST_F(DecodeSessionTest, DraftsThatWereRejectedAreCutOff) {
  const auto holder = Holder();
  Open({Wish(0, kBlocks, {NodeOf(holder)}, 20)});
  FakeSequence whole = Whole(20);
  Run(MakeStep(kPromptTokens, 4), &whole);
  ASSERT_TRUE(session_->Truncate(kSequence, kPromptTokens + 1).ok());
  whole.Truncate(kPromptTokens + 1);
  Step step = MakeStep(kPromptTokens + 1, 2);
  step.tokens = {77, 78};
  Run(step, &whole);
  EXPECT_TRUE(absl::IsInvalidArgument(session_->Truncate(kSequence, kPromptTokens - 1)));
  EXPECT_EQ(session_->counters().recomputed_tokens, 0);
}

TEST_F(DecodeSessionTest, RowsThatEndBeforeWhatIsThereAreNotMistakenForIt) {
  const auto holder = Holder();
  Open({Wish(0, kBlocks, {NodeOf(holder)}, 20)});
  FakeSequence whole = Whole(20);
  const Step draft = MakeStep(kPromptTokens, 4);
  Run(draft, &whole);
  Run(draft, &whole);  // The same again is fine.
  const Answer answer = Attend(MakeStep(kPromptTokens, 1), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(answer.status)) << answer.status;
  EXPECT_THAT(answer.status.message(), HasSubstr("truncate it to 24 first"));
}

TEST_F(DecodeSessionTest, MoreRowsThanARequestHoldsGoInSeveral) {
  parameters_.set_window_tokens(8);  // Or it would take long.
  const auto holder = Holder();
  const uint64_t rows = kDecodeRowsMax + 100;
  Open({Wish(0, kBlocks, {NodeOf(holder)}, rows)});
  FakeSequence whole = Whole(rows);
  const Step step = MakeStep(kPromptTokens, rows);
  ExpectSame(Attend(step, 0), Reference(&whole, step, 0));
  EXPECT_EQ(session_->counters().requests, 2);
  EXPECT_EQ(session_->counters().round_trips, 2);
  EXPECT_EQ(session_->counters().rows, rows);
  // Made again after it was broken off, it is no other.
  ExpectSame(Attend(step, 0), Reference(&whole, step, 0));
}

TEST_F(DecodeSessionTest, TheNextMicroBatchIsSentBeforeTheFirstIsReceived) {
  const auto holder = Holder();
  Open({Wish(0, kBlocks, {NodeOf(holder)}, 20)});
  ASSERT_TRUE(session_->Open(6, MakePrompt(), {Wish(0, kBlocks, {NodeOf(holder)}, 20)}).ok());
  FakeSequence one = Whole(20);
  FakeSequence other = Whole(20);
  const Step first = MakeStep(kPromptTokens, 1);
  const Step second = MakeStep(kPromptTokens, 2);
  Answer in_first;
  Answer in_second;
  const SessionRows first_rows = RowsOf(first, 0, true, &in_first);
  const SessionRows second_rows = RowsOf(second, 0, true, &in_second, 6);
  const auto sent_first = session_->Send(0, 0, {&first_rows, 1});
  const auto sent_second = session_->Send(0, 0, {&second_rows, 1});
  ASSERT_TRUE(sent_first.ok() && sent_second.ok());
  in_second.status = session_->Receive(*sent_second);
  in_first.status = session_->Receive(*sent_first);
  ExpectSame(in_first, Reference(&one, first, 0));
  ExpectSame(in_second, Reference(&other, second, 0));
}

TEST_F(DecodeSessionTest, ABatchOfSequencesIsOneRequestToEachNode) {
  const auto holder = Holder();
  Open({Wish(0, kBlocks, {NodeOf(holder)}, 20)});
  ASSERT_TRUE(session_->Fork(kSequence, {6, 7, 8}, 10).ok());
  std::vector<Step> steps;
  std::vector<Answer> answers(4);
  std::vector<SessionRows> rows;
  for (uint64_t i = 0; i < 4; ++i) steps.push_back(MakeStep(kPromptTokens, 1 + i));
  for (uint64_t i = 0; i < 4; ++i) rows.push_back(RowsOf(steps[i], 0, true, &answers[i], 5 + i));
  ASSERT_TRUE(session_->Attend(0, 0, rows).ok());
  for (uint64_t i = 0; i < 4; ++i) {
    FakeSequence whole = Whole(20);
    ExpectSame(answers[i], Reference(&whole, steps[i], 0));
  }
  EXPECT_EQ(holder->decode.steps(), 1);
  EXPECT_EQ(holder->decode.items(), 4);
}

TEST_F(DecodeSessionTest, ARankAsksForItsOwnSlicesOnly) {
  const auto holder = Holder();
  FakeSequence whole = Whole(20);
  const Step step = MakeStep(kPromptTokens, 2);
  const Answer want = Reference(&whole, step, 0);
  const auto columns = [](const std::string& rows, uint32_t rank) {
    const size_t half = rows.size() / 4;  // Two rows of two halves.
    return rows.substr(rank * half, half) + rows.substr((2 + rank) * half, half);
  };
  for (uint32_t rank = 0; rank < 2; ++rank) {
    v1::AttentionParameters of_rank = parameters_;
    of_rank.set_first_slice(rank);
    of_rank.set_slices(1);
    of_rank.set_query_heads(kQueryHeads / 2);
    auto session = DecodeSession::Make(handle_, {&of_rank, 1}, parts()).value();
    ASSERT_TRUE(session->Open(1, MakePrompt(), {Wish(0, kBlocks, {NodeOf(holder)}, 20)}).ok());
    const std::string queries = columns(step.queries[0], rank);
    const std::string keys = columns(step.keys[0], rank);
    const std::string values = columns(step.values[0], rank);
    std::vector<float> output(2 * kQueryHeads / 2 * kDim);
    std::vector<float> log_sum_exp(2 * kQueryHeads / 2);
    const SessionRows rows{1,
                           kPromptTokens,
                           2,
                           queries.data(),
                           keys.data(),
                           values.data(),
                           {},
                           output.data(),
                           log_sum_exp.data()};
    const absl::Status status = session->Attend(0, 0, {&rows, 1});
    ASSERT_TRUE(status.ok()) << status;
    const size_t half = kQueryHeads / 2 * kDim;
    for (size_t row = 0; row < 2; ++row) {
      const auto from = want.output.begin() + static_cast<ptrdiff_t>((2 * row + rank) * half);
      const std::vector<float> part(from, from + static_cast<ptrdiff_t>(half));
      const auto got = output.begin() + static_cast<ptrdiff_t>(row * half);
      EXPECT_EQ(std::vector<float>(got, got + static_cast<ptrdiff_t>(half)), part);
    }
  }
}

TEST_F(DecodeSessionTest, WhatAWindowHidesIsNotAskedFor) {
  parameters_.set_window_tokens(6);
  const auto first = Holder(0, 3);
  const auto second = Holder(3, kBlocks);
  Open({Wish(0, 3, {NodeOf(first)}), Wish(3, kBlocks, {NodeOf(second)}, 20)});
  FakeSequence whole = Whole(20);
  Run(MakeStep(kPromptTokens, 2), &whole);
  EXPECT_EQ(first->decode.steps(), 0);
  ASSERT_TRUE(session_->ReleaseWindow(kSequence, 16, 0).ok());
}

TEST_F(DecodeSessionTest, QueriesWithinThePrefixDoNotAskWhatLiesBehindThem) {
  const auto first = Holder(0, 3);
  const auto second = Holder(3, kBlocks);
  Open({Wish(0, 3, {NodeOf(first)}), Wish(3, kBlocks, {NodeOf(second)}, 20)});
  FakeSequence whole = Whole(20);
  Step step = MakeStep(9, 2);
  ExpectSame(Attend(step, 0, false), Reference(&whole, step, 0));
  EXPECT_EQ(second->decode.steps(), 0);
  step = MakeStep(10, 5);  // Across the cut.
  ExpectSame(Attend(step, 0, false), Reference(&whole, step, 0));
  EXPECT_EQ(second->decode.steps(), 1);
  EXPECT_EQ(session_->counters().rows, 2 + 5 + 3);  // Of the second part, from its first token on.
}

TEST_F(DecodeSessionTest, ItCountsWhatItDid) {
  const auto first = Holder(0, 3);
  const auto second = Holder(3, kBlocks);
  Open({Wish(0, 3, {NodeOf(first)}), Wish(3, kBlocks, {NodeOf(second)}, 20)});
  FakeSequence whole = Whole(20);
  Run(MakeStep(kPromptTokens, 1), &whole);
  const SessionCounters counters = session_->counters();
  EXPECT_EQ(counters.parts_opened, 2);
  EXPECT_EQ(counters.steps, 2);
  EXPECT_EQ(counters.requests, 4);
  EXPECT_EQ(counters.round_trips, 2);
  EXPECT_EQ(counters.rows, 4);
  const uint64_t rows = 4 * sizes_.query_bytes + 2 * (sizes_.key_bytes + sizes_.value_bytes);
  EXPECT_GT(counters.bytes_sent, rows);
  EXPECT_LT(counters.bytes_sent, rows + 600);
  EXPECT_GT(counters.bytes_received, 4 * sizes_.AnswerBytes());
  EXPECT_LT(counters.bytes_received, 4 * sizes_.AnswerBytes() + 200);
  EXPECT_EQ(counters.retries + counters.reconnects + counters.parts_moved + counters.bad_answers +
                counters.lost_tokens + counters.recomputed_tokens,
            0);
}

TEST_F(DecodeSessionTest, CallsThatMakeNoSenseSayWhatIsWrong) {
  const auto holder = Holder();
  Open({Wish(0, kBlocks, {NodeOf(holder)}, 20)});
  Answer answer;
  const Step step = MakeStep(kPromptTokens, 1);
  SessionRows rows = RowsOf(step, 0, true, &answer);
  EXPECT_TRUE(absl::IsInvalidArgument(session_->Attend(1, 0, {&rows, 1})));
  EXPECT_TRUE(absl::IsInvalidArgument(session_->Attend(0, 2, {&rows, 1})));
  rows.sequence = 99;
  EXPECT_TRUE(absl::IsNotFound(session_->Attend(0, 0, {&rows, 1})));
  rows = RowsOf(step, 0, true, &answer);
  rows.queries = nullptr;
  EXPECT_TRUE(absl::IsInvalidArgument(session_->Attend(0, 0, {&rows, 1})));
  rows = RowsOf(step, 0, true, &answer);
  rows.tokens = tokens_;
  EXPECT_TRUE(absl::IsInvalidArgument(session_->Attend(0, 0, {&rows, 1})));
  EXPECT_EQ(holder->decode.steps(), 0);
  v1::AttentionParameters wrong = parameters_;
  wrong.set_query_heads(3);
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeSession::Make(handle_, {&wrong, 1}, parts()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeSession::Make(handle_, {}, parts()).status()));
}

}  // namespace
}  // namespace cairn::testing
