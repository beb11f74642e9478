// A model's greedy tokens over real nodes are those of one worker alone, whatever lies where and
// whoever dies. float32: the same tokens.
#include <gmock/gmock.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/cluster/decode/decode_fleet.h"

namespace cairn::testing {
namespace {

using replay::GreedyToken;

constexpr uint64_t kPromptTokens = 100;  // Six blocks of 16, and some.
constexpr uint32_t kFullBlocks = 6;
constexpr uint64_t kSteps = 200;
constexpr uint64_t kReserve = 300;
constexpr uint64_t kSequence = DecodeWorker::kSequence;

class WorkerStoriesTest : public DecodeFleetTest {
 protected:
  explicit WorkerStoriesTest(uint32_t slices = 1)
      : story_(11, kPromptTokens, Dtype::kFloat32, slices),
        expected_(story_.cold->Decode(kSteps).value().tokens) {}

  const DecodeStory story_;
  const std::vector<uint32_t> expected_;
};

class TwoSlicesTest : public WorkerStoriesTest {
 protected:
  TwoSlicesTest() : WorkerStoriesTest(/*slices=*/2) {}
};

TEST_F(WorkerStoriesTest, OneNodeHoldsThePrefixThatAnotherWorkerPutAndTakesTheTail) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(1));
  ASSERT_NO_FATAL_FAILURE(Put(story_, 0));
  {
    DecodeWorker worker(story_, parts());
    ASSERT_NO_FATAL_FAILURE(worker.Open({Wish(0, kFullBlocks, {NodeOf(0)}, kReserve)}));
    EXPECT_EQ(worker.Tell(kSteps), expected_);
    EXPECT_EQ(worker.worker().counters().recomputed_tokens, 0u);
    const SessionCounters counters = worker.session().counters();
    EXPECT_EQ(counters.round_trips, counters.steps);
    worker.worker().Close(kSequence);
  }
  ExpectAllIsBack(0);
}

TEST_F(WorkerStoriesTest, ThePrefixIsSplitOverTwoNodesAtAnyBlock) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(2));
  ASSERT_NO_FATAL_FAILURE(Put(story_, 0));
  ASSERT_NO_FATAL_FAILURE(Put(story_, 1));
  for (uint32_t cut = 1; cut < kFullBlocks; ++cut) {
    DecodeWorker worker(story_, parts());
    ASSERT_NO_FATAL_FAILURE(
        worker.Open({Wish(0, cut, {NodeOf(0)}), Wish(cut, kFullBlocks, {NodeOf(1)}, kReserve)}));
    EXPECT_EQ(worker.Tell(kSteps), expected_) << cut;
    worker.worker().Close(kSequence);
  }
  ExpectAllIsBack(0);
  ExpectAllIsBack(1);
}

TEST_F(WorkerStoriesTest, LeasesAndATailOfItsOwn) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(1, {"--decode-memory=0", "--decode-streams-max=16"}));
  ASSERT_NO_FATAL_FAILURE(Put(story_, 0));
  DecodeWorker worker(story_, parts());
  PartWish wish = Wish(0, kFullBlocks, {NodeOf(0)});
  wish.form = PartForm::kLease;
  ASSERT_NO_FATAL_FAILURE(worker.Open({wish}));
  EXPECT_TRUE(worker.session().TailIsOwn(kSequence));
  EXPECT_EQ(worker.Tell(kSteps), expected_);
  worker.worker().Close(kSequence);
}

TEST_F(WorkerStoriesTest, ThePrefixWentToDiskAndCameBack) {
  const std::string folder = ::testing::TempDir() + "/disk";
  ASSERT_NO_FATAL_FAILURE(AddNodes(
      1, {absl::StrCat("--disk-dir=", folder), "--disk-bytes=256MiB", "--spill-file-age-ms=50"}));
  ASSERT_NO_FATAL_FAILURE(Put(story_, 0));
  const absl::Time deadline = absl::Now() + kSoon;
  while (Describe(0).node().disk().blocks() < kFullBlocks && absl::Now() < deadline) {
  }
  ASSERT_GE(Describe(0).node().disk().blocks(), kFullBlocks);
  // Host memory is empty after a kill, and what is on disk is found again.
  process(0).Kill9();
  ASSERT_NO_FATAL_FAILURE(RestartNode(0));
  while (Describe(0).node().disk().recovering() && absl::Now() < deadline) {
  }
  EXPECT_EQ(Describe(0).blocks(), 0u) << "nothing is in host memory";
  SessionOptions options;
  options.open_wait = absl::Seconds(5);
  DecodeWorker worker(story_, parts(), 1, options);
  ASSERT_NO_FATAL_FAILURE(worker.Open({Wish(0, kFullBlocks, {NodeOf(0)}, kReserve)}));
  EXPECT_EQ(worker.session().CoveredTokens(kSequence), kFullBlocks * 16u);
  EXPECT_EQ(worker.Tell(kSteps), expected_);
}

TEST_F(WorkerStoriesTest, AHolderIsKilledInTheMiddleAndAnotherGoesOn) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(3));
  for (size_t node = 0; node < 3; ++node) ASSERT_NO_FATAL_FAILURE(Put(story_, node));
  DecodeWorker worker(story_, parts());
  ASSERT_NO_FATAL_FAILURE(worker.Open({Wish(0, 2, {NodeOf(0), NodeOf(2)}),
                                       Wish(2, kFullBlocks, {NodeOf(1), NodeOf(2)}, kReserve)}));
  const std::vector<uint32_t> tokens = worker.Tell(kSteps, [this](uint64_t token) {
    if (token == 60) process(0).Kill9();
    if (token == 120) process(1).Kill9();
  });
  EXPECT_EQ(tokens, expected_);
  EXPECT_EQ(worker.session().counters().parts_moved, 2u);
  // The tail went with its node, and was run again from the last full block on, or from what the
  // other node had of it.
  EXPECT_GT(worker.worker().counters().recomputed_tokens, 0u);
  worker.worker().Close(kSequence);
  ExpectAllIsBack(2);
}

TEST_F(WorkerStoriesTest, TheLastHolderIsKilledAndTheWorkerComputesAgain) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(1));
  ASSERT_NO_FATAL_FAILURE(Put(story_, 0));
  DecodeWorker worker(story_, parts());
  ASSERT_NO_FATAL_FAILURE(worker.Open({Wish(0, kFullBlocks, {NodeOf(0)}, kReserve)}));
  const std::vector<uint32_t> tokens = worker.Tell(kSteps, [this](uint64_t token) {
    if (token == 50) process(0).Kill9();
  });
  EXPECT_EQ(tokens, expected_);
  EXPECT_TRUE(worker.session().TailIsOwn(kSequence));
}

TEST_F(WorkerStoriesTest, DraftsAreVerifiedAndRejected) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(1));
  ASSERT_NO_FATAL_FAILURE(Put(story_, 0));
  DecodeWorker worker(story_, parts());
  ASSERT_NO_FATAL_FAILURE(worker.Open({Wish(0, kFullBlocks, {NodeOf(0)}, kReserve)}));
  std::vector<float> logits = worker.worker().Prefill(kSequence, 64).value();
  std::vector<uint32_t> decoded;
  for (uint64_t round = 0; decoded.size() < kSteps; ++round) {
    // Of up to five tokens, the last ones wrong in turn.
    const size_t end = std::min<size_t>(decoded.size() + 5, kSteps);
    std::vector<uint32_t> draft(expected_.begin() + static_cast<ptrdiff_t>(decoded.size()),
                                expected_.begin() + static_cast<ptrdiff_t>(end));
    const size_t wrong = round % draft.size();
    for (size_t i = draft.size() - wrong; i < draft.size(); ++i) draft[i] ^= 1;
    const auto verified = worker.worker().Verify(kSequence, logits, draft);
    ASSERT_TRUE(verified.ok()) << verified.status();
    ASSERT_EQ(verified->accepted, draft.size() - wrong);
    decoded.insert(decoded.end(), draft.begin(),
                   draft.begin() + static_cast<ptrdiff_t>(verified->accepted));
    logits = verified->logits;
  }
  EXPECT_EQ(decoded, expected_);
}

TEST_F(WorkerStoriesTest, FourForksGoOnFromOnePlace) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(2));
  ASSERT_NO_FATAL_FAILURE(Put(story_, 0));
  ASSERT_NO_FATAL_FAILURE(Put(story_, 1));
  DecodeWorker worker(story_, parts());
  ASSERT_NO_FATAL_FAILURE(
      worker.Open({Wish(0, 2, {NodeOf(0)}), Wish(2, kFullBlocks, {NodeOf(1)}, kReserve)}));
  ASSERT_TRUE(worker.worker().Prefill(kSequence, 64).ok());
  const std::vector<uint64_t> forks = {21, 22, 23};
  ASSERT_TRUE(worker.worker().Fork(kSequence, forks, kReserve).ok());
  std::vector<uint64_t> all = {kSequence};
  all.insert(all.end(), forks.begin(), forks.end());
  // All four by one step a token; each with a first token of its own.
  std::vector<std::vector<uint32_t>> tokens(all.size());
  for (uint32_t i = 0; i < all.size(); ++i) tokens[i].push_back(expected_[0] ^ i);
  constexpr uint64_t kForkSteps = 100;
  for (uint64_t step = 0; step < kForkSteps; ++step) {
    std::vector<replay::StepTokens> batch;
    for (size_t i = 0; i < all.size(); ++i) {
      batch.push_back({all[i], kPromptTokens + step, {&tokens[i][step], 1}});
    }
    const auto next = worker.worker().Step(batch);
    ASSERT_TRUE(next.ok()) << next.status();
    const uint64_t vocabulary = story_.model.shape().vocabulary;
    for (size_t i = 0; i < all.size(); ++i) {
      tokens[i].push_back(
          GreedyToken(absl::MakeConstSpan(*next).subspan(i * vocabulary, vocabulary)));
    }
  }
  for (uint32_t i = 0; i < all.size(); ++i) {
    std::vector<uint32_t> prompt = story_.tokens;
    prompt.push_back(expected_[0] ^ i);
    const auto alone = replay::ColdPrefill::Run(&story_.model, story_.name_space, prompt).value();
    std::vector<uint32_t> want = alone->Decode(kForkSteps).value().tokens;
    want.insert(want.begin(), expected_[0] ^ i);
    EXPECT_EQ(tokens[i], want) << i;
    worker.worker().Close(all[i]);
  }
  ExpectAllIsBack(0);
  ExpectAllIsBack(1);
}

TEST_F(TwoSlicesTest, TwoRanksDecodeTensorParallel) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(1));
  ASSERT_NO_FATAL_FAILURE(Put(story_, 0));
  DecodeWorker worker(story_, parts(), /*ranks=*/2);
  ASSERT_NO_FATAL_FAILURE(worker.Open({Wish(0, kFullBlocks, {NodeOf(0)}, kReserve)}));
  EXPECT_EQ(worker.Tell(kSteps), expected_);
}

// What a sequence filled is everybody's: a third worker finds prompt and answer.
TEST_F(WorkerStoriesTest, BlocksThatFilledAreSealedUnderTheirTokens) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(1));
  ASSERT_NO_FATAL_FAILURE(Put(story_, 0));
  {
    DecodeWorker worker(story_, parts());
    ASSERT_NO_FATAL_FAILURE(worker.Open({Wish(0, kFullBlocks, {NodeOf(0)}, kReserve)}));
    ASSERT_EQ(worker.Tell(kSteps), expected_);
    worker.worker().Close(kSequence);
  }
  std::vector<uint32_t> all = story_.tokens;
  all.insert(all.end(), expected_.begin(), expected_.end());
  const Region region{
      .scope = {.tenant = "public", .adapter = "", .salt = ""}, .tokens = all, .external_ids = {}};
  const Prompt prompt = Prompt::Make(*parts().hasher, story_.name_space, {&region, 1}).value();
  const absl::Time deadline = absl::Now() + kSoon;
  uint64_t present = 0;
  while (present < prompt.block_count() && absl::Now() < deadline) {
    const auto answer = cache(0).Lookup(story_.name_space, {&prompt, 1});
    ASSERT_TRUE(answer.ok()) << answer.status();
    present = answer->prompts[0].blocks_present;
  }
  EXPECT_EQ(present, prompt.block_count());
}

}  // namespace
}  // namespace cairn::testing
