// Small replays against fake nodes, which keep everything, beside what the oracles say: with and
// without a fake router, with bytes that are wrong under right digests, with a trace that breaks
// off.
#include "client/replay/replay_runner.h"

#include <gmock/gmock.h>

#include <sstream>

#include "client/replay/generated_trace.h"
#include "client/replay/open_trace.h"
#include "common/identity/segment_digest.h"
#include "tests/client/cpp/fake_node.h"
#include "tests/client/cpp/fake_router.h"
#include "tests/client/cpp/fake_wait.h"
#include "tests/client/replay/trace_file.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/seeded_random.h"

namespace cairn::replay {
namespace {

using cairn::testing::FakeClock;
using cairn::testing::FakeNode;
using cairn::testing::FakeRouter;
using cairn::testing::FakeWait;
using cairn::testing::SeededRandom;
using ::testing::HasSubstr;

class ReplayRunnerTest : public ::testing::Test {
 protected:
  ReplayRunnerTest() {
    options_.workers = 1;
    options_.block_tokens = kBlockTokens;
    options_.block_bytes = 1024;
    options_.lru_blocks = 100;
    const GeneratedTraceOptions generated{.requests = 40};
    trace_ = *GeneratedTrace::Make(generated);
    node_ = std::make_unique<FakeNode>(*NamespaceOfReplay(options_, *trace_));
  }

  absl::StatusOr<ReplayReport> Replay() {
    ReplayRunner runner(
        options_,
        {.router = router_client_.get(), .node_address = node_->target(), .nodes = &nodes_}, &wait_,
        &progress_);
    absl::StatusOr<ReplayReport> report = runner.Run(trace_.get());
    first_failure_ = runner.first_failure();
    return report;
  }

  void UseRouter(const std::vector<std::string>& nodes) {
    router_ = std::make_unique<FakeRouter>();
    for (const std::string& node : nodes) router_->AddReplica(node);
    RouterClientOptions options;
    options.target = router_->target();
    router_client_ = std::make_unique<RouterClient>(options, parts_);
  }

  static constexpr uint32_t kBlockTokens = 64;

  FakeClock clock_;
  FakeWait wait_{&clock_};
  SeededRandom random_{5};
  Sha256BlockHasher hasher_;
  const ClientParts parts_{&hasher_, &clock_, &random_, &wait_};
  NodeClients nodes_{{}, parts_};
  ReplayOptions options_;
  std::unique_ptr<TraceReader> trace_;
  std::unique_ptr<FakeNode> node_;
  std::unique_ptr<FakeRouter> router_;
  std::unique_ptr<RouterClient> router_client_;
  std::ostringstream progress_;
  absl::Status first_failure_;
};

TEST_F(ReplayRunnerTest, OneWorkerHitsWhatAnUnlimitedCacheWould) {
  const absl::StatusOr<ReplayReport> report = Replay();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->requests, 40u);
  EXPECT_EQ(report->failed_requests, 0u);
  EXPECT_EQ(report->wrong_bytes, 0u);
  EXPECT_GT(report->hit_blocks, 0u);
  EXPECT_EQ(report->hit_blocks, report->ideal_hit_blocks);
  EXPECT_EQ(report->hit_tokens, report->ideal_hit_tokens);
  EXPECT_EQ(report->lru_capacity_blocks, 100u);
  EXPECT_LT(report->lru_hit_blocks, report->ideal_hit_blocks);
  EXPECT_EQ(report->busiest_over_mean, 1);
  EXPECT_EQ(node_->blocks_present(), report->stored_blocks);
}

TEST_F(ReplayRunnerTest, ManyWorkersLoseNoRequest) {
  options_.workers = 8;
  const absl::StatusOr<ReplayReport> report = Replay();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->requests, 40u);
  EXPECT_EQ(report->failed_requests, 0u);
  EXPECT_EQ(report->wrong_bytes, 0u);
}

TEST_F(ReplayRunnerTest, WrongBytesUnderTheRightDigestAreFound) {
  const TraceFile file("0.0 64 1 0 1\n1.0 64 1 0 1\n");
  const NamespaceHandle handle = *NamespaceOfReplay(options_, *trace_);
  const std::vector<uint32_t> tokens = TracePrompt::FromIds(0, 64, {{1, 1}}, 64).Tokens();
  const Region region{.scope = {"public", "", ""}, .tokens = tokens, .external_ids = {}};
  const BlockKey key = Prompt::Make(hasher_, handle, {&region, 1})->keys().at(0);
  node_->BendGet([key](FakeNode::Frames* frames) {
    std::string* bytes = frames->front().mutable_payload();
    for (size_t i = 0; i < 3; ++i) (*bytes)[i] ^= 1;
    frames->front().mutable_pieces(0)->set_digests(
        0, SegmentDigest(key, {0, 0, 0},
                         {reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size()}));
  });
  trace_ = *OpenTrace(file.path());
  const absl::StatusOr<ReplayReport> report = Replay();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->hit_blocks, 1u);
  EXPECT_EQ(report->mismatched_segments, 0u);
  EXPECT_EQ(report->wrong_bytes, 3u);
}

TEST_F(ReplayRunnerTest, AReplicaThatIsIdleCountsInTheMean) {
  FakeNode idle(*NamespaceOfReplay(options_, *trace_));
  UseRouter({node_->target(), idle.target()});
  const absl::StatusOr<ReplayReport> report = Replay();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->busiest_over_mean, 2);
  EXPECT_EQ(report->hit_blocks, report->ideal_hit_blocks);
  // Without a rate of computing the end says everything.
  EXPECT_EQ(router_->outcomes().size(), 40u);
  EXPECT_EQ(idle.Calls("RegisterNamespace"), 1);
}

TEST_F(ReplayRunnerTest, ANodeThatDiesMakesMissesAndNoFailures) {
  UseRouter({node_->target()});
  node_->FailNext("Lookup", absl::UnavailableError("gone"), 1000);
  const absl::StatusOr<ReplayReport> report = Replay();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->failed_requests, 0u);
  EXPECT_EQ(report->hit_blocks, 0u);
  EXPECT_EQ(report->uncached_requests, 40u);
}

TEST_F(ReplayRunnerTest, ARouterThatDiesCostsNoHits) {
  UseRouter({node_->target()});
  uint64_t routed = 0;
  options_.observe = [&](const WorkOutcome& outcome) {
    routed += outcome.routed ? 1 : 0;
    if (routed == 10) router_->Stop();
  };
  const absl::StatusOr<ReplayReport> report = Replay();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(routed, 10u);
  EXPECT_EQ(report->requests, 40u);
  EXPECT_EQ(report->failed_requests, 0u);
  EXPECT_EQ(report->uncached_requests, 0u);
  EXPECT_EQ(report->hit_blocks, report->ideal_hit_blocks);
}

TEST_F(ReplayRunnerTest, FollowsTheTracesTimesAtItsRate) {
  const TraceFile file("0.0 64 1 0 1\n8.0 64 1 0 2\n20.0 64 1 0 3\n");
  trace_ = *OpenTrace(file.path());
  options_.rate = 4;
  const absl::StatusOr<ReplayReport> report = Replay();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->elapsed, absl::Seconds(5));
}

TEST_F(ReplayRunnerTest, ComputingMakesReplicasBusy) {
  const TraceFile file("0.0 640 1 0 1-10\n0.0 704 1 0 1-11\n");
  trace_ = *OpenTrace(file.path());
  options_.compute_tokens_per_second = 64;
  UseRouter({node_->target()});
  const absl::StatusOr<ReplayReport> report = Replay();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->elapsed, absl::Seconds(11));
  const std::vector<v1::ReportOutcomeRequest> outcomes = router_->outcomes();
  ASSERT_EQ(outcomes.size(), 4u);
  EXPECT_EQ(outcomes[0].phase(), v1::OUTCOME_PHASE_FIRST_TOKEN);
  EXPECT_EQ(outcomes[0].compute_seconds(), 10);
  EXPECT_EQ(outcomes[2].compute_seconds(), 1);
}

TEST_F(ReplayRunnerTest, EndsAfterTheRequestsAskedFor) {
  options_.requests_max = 7;
  EXPECT_EQ(Replay()->requests, 7u);
}

TEST_F(ReplayRunnerTest, CountsRequestsWithoutAPrompt) {
  const TraceFile file("0.0 0 1 0\n0.0 64 1 0 1\n");
  trace_ = *OpenTrace(file.path());
  const absl::StatusOr<ReplayReport> report = Replay();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->requests, 1u);
  EXPECT_EQ(report->empty_requests, 1u);
}

TEST_F(ReplayRunnerTest, APromptOverAWorkersRoomFailsAndTheNextOneIsServed) {
  options_.block_tokens = 0;
  options_.block_bytes = 4 << 20;
  const TraceFile file("0.0 19200 1 0 1-300\n0.0 64 1 0 1\n");
  trace_ = *OpenTrace(file.path());
  node_ = std::make_unique<FakeNode>(*NamespaceOfReplay(options_, *trace_));
  const absl::StatusOr<ReplayReport> report = Replay();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->failed_requests, 1u);
  EXPECT_EQ(report->stored_blocks, 1u);
  EXPECT_TRUE(absl::IsResourceExhausted(first_failure_)) << first_failure_;
}

TEST_F(ReplayRunnerTest, ANodeThatDiedBeforeTheReplayIsPassedOver) {
  FakeNode other(*NamespaceOfReplay(options_, *trace_));
  UseRouter({other.target(), node_->target()});
  other.Stop();
  const absl::StatusOr<ReplayReport> report = Replay();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->failed_requests, 0u);
  EXPECT_EQ(report->hit_blocks, report->ideal_hit_blocks);
}

TEST_F(ReplayRunnerTest, ABadLineEndsItWithItsPlace) {
  const TraceFile file("0.0 64 1 0 1\nnonsense\n");
  trace_ = *OpenTrace(file.path());
  const absl::Status status = Replay().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr(":2"));
}

TEST_F(ReplayRunnerTest, ANodeThatIsNotThereIsNamed) {
  const std::string address = node_->target();
  node_->Stop();
  const absl::Status status = Replay().status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr(address));
}

TEST_F(ReplayRunnerTest, ARouterWithoutReplicasSaysWhatToDo) {
  UseRouter({});
  const absl::Status status = Replay().status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--worker-address"));
}

TEST(ValidateReplayOptions, NamesWhatIsOutOfRange) {
  ReplayOptions options;
  EXPECT_TRUE(ValidateReplayOptions(options).ok());
  options.workers = 0;
  EXPECT_THAT(std::string(ValidateReplayOptions(options).message()), HasSubstr("workers: 0"));
  options = {};
  options.rate = -1;
  EXPECT_THAT(std::string(ValidateReplayOptions(options).message()), HasSubstr("rate: -1"));
  options = {};
  options.compute_tokens_per_second = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(ValidateReplayOptions(options).ok());
}

}  // namespace
}  // namespace cairn::replay
