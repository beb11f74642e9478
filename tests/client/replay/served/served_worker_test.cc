// A second worker decodes over nodes that a first one put its prefix on, in every way that it may;
// and goes on when they lose what they hold. Its tokens are those of the first worker alone.
#include "client/replay/served/served_worker.h"

#include <algorithm>

#include "client/cpp/decode/prefix_opening.h"
#include "tests/client/replay/served/served_fixture.h"

namespace cairn::replay {
namespace {

using ::testing::ElementsAreArray;
using testing::FakeHolder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ServedWorkerTest : public ServedTest {};

class TwoRanksTest : public ServedTest {
 protected:
  TwoRanksTest() : ServedTest(/*slices=*/2) {}
};

TEST_F(ServedWorkerTest, OneNodeHoldsThePrefixAndTakesTheTail) {
  FakeHolder* const node = Holder();
  Open({Wish(0, kFullBlocks, {NodeOf(node)}, 100)});
  EXPECT_EQ(Tell(), expected_);
  const SessionCounters counters = ranks_[0].session->counters();
  EXPECT_EQ(counters.steps, (1 + kSteps) * model_.shape().layers);
  EXPECT_EQ(counters.round_trips, counters.steps);
  EXPECT_EQ(worker_->counters().recomputed_tokens, 0);
}

TEST_F(ServedWorkerTest, ThePrefixIsSplitOverTwoNodesAtAnyBlock) {
  FakeHolder* const first = Holder();
  FakeHolder* const second = Holder();
  for (uint32_t cut = 1; cut < kFullBlocks; ++cut) {
    Open({Wish(0, cut, {NodeOf(first)}), Wish(cut, kFullBlocks, {NodeOf(second)}, 100)});
    EXPECT_EQ(Tell(), expected_) << cut;
  }
}

TEST_F(ServedWorkerTest, LeasesAndATailOfItsOwnDoWithoutMemoryAtTheNode) {
  FakeHolder* const node = Holder();
  node->decode.HaveNoMemory();
  PartWish wish = Wish(0, kFullBlocks, {NodeOf(node)});
  wish.form = PartForm::kLease;
  Open({wish});
  EXPECT_EQ(Tell(), expected_);
  EXPECT_EQ(node->decode.open_sequences(), 0);
}

TEST_F(ServedWorkerTest, APromptThatIsAllThereStillHasItsLastTokenRun) {
  prompt_tokens_.resize(kFullBlocks * kBlockTokens);
  cold_ = ColdPrefill::Run(&model_, handle_, prompt_tokens_).value();
  expected_ = cold_->Decode(kSteps).value().tokens;
  FakeHolder* const node = Holder();
  for (const uint64_t reserve : {100, 0}) {
    Open({Wish(0, kFullBlocks, {NodeOf(node)}, reserve)});
    EXPECT_EQ(Tell(), expected_);
  }
}

TEST_F(ServedWorkerTest, AFetchedPrefixIsAttendedAtHome) {
  FakeHolder* const node = Holder();
  MakeWorker();
  std::vector<uint8_t> bytes(kFullBlocks * handle_.block_bytes());
  const ContiguousBlocks place(&handle_.payload_map(), absl::MakeSpan(bytes));
  const std::vector<PartWish> parts = {Wish(0, kFullBlocks, {NodeOf(node)}, 100)};
  OpeningWish wish;
  wish.choice = WayChoice::kFetch;
  const auto opening =
      OpenPrefix(ranks_[0].session.get(), kSequence, MakePrompt(), parts, wish, place);
  ASSERT_TRUE(opening.ok()) << opening.status();
  for (uint32_t i = 0; i < kFullBlocks; ++i) {
    const auto* const block =
        reinterpret_cast<const std::byte*>(bytes.data() + i * handle_.block_bytes());
    ASSERT_TRUE(ranks_[0].attention->AppendPart(kSequence, {block, handle_.block_bytes()}).ok());
  }
  worker_->Begin(kSequence, prompt_tokens_);
  EXPECT_EQ(Tell(), expected_);
  EXPECT_EQ(node->decode.steps(), 0);
}

TEST_F(ServedWorkerTest, AHolderIsKilledInTheMiddleAndAnotherOneGoesOn) {
  FakeHolder* const first = Holder();
  FakeHolder* const spare = Holder();
  FakeHolder* const second = Holder();
  Open({Wish(0, 2, {NodeOf(first), NodeOf(spare)}),
        Wish(2, kFullBlocks, {NodeOf(second), NodeOf(spare)}, 100)});
  const std::vector<uint32_t> tokens = Tell([&](uint64_t token) {
    if (token == 10) first->decode.Die();
    if (token == 20) second->decode.Die();
  });
  EXPECT_EQ(tokens, expected_);
  // The tail went with the second one: what follows the blocks was run again.
  EXPECT_EQ(worker_->counters().recomputed_tokens, kPromptTokens + 20 - 64);
  EXPECT_EQ(worker_->counters().recomputed_ranges, 1);
  EXPECT_EQ(ranks_[0].session->counters().parts_moved, 2);
  EXPECT_GE(ranks_[0].session->counters().recomputed_tokens, kPromptTokens + 20 - 64);
}

TEST_F(ServedWorkerTest, WhatNoNodeHasAnyMoreIsComputedAgainAndHeldByTheWorker) {
  FakeHolder* const first = Holder();
  FakeHolder* const second = Holder();
  for (const bool tail_first : {false, true}) {
    FakeHolder* const a = Holder();
    FakeHolder* const b = Holder();
    Open({Wish(0, 2, {NodeOf(a)}), Wish(2, kFullBlocks, {NodeOf(b)}, 100)});
    const std::vector<uint32_t> tokens = Tell([&](uint64_t token) {
      if (token == 10) (tail_first ? b : a)->decode.Die();
      if (token == 20) (tail_first ? a : b)->decode.Die();
    });
    EXPECT_EQ(tokens, expected_);
    EXPECT_EQ(worker_->counters().recomputed_ranges, 2);
    EXPECT_TRUE(ranks_[0].session->TailIsOwn(kSequence));
    EXPECT_THAT(ranks_[0].session->Places(kSequence), ::testing::Each(HasSubstr("held by")));
  }
  EXPECT_EQ(first->decode.steps() + second->decode.steps(), 0);
}

TEST_F(ServedWorkerTest, BothPartsAreLostInOneStep) {
  FakeHolder* const first = Holder();
  FakeHolder* const second = Holder();
  Open({Wish(0, 2, {NodeOf(first)}), Wish(2, kFullBlocks, {NodeOf(second)}, 100)});
  const std::vector<uint32_t> tokens = Tell([&](uint64_t token) {
    if (token != 15) return;
    first->decode.Die();
    second->decode.Die();
  });
  EXPECT_EQ(tokens, expected_);
  EXPECT_EQ(worker_->counters().recomputed_tokens, kPromptTokens + 15);
}

TEST_F(ServedWorkerTest, LeasesThatEndAreComputedAgainBesideTheOwnTail) {
  FakeHolder* const node = Holder();
  PartWish wish = Wish(0, kFullBlocks, {NodeOf(node)});
  wish.form = PartForm::kLease;
  Open({wish});
  const std::vector<uint32_t> tokens = Tell([&](uint64_t token) {
    if (token == 12) node->decode.ForgetLeases();
  });
  EXPECT_EQ(tokens, expected_);
  EXPECT_EQ(worker_->counters().recomputed_tokens, 64);
}

TEST_F(ServedWorkerTest, DraftsAreVerifiedAndRejected) {
  FakeHolder* const node = Holder();
  for (const uint64_t reserve : {100, 0}) {
    Open({Wish(0, kFullBlocks, {NodeOf(node)}, reserve)});
    std::vector<float> logits = worker_->Prefill(kSequence, 64).value();
    std::vector<uint32_t> decoded;
    for (uint64_t round = 0; decoded.size() < kSteps; ++round) {
      // Of four tokens, the last ones wrong in turn.
      std::vector<uint32_t> draft(
          expected_.begin() + static_cast<ptrdiff_t>(decoded.size()),
          expected_.begin() + static_cast<ptrdiff_t>(std::min<size_t>(decoded.size() + 4, kSteps)));
      for (size_t i = draft.size() - round % draft.size(); i < draft.size(); ++i) draft[i] ^= 1;
      const auto verified = worker_->Verify(kSequence, logits, draft);
      ASSERT_TRUE(verified.ok()) << verified.status();
      EXPECT_EQ(verified->accepted, draft.size() - round % draft.size());
      decoded.insert(decoded.end(), draft.begin(),
                     draft.begin() + static_cast<ptrdiff_t>(verified->accepted));
      logits = verified->logits;
    }
    EXPECT_EQ(decoded, expected_);
  }
}

TEST_F(ServedWorkerTest, FourForksGoOnFromOnePlace) {
  FakeHolder* const first = Holder();
  FakeHolder* const second = Holder();
  for (const uint64_t reserve : {100, 0}) {
    Open({Wish(0, 2, {NodeOf(first)}), Wish(2, kFullBlocks, {NodeOf(second)}, reserve)});
    const std::vector<float> logits = worker_->Prefill(kSequence, 64).value();
    const std::vector<uint64_t> forks = {21, 22, 23};
    ASSERT_TRUE(worker_->Fork(kSequence, forks, 100).ok());
    // All four by one step a token; each with a first token of its own.
    std::vector<uint64_t> all = {kSequence};
    all.insert(all.end(), forks.begin(), forks.end());
    std::vector<std::vector<uint32_t>> tokens(all.size());
    for (uint32_t i = 0; i < all.size(); ++i) tokens[i].push_back(expected_[0] ^ i);
    for (uint64_t step = 0; step < 12; ++step) {
      std::vector<StepTokens> batch;
      for (size_t i = 0; i < all.size(); ++i) {
        batch.push_back({all[i], kPromptTokens + step, {&tokens[i][step], 1}});
      }
      const auto next = worker_->Step(batch);
      ASSERT_TRUE(next.ok()) << next.status();
      for (size_t i = 0; i < all.size(); ++i) {
        const uint64_t vocabulary = model_.shape().vocabulary;
        tokens[i].push_back(
            GreedyToken(absl::MakeConstSpan(*next).subspan(i * vocabulary, vocabulary)));
      }
    }
    for (uint32_t i = 0; i < all.size(); ++i) {
      std::vector<uint32_t> prompt = prompt_tokens_;
      prompt.push_back(expected_[0] ^ i);
      const auto alone = ColdPrefill::Run(&model_, handle_, prompt).value();
      std::vector<uint32_t> want = alone->Decode(12).value().tokens;
      want.insert(want.begin(), expected_[0] ^ i);
      EXPECT_EQ(tokens[i], want) << i;
      worker_->Close(all[i]);
    }
    EXPECT_EQ(first->decode.open_sequences() + second->decode.open_sequences(), 0);
  }
}

TEST_F(TwoRanksTest, TwoRanksDecodeWithTheirOwnSlices) {
  FakeHolder* const node = Holder();
  Open({Wish(0, kFullBlocks, {NodeOf(node)}, 100)}, 2);
  EXPECT_EQ(Tell(), expected_);
}

TEST_F(TwoRanksTest, OneRankReadsBothSlices) {
  FakeHolder* const node = Holder();
  Open({Wish(0, kFullBlocks, {NodeOf(node)}, 100)}, 1);
  EXPECT_EQ(Tell(), expected_);
}

TEST_F(TwoRanksTest, WhatOneRankLosesIsRunThroughBoth) {
  FakeHolder* const node = Holder();
  FakeHolder* const other = Holder();
  MakeWorker(2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    FakeHolder* const of_rank = rank == 0 ? node : other;
    ASSERT_TRUE(
        ranks_[rank]
            .session
            ->Open(kSequence, MakePrompt(),
                   {Wish(0, 2, {NodeOf(of_rank)}), Wish(2, kFullBlocks, {NodeOf(of_rank)}, 100)})
            .ok());
  }
  worker_->Begin(kSequence, prompt_tokens_);
  const std::vector<uint32_t> tokens = Tell([&](uint64_t token) {
    if (token == 8) other->decode.ForgetSequences();
    if (token == 16) other->decode.Die();
  });
  EXPECT_EQ(tokens, expected_);
  EXPECT_FALSE(ranks_[0].session->TailIsOwn(kSequence));
  EXPECT_TRUE(ranks_[1].session->TailIsOwn(kSequence));
}

TEST_F(ServedWorkerTest, FaultsAtEveryTurnDoNotChangeAToken) {
  std::vector<FakeHolder*> nodes = {Holder(), Holder(), Holder()};
  uint64_t recomputed = 0;
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    uint32_t state = seed;
    const auto roll = [&](uint32_t sides) {
      state = state * 1664525 + 1013904223;
      return (state >> 16) % sides;
    };
    const auto order = [&] {
      const uint32_t first = roll(3);
      return std::vector<DecodeNode>{NodeOf(nodes[first]), NodeOf(nodes[(first + 1) % 3])};
    };
    const uint32_t cut = 1 + roll(3);
    Open({Wish(0, cut, order()), Wish(cut, kFullBlocks, order(), 100)});
    const std::vector<uint32_t> tokens = Tell([&](uint64_t) {
      testing::FakeDecode& victim = nodes[roll(3)]->decode;
      switch (roll(8)) {
        case 0:
          return victim.CutStreams(1, static_cast<int>(roll(4)));
        case 1:
          return victim.ForgetSequences();
        case 2:
          return victim.FailItems(1, absl::UnavailableError("busy"), 1);
        default:
          return;
      }
    });
    EXPECT_EQ(tokens, expected_) << seed;
    recomputed += worker_->counters().recomputed_tokens;
  }
  EXPECT_GT(recomputed, 0);
}

TEST_F(ServedWorkerTest, WhatCannotBeMadeGoodIsSaid) {
  FakeHolder* const node = Holder();
  Open({Wish(0, kFullBlocks, {NodeOf(node)}, 8)});
  const std::vector<float> logits = worker_->Prefill(kSequence, 64).value();
  const auto decoded = worker_->Decode(kSequence, logits, 5, nullptr);
  EXPECT_TRUE(absl::IsResourceExhausted(decoded.status())) << decoded.status();
  // The sequence is as long as what was decoded before.
  EXPECT_EQ(worker_->tokens(kSequence).size(), 72);
  const uint32_t token = 3;
  const StepTokens step{kSequence, 99, {&token, 1}};
  EXPECT_TRUE(absl::IsInvalidArgument(worker_->Step({&step, 1}).status()));
  // Nothing of a batch is taken where one of it is wrong.
  worker_->Begin(kSequence + 1, {1, 2});
  const StepTokens both[] = {{kSequence, 72, {&token, 1}}, {kSequence + 1, 99, {&token, 1}}};
  EXPECT_TRUE(absl::IsInvalidArgument(worker_->Step(both).status()));
  EXPECT_EQ(worker_->tokens(kSequence).size(), 72);
}

TEST_F(ServedWorkerTest, ParametersThatAreNotTheModelsAreRefused) {
  v1::AttentionParameters parameters;
  parameters.set_query_heads(8);
  parameters.set_row_dtype(2);
  parameters.set_softmax_scale(1);
  auto session = DecodeSession::Make(handle_, {&parameters, 1}, parts()).value();
  EXPECT_THAT(ServedAttention::Make(session.get(), 10).status().message(),
              HasSubstr("row_dtype is 2"));
  parameters.set_row_dtype(3);
  parameters.set_window_tokens(5);
  session = DecodeSession::Make(handle_, {&parameters, 1}, parts()).value();
  EXPECT_TRUE(absl::IsInvalidArgument(ServedAttention::Make(session.get(), 10).status()));
  ModelShape other = model_.shape();
  other.layers = 3;
  const Transformer smaller = MakeModel(1, other);
  EXPECT_TRUE(
      absl::IsInvalidArgument(ColdPrefill::Run(&smaller, handle_, prompt_tokens_).status()));
}

}  // namespace
}  // namespace cairn::replay
