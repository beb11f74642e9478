// One of three nodes is killed while a replay runs through them, and started again, or stands still
// for a while: nothing fails, nothing is wrong, others take its requests within two seconds, and
// afterwards all is as it was.
#include <algorithm>
#include <iostream>

#include "absl/time/clock.h"
#include "tests/cluster/cluster_fixture.h"
#include "tests/cluster/staged_replay.h"

namespace cairn::testing {
namespace {

constexpr size_t kNodes = 3;
constexpr size_t kVictim = 0;
constexpr char kVictimId[] = "node-1";
constexpr size_t kPart = 300;  // Requests.
// The contract's bound: out of routes after so long.
constexpr absl::Duration kOutBound = absl::Seconds(2);
// Silence is noticed by a clock that forgives late ticks.
constexpr absl::Duration kSlack = absl::Seconds(2);
// What the hit rate may lose over the whole story.
constexpr double kHitRateLoss = 0.02;

bool TookIt(const WorkOutcome& outcome) {
  return outcome.cached && outcome.replica.node_id == kVictimId;
}

class NodeRestartTest : public ClusterTest {
 protected:
  // Parts of the replay: old requests twice, new ones (during which the node dies and returns), old
  // ones twice.
  void Start() {
    ASSERT_NO_FATAL_FAILURE(AddNodes(kNodes));
    // A node that came back is to have its share at once: the replay is over before a ramp is.
    ASSERT_NO_FATAL_FAILURE(StartRouter(NodeAddresses(), {"--ramp-ms=0"}));
    old_ = Generate(1, kPart);
    new_ = Generate(2, kPart);
    std::vector<replay::TraceRequest> requests;
    for (const auto* part : {&old_, &old_, &new_, &old_, &old_}) {
      requests.insert(requests.end(), part->begin(), part->end());
    }
    replay_ = std::make_unique<StagedReplay>(SmallBlocks(), Target(), requests);
  }

  // Runs all requests up to there.
  void RunUntil(size_t count) {
    replay_->RunUntil(count);
    ASSERT_TRUE(replay_->AwaitDone(count, kSoon)) << replay_->done() << " of " << count;
  }

  v1::HolderState StateOfVictim(const ReplicaList& list) { return list.holders[kVictim].state; }

  std::vector<replay::TraceRequest> old_;
  std::vector<replay::TraceRequest> new_;
  std::unique_ptr<StagedReplay> replay_;
};

TEST_F(NodeRestartTest, AReplayLosesNothingAndTheHitsComeBack) {
  ASSERT_NO_FATAL_FAILURE(Start());
  RunUntil(kPart);
  RunUntil(2 * kPart);
  const double before = replay_->HitRateSince(kPart);
  EXPECT_GT(before, 0.9);
  const auto first_run = ReplicaOf(List(), kVictimId).incarnation;

  // Dies while its requests are under way.
  const size_t outage_begin = 2 * kPart + kPart / 3;
  replay_->RunUntil(outage_begin);
  ASSERT_TRUE(replay_->AwaitDone(outage_begin - kPart / 6, kSoon));
  const absl::Time killed_at = absl::Now();
  node(kVictim).Kill9();
  ASSERT_TRUE(AwaitList(
      [&](const ReplicaList& list) { return StateOfVictim(list) == v1::HOLDER_STATE_OUT; }));
  EXPECT_LT(absl::Now() - killed_at, kOutBound);

  // What is under way goes elsewhere too; what comes then is sent there in the first place.
  RunUntil(outage_begin);
  RunUntil(2 * kPart + 2 * kPart / 3);
  for (const WorkOutcome& outcome : replay_->OutcomesSince(outage_begin)) {
    EXPECT_TRUE(outcome.cached);
    EXPECT_FALSE(TookIt(outcome));
    EXPECT_EQ(outcome.fallbacks, 0u) << "was sent to the dead node first";
  }

  ASSERT_NO_FATAL_FAILURE(RestartNode(kVictim));
  ASSERT_TRUE(AwaitList(
      [&](const ReplicaList& list) { return StateOfVictim(list) == v1::HOLDER_STATE_EXACT; }));
  EXPECT_NE(ReplicaOf(List(), kVictimId).incarnation, first_run);
  const size_t back = replay_->done();
  RunUntil(3 * kPart);
  const std::vector<WorkOutcome> since = replay_->OutcomesSince(back);
  EXPECT_GT(std::count_if(since.begin(), since.end(), TookIt), 0) << "it gets no requests";

  RunUntil(4 * kPart);
  RunUntil(5 * kPart);
  const double after = replay_->HitRateSince(4 * kPart);
  EXPECT_GT(after, before - kHitRateLoss);
  std::cout << "hit rate " << before << " before, " << after << " after\n";
  const absl::StatusOr<replay::ReplayReport> report = replay_->Finish();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->requests, 5 * kPart);
  EXPECT_EQ(report->failed_requests, 0u);
  EXPECT_EQ(report->wrong_bytes, 0u);
  ASSERT_TRUE(AwaitExact());
  ExpectIndexIsListing(old_);
  ExpectIndexIsListing(new_);
}

// It stands still for longer than the router waits, and then goes on as if nothing had been.
TEST_F(NodeRestartTest, ANodeThatStandsStillIsPassedOverAndComesBackWithWhatItHeld) {
  ASSERT_NO_FATAL_FAILURE(Start());
  RunUntil(kPart);
  const uint64_t held = Describe(kVictim).blocks();
  node(kVictim).Stop();
  const absl::Time stopped_at = absl::Now();
  replay_->RunUntil(kPart + kPart / 3);
  ASSERT_TRUE(AwaitList(
      [&](const ReplicaList& list) { return StateOfVictim(list) == v1::HOLDER_STATE_OUT; }));
  EXPECT_LT(absl::Now() - stopped_at, kOutBound + kSlack);
  RunUntil(kPart + kPart / 3);
  RunUntil(2 * kPart);
  for (const WorkOutcome& outcome : replay_->OutcomesSince(kPart + kPart / 3)) {
    EXPECT_FALSE(TookIt(outcome));
    EXPECT_EQ(outcome.fallbacks, 0u) << "was sent to the silent node first";
  }

  node(kVictim).Continue();
  ASSERT_TRUE(AwaitExact());
  EXPECT_GE(Describe(kVictim).blocks(), held);
  const absl::StatusOr<replay::ReplayReport> report = replay_->Finish();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->failed_requests, 0u);
  EXPECT_EQ(report->wrong_bytes, 0u);
  ExpectIndexIsListing(old_);
}

}  // namespace
}  // namespace cairn::testing
