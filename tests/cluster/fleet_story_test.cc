// A fleet's bad day: two routers, four nodes and 32 workers in the middle of a replay, while the
// router that is asked is killed, a node is killed, another joins and one drains. No request
// fails, no byte is wrong, the work stays spread, and what was predicted was delivered.
#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "tests/cluster/cluster_fixture.h"
#include "tests/cluster/staged_replay.h"

namespace cairn::testing {
namespace {

constexpr size_t kPart = 300;  // Requests.
constexpr uint64_t kParts = 8;
constexpr uint32_t kWorkers = 32;
constexpr double kBusiestOverMeanMost = 1.3;
constexpr double kStaleShareMost = 0.02;
// The contract's bound: nothing new for a node that drains.
constexpr absl::Duration kDrainBound = absl::Seconds(2);

class FleetStoryTest : public ClusterTest {
 protected:
  // Five, of which the last is to join later.
  void StartFleet() {
    ASSERT_NO_FATAL_FAILURE(AddNodes(5, {"--drain-grace-ms=60000"}));
    node(4).Kill9();
    ASSERT_NO_FATAL_FAILURE(StartRouter(NodeAddresses(), {"--ramp-ms=0"}));
    absl::StatusOr<std::unique_ptr<ServerProcess>> other = ServerProcess::Start(
        {.program = absl::StrCat(CAIRN_BIN_DIR, "/cairn-router"),
         .flags = {absl::StrCat("--nodes=", absl::StrJoin(NodeAddresses(), ",")), "--ramp-ms=0"}});
    ASSERT_TRUE(other.ok()) << other.status();
    other_ = *std::move(other);
    both_ = ClientOf(absl::StrCat(router().address(), ",", other_->address()));
  }
  std::unique_ptr<RouterClient> ClientOf(const std::string& target) {
    RouterClientOptions options;
    options.target = target;
    return std::make_unique<RouterClient>(options, parts_.parts());
  }
  // Kills the one that the workers' client asks; a client of the other one.
  std::unique_ptr<RouterClient> KillTheRouterThatIsAsked() {
    const absl::StatusOr<ReplicaList> asked = both_->ListReplicas();
    EXPECT_TRUE(asked.ok()) << asked.status();
    const bool first = asked->router_incarnation == List().router_incarnation;
    std::unique_ptr<RouterClient> rest = ClientOf(first ? other_->address() : router().address());
    (first ? router() : *other_).Kill9();
    return rest;
  }
  // Each part brings prompts that nobody has seen, so that a node that joins has something to win.
  static std::vector<replay::TraceRequest> Requests() {
    std::vector<replay::TraceRequest> all;
    for (uint64_t seed = 1; seed <= kParts; ++seed) {
      const std::vector<replay::TraceRequest> part = Generate(seed, kPart);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }
  bool Await(RouterClient* client, absl::FunctionRef<bool(const ReplicaList&)> condition) {
    for (const absl::Time end = absl::Now() + kSoon; absl::Now() < end;) {
      const absl::StatusOr<ReplicaList> list = client->ListReplicas();
      if (list.ok() && condition(*list)) return true;
    }
    return false;
  }
  // Null: not listed.
  static const ReplicaEntry* Find(const ReplicaList& list, const std::string& node_id) {
    for (const ReplicaEntry& entry : list.replicas) {
      if (entry.node_id == node_id) return &entry;
    }
    return nullptr;
  }
  static size_t TakenBy(const std::string& node_id, const std::vector<WorkOutcome>& outcomes) {
    return static_cast<size_t>(std::count_if(
        outcomes.begin(), outcomes.end(),
        [&node_id](const WorkOutcome& outcome) { return outcome.replica.node_id == node_id; }));
  }
  // Of what routers said was cached, what was not.
  static double StaleShare(const std::vector<WorkOutcome>& outcomes) {
    double predicted = 0;
    double delivered = 0;
    for (const WorkOutcome& outcome : outcomes) {
      if (!outcome.routed) continue;
      predicted += static_cast<double>(outcome.replica.MatchedTokens());
      delivered += static_cast<double>(
          std::min<uint64_t>(outcome.replica.MatchedTokens(), outcome.hit_tokens));
    }
    return predicted == 0 ? 0 : (predicted - delivered) / predicted;
  }
  void RunUntil(StagedReplay* replay, size_t count) {
    replay->RunUntil(count);
    ASSERT_TRUE(replay->AwaitDone(count, 4 * kSoon)) << replay->done() << " of " << count;
  }

  SystemClientParts parts_;
  std::unique_ptr<ServerProcess> other_;
  std::unique_ptr<RouterClient> both_;
};

TEST_F(FleetStoryTest, RoutersAndNodesDieJoinAndDrainUnderAReplay) {
  ASSERT_NO_FATAL_FAILURE(StartFleet());
  replay::ReplayOptions options = SmallBlocks();
  options.workers = kWorkers;
  // Workers that compute, so that there is load to spread.
  options.compute_tokens_per_second = 100'000;
  replay::ReplayTarget target = Target();
  target.router = both_.get();
  StagedReplay replay(options, target, Requests());
  RunUntil(&replay, kPart);

  // While requests are under way.
  replay.RunUntil(2 * kPart);
  const std::unique_ptr<RouterClient> rest = KillTheRouterThatIsAsked();
  ASSERT_NO_FATAL_FAILURE(RestartNode(4));
  ASSERT_TRUE(replay.AwaitDone(2 * kPart, 4 * kSoon));
  ASSERT_TRUE(Await(rest.get(), [](const ReplicaList& list) {
    const ReplicaEntry* const entry = Find(list, "node-5");
    return entry != nullptr && entry->state == v1::HOLDER_STATE_EXACT;
  }));
  RunUntil(&replay, 6 * kPart);
  EXPECT_GT(TakenBy("node-5", replay.OutcomesSince(2 * kPart)), 0u) << "it joined";

  replay.RunUntil(7 * kPart);
  node(1).Kill9();
  ASSERT_TRUE(replay.AwaitDone(7 * kPart, 4 * kSoon));

  const absl::Time told_at = absl::Now();
  ASSERT_EQ(node(2).Terminate(absl::ZeroDuration()).value_or(0), 0);
  ASSERT_TRUE(Await(rest.get(), [](const ReplicaList& list) {
    const ReplicaEntry* const entry = Find(list, "node-3");
    return entry == nullptr || entry->drain_state == v1::DRAIN_STATE_DRAINING ||
           entry->state == v1::HOLDER_STATE_OUT;
  }));
  EXPECT_LT(absl::Now() - told_at, kDrainBound);

  const absl::StatusOr<replay::ReplayReport> report = replay.Finish();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(TakenBy("node-3", replay.OutcomesSince(7 * kPart)), 0u) << "it drains";
  const double stale = StaleShare(replay.OutcomesSince(0));
  std::cout << "busiest_over_mean " << report->busiest_over_mean << ", predicted and not delivered "
            << stale << ", hit tokens " << report->hit_tokens << "\n";
  EXPECT_EQ(report->failed_requests, 0u);
  EXPECT_EQ(report->wrong_bytes, 0u);
  EXPECT_LE(report->busiest_over_mean, kBusiestOverMeanMost);
  EXPECT_LT(stale, kStaleShareMost);
}

}  // namespace
}  // namespace cairn::testing
