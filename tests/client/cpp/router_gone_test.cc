// A worker whose router is gone: where requests go then, and how soon it is asked again.
#include <gmock/gmock.h>

#include "client/cpp/rendezvous.h"
#include "tests/client/cpp/model_worker_fixture.h"

namespace cairn::testing {
namespace {

// As often as the client tries one call.
const int kAttempts = static_cast<int>(RetryOptions().attempts_max);

TEST_F(ModelWorkerTest, ComputesEverythingWhenTheRouterIsGone) {
  router_->Stop();
  const WorkOutcome outcome = Run();
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_FALSE(outcome.cached);
  EXPECT_EQ(engine_->computations(), 1);
  EXPECT_EQ(node_->Calls("Lookup"), 0);
}

TEST_F(ModelWorkerTest, GoesToAKnownReplicaWhenTheRouterIsGone) {
  EXPECT_TRUE(Run().routed);
  router_->Stop();
  // Whichever comes first has what was stored.
  options_.known_replicas = {ReplicaAt("left", *node_), ReplicaAt("right", *node_)};
  const WorkOutcome outcome = Run();
  EXPECT_FALSE(outcome.routed);
  EXPECT_TRUE(outcome.cached);
  EXPECT_EQ(outcome.hits.host, 4u);
  EXPECT_EQ(outcome.replica.worker_address,
            OrderByRendezvous(prompt_->keys(), options_.known_replicas)[0].worker_address);
  EXPECT_EQ(router_->outcomes().size(), 2u) << "nothing to report without a booking";
}

TEST_F(ModelWorkerTest, GoesToTheNextKnownReplicaWhenANodeIsGoneToo) {
  router_->Stop();
  node_->Stop();
  options_.known_replicas = {ReplicaAt("gone", *node_), ReplicaAt("there", *other_node_)};
  const WorkOutcome outcome = Run();
  EXPECT_EQ(outcome.replica.worker_address, "there");
  EXPECT_EQ(other_node_->blocks_present(), 4u);
}

TEST_F(ModelWorkerTest, ARouterThatWasGoneIsAskedAgainAfterAMoment) {
  options_.known_replicas = {ReplicaAt("known", *node_)};
  const ModelWorker worker(options_, *handle_, router_client_.get(), &nodes_);
  router_->FailNextRoutes(kGone, kAttempts);
  EXPECT_FALSE(RunBy(worker).routed);
  EXPECT_EQ(router_->routes().size(), static_cast<size_t>(kAttempts));
  clock_.Advance(kRouterGoneFor - absl::Milliseconds(1));
  const WorkOutcome meanwhile = RunBy(worker);
  EXPECT_EQ(router_->routes().size(), static_cast<size_t>(kAttempts)) << "nobody waits for it";
  EXPECT_EQ(meanwhile.latencies.route, absl::ZeroDuration());
  EXPECT_EQ(meanwhile.cache_status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(meanwhile.hits.host, 4u);
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(RunBy(worker).routed);
  EXPECT_TRUE(RunBy(worker).routed);
}

TEST_F(ModelWorkerTest, ARouterThatRefusesIsNotGone) {
  options_.known_replicas = {ReplicaAt("known", *node_)};
  const ModelWorker worker(options_, *handle_, router_client_.get(), &nodes_);
  router_->FailNextRoutes(absl::ResourceExhaustedError("too many bookings"), 1);
  EXPECT_FALSE(RunBy(worker).routed);
  EXPECT_TRUE(RunBy(worker).routed);
}

TEST(PeerAbsenceTest, OneTriesAgainWhileTheOthersWaitForWhatItLearns) {
  FakeClock clock;
  PeerAbsence absence(&clock, absl::Seconds(1));
  EXPECT_TRUE(absence.MayAsk());
  EXPECT_TRUE(absence.MayAsk()) << "nothing is known of it yet";
  absence.NoteGone();
  EXPECT_FALSE(absence.MayAsk());
  clock.Advance(absl::Seconds(1));
  EXPECT_TRUE(absence.MayAsk());
  EXPECT_FALSE(absence.MayAsk()) << "one at a time";
  clock.Advance(absl::Seconds(1));
  EXPECT_TRUE(absence.MayAsk()) << "the other one takes too long, or is gone itself";
  absence.NoteAnswered();
  EXPECT_TRUE(absence.MayAsk());
  EXPECT_TRUE(absence.MayAsk());
}

}  // namespace
}  // namespace cairn::testing
