// What a router writes can be read to its end: whatever nodes and clients say, and whatever races,
// nothing is written that a reader takes for damage.
#include <gmock/gmock.h>

#include <functional>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/identity/key_chain.h"
#include "router/decisions/decision_reader.h"
#include "router/decisions/decision_recorder.h"
#include "router/policy/policy_registry.h"
#include "tests/router/core/router_fixture.h"
#include "tests/router/decisions/memory_storage.h"
#include "tests/router/decisions/sample_decisions.h"

namespace cairn::router {
namespace {

using ::testing::HasSubstr;

// What follows the next look at the clock, before whoever looked goes on.
class HookedClock final : public Clock {
 public:
  explicit HookedClock(const testing::FakeClock* clock) : clock_(clock) {}
  void AfterNext(std::function<void()> hook) { hook_ = std::move(hook); }

  absl::Time SteadyNow() const override {
    const absl::Time now = clock_->SteadyNow();
    const std::function<void()> hook = std::exchange(hook_, nullptr);
    if (hook) hook();
    return now;
  }
  absl::Time WallNow() const override { return clock_->WallNow(); }

 private:
  const testing::FakeClock* const clock_;
  mutable std::function<void()> hook_;
};

class ReadableRecordTest : public RouterFixture {
 protected:
  void SetUp() override {
    RouterFixture::SetUp();
    DecisionRecorderOptions recording;
    recording.policy = std::string(kDefaultRoutePolicy);
    recorder_ = std::make_unique<DecisionRecorder>(
        recording, std::make_unique<MemoryStorage>(&disk_), &clock_);
    ASSERT_TRUE(recorder_->Open().ok());
  }
  void StartRecording() {
    auto core = RouterCore::Make(options_, std::make_unique<PrefixCostPolicy>(PrefixCostOptions{}),
                                 &hooked_, &random_, recorder_.get());
    ASSERT_TRUE(core.ok()) << core.status();
    core_ = *std::move(core);
    for (HolderIndex holder = 0; holder < 3; ++holder) Connect(holder);
    ASSERT_TRUE(core_->Ready());
  }
  // Of all that was recorded; what cannot be read fails.
  uint64_t DecisionsRead(uint64_t* lost = nullptr) {
    recorder_->Flush();
    std::istringstream in(disk_.files.at(0));
    absl::StatusOr<DecisionReader> reader = DecisionReader::Open(&in);
    if (!reader.ok()) return 0;
    uint64_t decisions = 0;
    while (const auto record = reader->Next()) {
      decisions += std::holds_alternative<Decision>(*record) ? 1 : 0;
      const auto* const missing = std::get_if<LostDecisions>(&*record);
      if (missing != nullptr && lost != nullptr) *lost += missing->records;
    }
    EXPECT_EQ(reader->damage(), "");
    return decisions;
  }

  MemoryDisk disk_;
  std::unique_ptr<DecisionRecorder> recorder_;
  HookedClock hooked_{&clock_};
};

TEST_F(ReadableRecordTest, ANodeThatAppearsWhileAPromptWaitsForTheLockIsNotOfTheFuture) {
  StartRecording();
  clock_.Advance(absl::Milliseconds(100));
  hooked_.AfterNext([this] {
    clock_.Advance(absl::Milliseconds(30));
    core_->OnFeedBroken(1);
    nodes_[1] = NodeAt(1, 'z');
    Connect(1);
  });
  Route(0, 8);
  Route(0, 8);
  EXPECT_EQ(DecisionsRead(), 2u);
}

TEST_F(ReadableRecordTest, AWorkerOfMoreMemoryThanThereIsHasEnough) {
  nodes_[0] = ModelHolder(
      {.node_id = "node-0", .worker_address = "worker-0", .worker_kv_tokens = UINT64_MAX});
  StartRecording();
  Route(0, 8);
  EXPECT_EQ(core_->ListReplicas().front().kv_tokens_max, uint64_t{1} << 40);
  EXPECT_EQ(DecisionsRead(), 1u);
}

TEST_F(ReadableRecordTest, BlocksOfMoreTokensThanAnyHasEndTheFeedAndNotTheRecord) {
  StartRecording();
  const auto refused =
      core_->OnFeed(0, ModelHolder::Namespace(NumberedFingerprint(7), uint32_t{1} << 31));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("2147483648 tokens; 1 to 16384"));
  Route(0, 8);
  EXPECT_EQ(DecisionsRead(), 1u);
}

TEST_F(ReadableRecordTest, APromptOfMoreBlocksThanAPromptHasIsRefused) {
  StartRecording();
  const uint32_t most = kPromptTokensMax / kBlockTokens;
  EXPECT_TRUE(TryRoute(0, most).ok());
  const absl::Status refused = TryRoute(0, most + 1).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("16385 blocks of 256; at most 4194304"));
  EXPECT_EQ(DecisionsRead(), 1u);
}

TEST_F(ReadableRecordTest, AReportOfMoreTimeThanABookingLivesIsRefused) {
  StartRecording();
  const RouteAnswer answer = Route(0, 8);
  const auto report = [&](double seconds) {
    return core_
        ->ReportOutcome({.booking = answer.booking,
                         .router_incarnation = core_->incarnation(),
                         .phase = OutcomePhase::kEnd,
                         .worker_address = "",
                         .computed_tokens = 5,
                         .compute_seconds = seconds})
        .status();
  };
  for (const double seconds : {1e300, 86'401.0}) {
    EXPECT_THAT(report(seconds).message(), HasSubstr("0 to 86400 is wanted")) << seconds;
  }
  EXPECT_TRUE(report(86'400).ok());
  Route(0, 8);
  EXPECT_EQ(DecisionsRead(), 2u);
}

TEST_F(ReadableRecordTest, WhatNoReaderTakesIsLeftOutAndCounted) {
  const auto names = NumberedNames(4);
  Decision odd = NumberedDecision(1, names);
  odd.snapshot.replicas[0].queued_prefill_tokens = UINT64_MAX;
  recorder_->OnDecision(odd);
  recorder_->OnOutcome({.booking = NumberedBooking(1), .compute_seconds = -1});
  recorder_->OnDecision(NumberedDecision(2, names));
  uint64_t lost = 0;
  EXPECT_EQ(DecisionsRead(&lost), 1u);
  EXPECT_EQ(lost, 2u);
  EXPECT_EQ(recorder_->counters().decisions_recorded, 1u);
  EXPECT_EQ(recorder_->counters().dropped, 2u);
}

}  // namespace
}  // namespace cairn::router
