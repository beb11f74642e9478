// Method: two small stores; what one has is pulled into the other through a source that does wrong
// as it is told. Then: exactly what may be there is there, byte for byte, and nothing is held.
#include "cache_node/pull/block_puller.h"

#include <gmock/gmock.h>

#include "cache_node/store/scope_digest.h"
#include "common/base/check.h"
#include "tests/cache_node/pull/store_source.h"
#include "tests/cache_node/store/test_store.h"

namespace cairn::node {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Outcome = PullOutcome;

constexpr size_t kBlocks = 4;
constexpr uint32_t kLayers = 2;  // Frames a block.

// Moves the clock on instead, and says no once it is told to stop.
class FakeWait final : public RetryWait {
 public:
  explicit FakeWait(testing::FakeClock* clock) : clock_(clock) {}
  bool WaitFor(absl::Duration wait) override {
    waited += wait;
    clock_->Advance(wait);
    return !stopped;
  }
  absl::Duration waited;
  bool stopped = false;

 private:
  testing::FakeClock* const clock_;
};

class BlockPullerTest : public ::testing::Test {
 protected:
  explicit BlockPullerTest(uint64_t bytes_per_second = 0)
      : rate_(bytes_per_second, &here_.clock), wait_(&here_.clock), source_(&there_) {
    const Namespace fields = TestStore::ManySegments(kLayers, 1, /*optional_group=*/false);
    here_.Register(fields);
    target_ = {"t", there_.Register(fields)};
    there_.provenance = {.writer = 77, .written_unix_ms = kWritten};
    prompt_ = there_.Prompt("t", 1, kBlocks, "salt");
    CAIRN_CHECK(there_.Put(prompt_) == kBlocks);
  }
  void TearDown() override {
    EXPECT_TRUE(here_.store->Audit().ok()) << here_.store->Audit();
    here_.Advance(absl::Minutes(6));  // Tokens of a namespace that was retired end by time.
    EXPECT_TRUE(here_.Quiet().ok()) << here_.Quiet();
    EXPECT_EQ(there_.store->Status().pins, 0u);
  }

  BlockPuller Puller() {
    PullBatch::Parts parts;
    parts.store = here_.store.get();
    parts.fences = &fences_;
    parts.rate = &rate_;
    parts.wait = &wait_;
    return BlockPuller(parts, &here_.clock);
  }
  std::vector<Outcome> Pull(absl::Span<const BlockKey> keys) {
    std::vector<Outcome> outcomes;
    status_ = Puller().Pull(target_, &source_, keys, keys, [&](size_t index, Outcome outcome) {
      EXPECT_EQ(index, outcomes.size());
      outcomes.push_back(outcome);
    });
    EXPECT_EQ(outcomes.size(), keys.size());
    return outcomes;
  }
  std::vector<Outcome> PullAll() { return Pull(prompt_.keys); }
  // Blocks from the start that are here with the right bytes.
  size_t Intact() {
    size_t intact = 0;
    while (intact < kBlocks &&
           here_.Intact(here_.Pin("t", prompt_.keys[intact]), prompt_.keys[intact])) {
      ++intact;
    }
    EXPECT_EQ(here_.Present(prompt_), intact);
    return intact;
  }

  static constexpr int64_t kWritten = 1'700'000'000'000;
  TestStore here_;
  TestStore there_;
  PullFences fences_;
  ByteRate rate_;
  FakeWait wait_;
  StoreSource source_;
  PullTarget target_;
  TestPrompt prompt_;
  absl::Status status_;
};

TEST_F(BlockPullerTest, BringsBytesAndAllThatIsKnownOfTheBlocks) {
  EXPECT_THAT(PullAll(), Each(Outcome::kPulled));
  EXPECT_TRUE(status_.ok()) << status_;
  EXPECT_EQ(Intact(), kBlocks);
  const BlockRecords records =
      here_.store->DescribeBlocks("t", target_.fingerprint, prompt_.keys, 1 << 20);
  for (size_t i = 0; i < kBlocks; ++i) {
    const BlockRecord& block = records.blocks[i];
    EXPECT_EQ(block.provenance, (Provenance{77, kWritten}));
    EXPECT_EQ(block.tokens,
              std::vector<uint32_t>(prompt_.tokens.begin() + static_cast<ptrdiff_t>(i * 4),
                                    prompt_.tokens.begin() + static_cast<ptrdiff_t>(i * 4 + 4)));
    EXPECT_EQ(block.parent.has_value(), i > 0);
  }
  ASSERT_EQ(records.scopes.size(), 1u);
  EXPECT_EQ(records.scopes[0].digest, ScopeDigest(prompt_.scope));
  EXPECT_EQ(records.scopes[0].salt, "salt");
  EXPECT_THAT(PullAll(), Each(Outcome::kPresent));
  EXPECT_EQ(source_.transfers(), 1u) << "what is there is not fetched again";
}

TEST_F(BlockPullerTest, PurgeOfTheWriterFindsWhatWasPulled) {
  PullAll();
  ASSERT_TRUE(here_.store->PurgeWriter(77, 0, kWritten + 1).ok());
  EXPECT_EQ(here_.Present(prompt_), 0u);
}

TEST_F(BlockPullerTest, ATransferThatBreaksGoesOnWithWhatIsMissing) {
  source_.before_frame = [](size_t frame) {
    return frame == 3 ? absl::UnavailableError("gone") : absl::OkStatus();
  };
  EXPECT_THAT(PullAll(), Each(Outcome::kPulled));
  EXPECT_EQ(source_.transfers(), 2u);
  // Of the block that was cut all is sent again, of the one before nothing.
  EXPECT_EQ(source_.frames(), 4 + (kBlocks - 1) * kLayers);
  EXPECT_EQ(Intact(), kBlocks);
}

TEST_F(BlockPullerTest, ASourceThatStaysAwayIsGivenUpAndAnotherCallGoesOn) {
  source_.before_frame = [](size_t frame) {
    return frame >= 3 ? absl::UnavailableError("gone") : absl::OkStatus();
  };
  EXPECT_THAT(PullAll(), ElementsAre(Outcome::kPulled, Outcome::kSourceFailed, Outcome::kSkipped,
                                     Outcome::kSkipped));
  EXPECT_THAT(std::string(status_.message()), HasSubstr("gone"));
  EXPECT_EQ(source_.transfers(), static_cast<size_t>(BlockPuller::kAttemptsMax));
  EXPECT_EQ(Intact(), 1u);
  source_.before_frame = nullptr;
  EXPECT_THAT(PullAll(),
              ElementsAre(Outcome::kPresent, Outcome::kPulled, Outcome::kPulled, Outcome::kPulled));
  EXPECT_EQ(Intact(), kBlocks);
}

// At a low rate one batch may take longer than one transfer may.
TEST_F(BlockPullerTest, ATransferThatTakesTooLongGoesOnAsLongAsItBringsSomething) {
  source_.before_frame = [](size_t frame) {
    // The third of each transfer comes too late.
    return frame % 3 == 2 ? absl::DeadlineExceededError("too slow") : absl::OkStatus();
  };
  EXPECT_THAT(PullAll(), Each(Outcome::kPulled));
  EXPECT_EQ(source_.transfers(), kBlocks);
  EXPECT_EQ(Intact(), kBlocks);
}

TEST_F(BlockPullerTest, ATransferThatBringsNothingInItsTimeIsNotMadeAgain) {
  source_.before_frame = [](size_t frame) {
    return frame >= 2 ? absl::DeadlineExceededError("silent") : absl::OkStatus();
  };
  EXPECT_THAT(PullAll(), ElementsAre(Outcome::kPulled, Outcome::kSourceFailed, Outcome::kSkipped,
                                     Outcome::kSkipped));
  EXPECT_EQ(source_.transfers(), 2u);
  EXPECT_EQ(Intact(), 1u);
}

TEST_F(BlockPullerTest, WhatTheSourceHasNotIsMissingAndWhatComesAfterItSkipped) {
  ASSERT_TRUE(there_.store->Delete("t", target_.fingerprint, {prompt_.keys[2]}).ok());
  EXPECT_THAT(PullAll(), ElementsAre(Outcome::kPulled, Outcome::kPulled, Outcome::kMissing,
                                     Outcome::kSkipped));
  EXPECT_EQ(Intact(), 2u);
}

TEST_F(BlockPullerTest, WhatGoesThereDuringTheTransferIsMissing) {
  source_.before_frame = [this](size_t frame) {
    if (frame == 1) (void)there_.store->Delete("t", target_.fingerprint, {prompt_.keys[1]});
    return absl::OkStatus();
  };
  EXPECT_THAT(PullAll(), ElementsAre(Outcome::kPulled, Outcome::kMissing, Outcome::kSkipped,
                                     Outcome::kSkipped));
}

TEST_F(BlockPullerTest, WrongBytesNeverCountAndAreReported) {
  source_.corrupt_frame = 1 * kLayers + 1;
  EXPECT_THAT(PullAll(), ElementsAre(Outcome::kPulled, Outcome::kMismatch, Outcome::kSkipped,
                                     Outcome::kSkipped));
  EXPECT_EQ(Intact(), 1u);
  EXPECT_THAT(source_.reported(), ElementsAre(prompt_.keys[1]));
  EXPECT_THAT(PullAll(),
              ElementsAre(Outcome::kPresent, Outcome::kPulled, Outcome::kPulled, Outcome::kPulled));
}

TEST_F(BlockPullerTest, PiecesThatMakeNoSenseEndTheTransferAndTouchNothing) {
  const std::vector<std::function<void(FrameHeader&)>> bent = {
      [](FrameHeader& frame) { frame.pieces[0].block = 9; },
      [](FrameHeader& frame) { frame.pieces[0].group = 9; },
      [](FrameHeader& frame) { frame.pieces[0].layer = kLayers; },
      [](FrameHeader& frame) { frame.pieces[0].length += 64; },
      [](FrameHeader& frame) { frame.pieces[0].length -= 1; },
      [](FrameHeader& frame) { frame.pieces[0].offset = 64; },
      [](FrameHeader& frame) { frame.pieces[0].digests.clear(); },
      [](FrameHeader& frame) { frame.pieces.clear(); },
  };
  for (size_t i = 0; i < bent.size(); ++i) {
    source_.bend_frame = bent[i];
    EXPECT_THAT(PullAll(), ElementsAre(Outcome::kSourceFailed, Outcome::kSkipped, Outcome::kSkipped,
                                       Outcome::kSkipped))
        << i;
    EXPECT_EQ(status_.code(), absl::StatusCode::kInternal) << i << status_;
    EXPECT_EQ(here_.Present(prompt_), 0u) << i;
  }
}

TEST_F(BlockPullerTest, RecordsThatDoNotFollowEachOtherAreNotReserved) {
  EXPECT_THAT(Pull({prompt_.keys[0], prompt_.keys[2]}),
              ElementsAre(Outcome::kPulled, Outcome::kParentMissing));
  EXPECT_THAT(Pull({prompt_.keys[3]}), ElementsAre(Outcome::kParentMissing));
  source_.bend_records = [](BlockRecords& records) { records.blocks[0].tokens.pop_back(); };
  EXPECT_THAT(Pull({prompt_.keys[1]}), ElementsAre(Outcome::kSourceFailed));
}

TEST_F(BlockPullerTest, AWritersBlockIsLeftToIt) {
  const auto reserved = here_.Reserve(prompt_, 0, 2);
  ASSERT_TRUE(reserved.ok());
  EXPECT_THAT(PullAll(), ElementsAre(Outcome::kInProgress, Outcome::kInProgress, Outcome::kPulled,
                                     Outcome::kPulled));
  EXPECT_EQ(here_.Present(prompt_), 0u);
  for (uint32_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(here_.WriteBlock("t", *reserved->token, prompt_.keys[i], i).ok());
    ASSERT_TRUE(here_.CommitBlock("t", *reserved->token, prompt_.keys[i], i).ok());
  }
  EXPECT_EQ(Intact(), kBlocks);
}

TEST_F(BlockPullerTest, OtherTenantsBlocksAreNotThere) {
  here_.Register(TestStore::ManySegments(kLayers, 1, false), "u");
  target_.tenant = "u";
  EXPECT_THAT(PullAll(), ElementsAre(Outcome::kMissing, Outcome::kSkipped, Outcome::kSkipped,
                                     Outcome::kSkipped));
  EXPECT_EQ(here_.PresentFor("u", prompt_), 0u);
}

// --- What is removed here meanwhile ---

TEST_F(BlockPullerTest, ARetirementDuringATransferFencesIt) {
  source_.before_frame = [this](size_t frame) {
    if (frame == 3) CAIRN_CHECK_OK(here_.store->RetireNamespace(target_.fingerprint).status());
    return absl::OkStatus();
  };
  EXPECT_THAT(PullAll(), ElementsAre(Outcome::kPulled, Outcome::kFenced, Outcome::kSkipped,
                                     Outcome::kSkipped));
  EXPECT_EQ(here_.store->Status().blocks, 0u);
}

TEST_F(BlockPullerTest, AClearedScopeDuringATransferFencesIt) {
  source_.before_frame = [this](size_t frame) {
    if (frame != 3) return absl::OkStatus();
    const BlockKey digest = ScopeDigest(prompt_.scope);
    fences_.Cleared(target_.fingerprint, "t", digest, here_.clock.WallNow());
    return here_.store->ClearScope("t", target_.fingerprint, digest).status();
  };
  EXPECT_THAT(PullAll(), ElementsAre(Outcome::kPulled, Outcome::kFenced, Outcome::kSkipped,
                                     Outcome::kSkipped));
  EXPECT_EQ(here_.Present(prompt_), 0u);
  // And what the source was not told to clear yet stays out.
  source_.before_frame = nullptr;
  EXPECT_THAT(Pull({prompt_.keys[0]}), ElementsAre(Outcome::kFenced));
  EXPECT_EQ(source_.transfers(), 1u);
}

TEST_F(BlockPullerTest, APurgeDuringATransferFencesIt) {
  source_.before_frame = [this](size_t frame) {
    if (frame != 3) return absl::OkStatus();
    fences_.Purged(77, 0, here_.clock.WallNow());
    return here_.store->PurgeWriter(77, 0, absl::ToUnixMillis(here_.clock.WallNow())).status();
  };
  EXPECT_THAT(PullAll(), ElementsAre(Outcome::kPulled, Outcome::kFenced, Outcome::kSkipped,
                                     Outcome::kSkipped));
  EXPECT_EQ(here_.Present(prompt_), 0u);
}

TEST_F(BlockPullerTest, AFenceThatIsOnlyNotedYetIsLookedAtBeforeEachCommit) {
  source_.before_frame = [this](size_t frame) {
    if (frame == 3) fences_.Retired(target_.fingerprint, here_.clock.WallNow());
    return absl::OkStatus();
  };
  EXPECT_THAT(PullAll(), ElementsAre(Outcome::kPulled, Outcome::kFenced, Outcome::kSkipped,
                                     Outcome::kSkipped));
}

// --- Room ---

TEST_F(BlockPullerTest, AQuotaHolds) {
  TenantQuotas quotas;
  quotas.named["t"].host_bytes_max = 2 * 2 * 64;
  here_.store->SetQuotas(quotas);
  const TestPrompt held = here_.Prompt("t", 9, 1);
  ASSERT_EQ(here_.Put(held), 1u);
  const LookupAnswer lease = here_.Lease(held);
  EXPECT_THAT(PullAll(),
              ElementsAre(Outcome::kPulled, Outcome::kQuota, Outcome::kSkipped, Outcome::kSkipped));
  EXPECT_EQ(Intact(), 1u);
}

// --- The pace ---

class PacedPullTest : public BlockPullerTest {
 protected:
  PacedPullTest() : BlockPullerTest(2 << 20) {}
};

TEST_F(PacedPullTest, ComesAsFastAsItMayAndStopsWhenTheNodeStops) {
  // What has come is paid for in time: a debt of one second's worth to begin with.
  EXPECT_EQ(rate_.Take(1 << 20), absl::ZeroDuration());
  EXPECT_EQ(rate_.Take(2 << 20), absl::Seconds(1));
  here_.clock.Advance(absl::Seconds(1));
  const absl::Time begin = here_.clock.SteadyNow();
  EXPECT_THAT(PullAll(), Each(Outcome::kPulled));
  const double bytes = kBlocks * kLayers * 64;
  EXPECT_NEAR(absl::ToDoubleSeconds(here_.clock.SteadyNow() - begin), bytes / (2 << 20), 1e-6);
  wait_.stopped = true;
  const TestPrompt other = there_.Prompt("t", 2, 2);
  ASSERT_EQ(there_.Put(other), 2u);
  EXPECT_THAT(Pull(other.keys), ElementsAre(Outcome::kSourceFailed, Outcome::kSkipped));
  EXPECT_THAT(std::string(status_.message()), HasSubstr("stops"));
}

}  // namespace
}  // namespace cairn::node
