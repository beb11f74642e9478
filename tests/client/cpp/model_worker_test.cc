// A worker between a fake router, fake nodes and a fake engine: each test says what one of them
// does wrong and looks at what was used, computed, stored and reported. The engine knows what every
// block must hold.
#include "client/cpp/model_worker.h"

#include <gmock/gmock.h>

#include "common/rpc/error_reason.h"
#include "common/wire/limits.h"
#include "common/wire/route_limits.h"
#include "tests/client/cpp/model_worker_fixture.h"

namespace cairn::testing {
namespace {

using ::testing::SizeIs;

// More than any client tries.
constexpr int kAlways = 100;

TEST_F(ModelWorkerTest, ComputesAndStoresWhatNobodyHas) {
  const WorkOutcome outcome = Run();
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_TRUE(outcome.cache_status.ok()) << outcome.cache_status;
  EXPECT_EQ(engine_->first_block(), 0u);
  EXPECT_EQ(outcome.computed_tokens, tokens_.size());
  EXPECT_EQ(outcome.blocks_stored, 4u);
  EXPECT_EQ(node_->blocks_present(), 4u);
  EXPECT_EQ(other_node_->Calls("Lookup"), 0);
}

TEST_F(ModelWorkerTest, TakesWhatAnEarlierRequestStored) {
  Run();
  MakePrompt(6, /*tokens_beyond=*/3);
  const WorkOutcome outcome = Run();
  EXPECT_EQ(engine_->first_block(), 4u);
  EXPECT_EQ(outcome.hits.host, 4u);
  EXPECT_EQ(outcome.hit_tokens, 4u * handle_->block_tokens());
  EXPECT_EQ(outcome.computed_tokens, 2u * handle_->block_tokens() + 3);
  EXPECT_EQ(outcome.blocks_stored, 2u);
  EXPECT_EQ(node_->blocks_present(), 6u);
}

TEST_F(ModelWorkerTest, StoresNothingOfAPromptThatIsThere) {
  Run();
  const WorkOutcome outcome = Run();
  EXPECT_EQ(outcome.computed_tokens, 0u);
  EXPECT_EQ(node_->Calls("Reserve"), 1);
}

TEST_F(ModelWorkerTest, APromptWithoutAFullBlockIsComputed) {
  MakePrompt(0, /*tokens_beyond=*/5);
  const WorkOutcome outcome = Run();
  EXPECT_TRUE(outcome.cache_status.ok()) << outcome.cache_status;
  EXPECT_EQ(outcome.computed_tokens, 5u);
  EXPECT_EQ(engine_->computations(), 1);
  EXPECT_EQ(node_->Calls("Lookup"), 0);
}

TEST_F(ModelWorkerTest, LeasesUntilWhatItComputedIsStored) {
  Run();
  MakePrompt(6);
  Run([&](FakeEngine* engine) {
    engine->before_compute = [&] { EXPECT_THAT(node_->ended(), SizeIs(1)); };
  });
  ASSERT_THAT(node_->ended(), SizeIs(2));
  EXPECT_EQ(node_->ended().back().usable_blocks(0), 4u);
  EXPECT_THAT(node_->gets().back().lease(), SizeIs(kKeyBytes));
}

TEST_F(ModelWorkerTest, ReservesBeforeItComputes) {
  Run([&](FakeEngine* engine) {
    engine->before_compute = [&] {
      EXPECT_EQ(node_->Calls("Reserve"), 1);
      EXPECT_EQ(node_->Calls("Write"), 0);
    };
  });
  EXPECT_EQ(node_->Calls("Write"), 1);
}

TEST_F(ModelWorkerTest, UsesOnlyTheBlocksBeforeOneThatDoesNotVerify) {
  Run();
  const std::vector<uint8_t> bytes =
      SyntheticSegment(handle_->payload_map(), prompt_->keys()[2], {0, 1, 2});
  const std::string bent(bytes.begin(), bytes.end());
  node_->BendGet([bent](FakeNode::Frames* frames) {
    for (v1::GetResponse& frame : *frames) {
      if (frame.payload() == bent) frame.mutable_payload()->front() ^= 1;
    }
  });
  const WorkOutcome outcome = Run();
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(engine_->first_block(), 2u);
  EXPECT_GT(outcome.mismatched_segments, 0u);
  EXPECT_EQ(node_->ended().back().usable_blocks(0), 2u);
  ASSERT_GT(node_->mismatches().size(), 0u);
  EXPECT_EQ(node_->mismatches()[0].key(), prompt_->keys()[2].view());
}

TEST_F(ModelWorkerTest, WaitsForBlocksThatOthersHaveInProgress) {
  Run();
  EXPECT_EQ(node_->lookups().at(0).wait_ms(), 1000u);
}

TEST_F(ModelWorkerTest, ReadsWhatAnotherWriterBroughtAfterTheLookup) {
  MakePrompt(2);
  Run();
  MakePrompt(4);
  // The lookup comes too early, the reserve sees two blocks present.
  node_->HideFromNextLookups(1);
  const WorkOutcome outcome = Run();
  EXPECT_EQ(engine_->first_block(), 2u);
  EXPECT_EQ(outcome.hits.total(), 2u);
  EXPECT_EQ(outcome.blocks_stored, 2u);
  EXPECT_EQ(node_->lookups().back().prompts(0).keys().size(), 2 * kKeyBytes);
}

TEST_F(ModelWorkerTest, ComputesAndStoresWhatAnotherWriterDidNotBring) {
  node_->AnswerReserve({v1::RESERVE_OUTCOME_IN_PROGRESS});
  const WorkOutcome outcome = Run();
  EXPECT_EQ(engine_->first_block(), 0u);
  EXPECT_EQ(outcome.blocks_of_others, 4u);
  EXPECT_EQ(outcome.blocks_stored, 4u);
}

TEST_F(ModelWorkerTest, ANodeWithoutRoomIsNoError) {
  node_->AnswerReserve({v1::RESERVE_OUTCOME_NO_SPACE});
  const WorkOutcome outcome = Run();
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_TRUE(outcome.cache_status.ok()) << outcome.cache_status;
  EXPECT_EQ(outcome.storing_stopped_by, v1::RESERVE_OUTCOME_NO_SPACE);
  EXPECT_EQ(outcome.blocks_stored, 0u);
}

TEST_F(ModelWorkerTest, ABlockThatTheNodeDeclinesIsNoErrorAndNothingLaterIsReserved) {
  node_->AnswerReserve({v1::RESERVE_OUTCOME_DECLINED});
  const WorkOutcome outcome = Run();
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_TRUE(outcome.cache_status.ok()) << outcome.cache_status;
  EXPECT_EQ(outcome.storing_stopped_by, v1::RESERVE_OUTCOME_DECLINED);
  EXPECT_EQ(outcome.blocks_stored, 0u);
  EXPECT_EQ(node_->Calls("Reserve"), 1);
}

TEST_F(ModelWorkerTest, RegistersTheNamespaceWithANodeThatForgotIt) {
  node_->FailNext("Reserve", absl::FailedPreconditionError("unknown namespace"));
  const WorkOutcome outcome = Run();
  EXPECT_EQ(node_->Calls("RegisterNamespace"), 1);
  EXPECT_EQ(outcome.blocks_stored, 4u);
}

TEST_F(ModelWorkerTest, RegistersTheNamespaceThatALookupDidNotFind) {
  node_->ForgetNamespace();
  const WorkOutcome outcome = Run();
  EXPECT_EQ(node_->Calls("RegisterNamespace"), 1);
  EXPECT_EQ(outcome.blocks_stored, 4u);
}

TEST_F(ModelWorkerTest, ReservesAgainWhatExpiredWhileItComputed) {
  node_->FailNext("Write", absl::AbortedError("token unknown"));
  const WorkOutcome outcome = Run();
  EXPECT_EQ(node_->Calls("Reserve"), 2);
  EXPECT_EQ(outcome.blocks_stored, 4u);
}

TEST_F(ModelWorkerTest, ARequestThatMayNotBeStoredIsReadAndLeavesNothing) {
  Run();
  MakePrompt(6);
  request_.may_store = false;
  const WorkOutcome outcome = Run();
  EXPECT_TRUE(outcome.cache_status.ok()) << outcome.cache_status;
  EXPECT_EQ(outcome.hits.host, 4u);
  EXPECT_EQ(outcome.blocks_stored, 0u);
  EXPECT_EQ(node_->blocks_present(), 4u);
}

TEST_F(ModelWorkerTest, ARequestThatMayNotBeReadIsComputedWholeAndStored) {
  Run();
  MakePrompt(6);
  request_.may_read = false;
  const WorkOutcome outcome = Run();
  EXPECT_TRUE(outcome.cache_status.ok()) << outcome.cache_status;
  EXPECT_EQ(engine_->first_block(), 0u);
  EXPECT_EQ(outcome.hit_tokens, 0u);
  EXPECT_EQ(node_->Calls("Lookup"), 1);
  EXPECT_EQ(outcome.blocks_stored, 2u);
  EXPECT_EQ(node_->blocks_present(), 6u);
}

TEST_F(ModelWorkerTest, APromptTooShortToBeWorthItIsNotStored) {
  options_.stored_blocks_min = 5;
  EXPECT_EQ(Run().blocks_stored, 0u);
  EXPECT_EQ(node_->Calls("Reserve"), 0);
  MakePrompt(5);
  EXPECT_EQ(Run().blocks_stored, 5u);
}

TEST_F(ModelWorkerTest, SaysHowLongItsBlocksAreWorthKeeping) {
  Run();
  EXPECT_FALSE(node_->reserves().back().has_retention());
  MakePrompt(5);
  request_.keep =
      KeepWish{.priority = 80, .priority_for = absl::Seconds(30), .ttl = absl::Minutes(5)};
  Run();
  const v1::Retention retention = node_->reserves().back().retention();
  EXPECT_EQ(retention.priority(), 80u);
  EXPECT_EQ(retention.priority_ms(), 30'000u);
  EXPECT_EQ(retention.ttl_ms(), 300'000u);
}

TEST_F(ModelWorkerTest, GoesToTheNextReplicaWhenANodeIsGone) {
  node_->Stop();
  const WorkOutcome outcome = Run();
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.fallbacks, 1u);
  EXPECT_EQ(outcome.replica.worker_address, "worker-2");
  EXPECT_EQ(engine_->worker_address(), "worker-2");
  EXPECT_EQ(other_node_->blocks_present(), 4u);
  EXPECT_EQ(router_->outcomes().back().worker_address(), "worker-2");
}

TEST_F(ModelWorkerTest, GoesToTheNextReplicaWhenNothingArrives) {
  Run();
  node_->FailNext("Get", kGone, kAlways);
  const WorkOutcome outcome = Run();
  EXPECT_EQ(outcome.replica.worker_address, "worker-2");
  EXPECT_EQ(engine_->first_block(), 0u);
  EXPECT_EQ(other_node_->blocks_present(), 4u);
}

TEST_F(ModelWorkerTest, ComputesEverythingWhenNoNodeIsLeft) {
  node_->Stop();
  other_node_->Stop();
  const WorkOutcome outcome = Run();
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_FALSE(outcome.cached);
  EXPECT_EQ(outcome.fallbacks, 2u);
  EXPECT_EQ(engine_->worker_address(), "worker-1");
  EXPECT_EQ(outcome.computed_tokens, tokens_.size());
  EXPECT_TRUE(absl::IsUnavailable(outcome.cache_status)) << outcome.cache_status;
  EXPECT_EQ(router_->outcomes().back().phase(), v1::OUTCOME_PHASE_END);
}

TEST_F(ModelWorkerTest, DoesNotAskANodeThatTheRouterSaysIsOut) {
  router_ = std::make_unique<FakeRouter>();
  router_->AddReplica(node_->target(), v1::ROUTE_REASON_HOLDER_OUT);
  RouterClientOptions options;
  options.target = router_->target();
  router_client_ = std::make_unique<RouterClient>(options, parts_);
  const WorkOutcome outcome = Run();
  EXPECT_EQ(outcome.replica.worker_address, "worker-1");
  EXPECT_FALSE(outcome.cached);
  EXPECT_EQ(node_->Calls("Lookup"), 0);
}

TEST_F(ModelWorkerTest, ARefusedLookupIsAMissThatIsStillStored) {
  node_->FailNext("Lookup", absl::ResourceExhaustedError("no lease now"));
  const WorkOutcome outcome = Run();
  EXPECT_EQ(outcome.fallbacks, 0u);
  EXPECT_EQ(node_->blocks_present(), 4u);
}

TEST_F(ModelWorkerTest, AnEngineThatFailsFailsTheRequestAndKeepsNothing) {
  const WorkOutcome outcome =
      Run([](FakeEngine* engine) { engine->answer = absl::InternalError("out of memory"); });
  EXPECT_EQ(outcome.status, absl::InternalError("out of memory"));
  EXPECT_EQ(node_->Calls("Write"), 0);
  EXPECT_EQ(node_->Calls("Abort"), 1);
  ASSERT_THAT(router_->outcomes(), SizeIs(1));
  EXPECT_EQ(router_->outcomes()[0].phase(), v1::OUTCOME_PHASE_END);
}

TEST_F(ModelWorkerTest, WithoutTimeForTheCacheItCallsNobody) {
  options_.total_timeout = absl::ZeroDuration();
  const WorkOutcome outcome = Run();
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(engine_->computations(), 1);
  EXPECT_THAT(router_->routes(), SizeIs(0));
  EXPECT_THAT(router_->outcomes(), SizeIs(0));
}

TEST_F(ModelWorkerTest, TimeSpentComputingIsNotTheCaches) {
  options_.total_timeout = absl::Seconds(10);
  const WorkOutcome outcome = Run([&](FakeEngine* engine) {
    engine->before_compute = [&] { clock_.Advance(absl::Minutes(5)); };
  });
  EXPECT_EQ(outcome.latencies.compute, absl::Minutes(5));
  EXPECT_EQ(outcome.blocks_stored, 4u);
}

TEST_F(ModelWorkerTest, ReportsTheFirstTokenAndTheEnd) {
  Run();
  MakePrompt(5);
  Run([](FakeEngine* engine) { engine->answer = absl::Milliseconds(250); });
  const std::vector<v1::ReportOutcomeRequest> outcomes = router_->outcomes();
  ASSERT_THAT(outcomes, SizeIs(4));
  EXPECT_EQ(outcomes[2].phase(), v1::OUTCOME_PHASE_FIRST_TOKEN);
  EXPECT_EQ(outcomes[3].phase(), v1::OUTCOME_PHASE_END);
  for (const v1::ReportOutcomeRequest& outcome : {outcomes[2], outcomes[3]}) {
    EXPECT_EQ(outcome.worker_address(), "");
    EXPECT_EQ(outcome.cached_tokens(), 4u * handle_->block_tokens());
    EXPECT_EQ(outcome.computed_tokens(), handle_->block_tokens());
    EXPECT_EQ(outcome.compute_seconds(), 0.25);
  }
  EXPECT_EQ(outcomes[2].booking(), outcomes[3].booking());
  EXPECT_NE(outcomes[1].booking(), outcomes[2].booking());
}

TEST_F(ModelWorkerTest, RoutesByKeysWithTheWholeLength) {
  MakePrompt(2, /*tokens_beyond=*/3);
  Run();
  ASSERT_THAT(router_->routes(), SizeIs(1));
  EXPECT_THAT(router_->routes()[0].prompt().keys(), SizeIs(2 * kKeyBytes));
  EXPECT_EQ(router_->routes()[0].prompt_tokens(), tokens_.size());
  EXPECT_EQ(router_->routes()[0].output_tokens(), 7u);
}

TEST_F(ModelWorkerTest, TellsTheRouterItsSessionAndWhereItFailedBefore) {
  request_.session_id = "chat-7";
  Run([](FakeEngine* engine) { engine->answer = absl::InternalError("the worker died"); });
  request_.excluded_workers = {"worker-1"};
  Run();
  const std::vector<v1::RouteRequest> routes = router_->routes();
  ASSERT_THAT(routes, SizeIs(2));
  EXPECT_EQ(routes[0].session_id(), "chat-7");
  EXPECT_TRUE(routes[0].excluded_workers().empty());
  EXPECT_EQ(routes[1].session_id(), "chat-7");
  EXPECT_THAT(routes[1].excluded_workers(), ::testing::ElementsAre("worker-1"));
}

TEST_F(ModelWorkerTest, WhenAllAreExcludedItComputesAndTheRouterIsNotTakenForGone) {
  request_.excluded_workers = {"worker-1", "worker-2"};
  options_.known_replicas = {ReplicaAt("worker-1", *node_)};
  router_->FailNextRoutes(
      WithReason(absl::UnavailableError("all 2 replicas are excluded"), kAllReplicasExcluded), 1);
  const ModelWorker worker(options_, *handle_, router_client_.get(), &nodes_);
  const WorkOutcome outcome = RunBy(worker);
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_FALSE(outcome.cached);
  EXPECT_EQ(outcome.replica.worker_address, "") << "not one that it knows and may not take";
  EXPECT_THAT(router_->routes(), SizeIs(1)) << "asking again changes nothing";
  request_.excluded_workers.clear();
  EXPECT_TRUE(RunBy(worker).routed) << "asked at once";
}

TEST_F(ModelWorkerTest, GoesToFixedReplicasWithoutARouter) {
  router_client_ = nullptr;
  options_.fixed_replicas = {ReplicaAt("here", *other_node_)};
  const WorkOutcome outcome = Run();
  EXPECT_EQ(outcome.replica.worker_address, "here");
  EXPECT_EQ(other_node_->blocks_present(), 4u);
}

// Blocks of one token and 64 bytes, so that a prompt of more blocks than one call takes is small.
TEST_F(ModelWorkerTest, PromptsLongerThanOneCallAreReadAndStoredWhole) {
  Namespace fields = SampleNamespace();
  fields.layout.block_tokens = 1;
  fields.layout.groups[0].layers = 1;
  fields.layout.groups[0].kv_heads = 1;
  fields.layout.groups[0].key_dim = 32;
  fields.layout.groups[0].value_dim = 0;
  Use(fields);
  MakePrompt(kKeysPerLookupMax + 2);
  EXPECT_EQ(Run().blocks_stored, kKeysPerLookupMax + 2);
  const WorkOutcome outcome = Run();
  EXPECT_EQ(outcome.hits.total(), kKeysPerLookupMax + 2);
  EXPECT_EQ(outcome.computed_tokens, 0u);
}

}  // namespace
}  // namespace cairn::testing
