// Bookings over the wire: retries, reports, and what the router's figures say of them.
#include <gmock/gmock.h>

#include "cairn/v1/router.grpc.pb.h"
#include "common/rpc/channel_options.h"
#include "common/rpc/id_conversion.h"
#include "tests/router/service/router_fixture.h"

namespace cairn::router {
namespace {

using ::testing::HasSubstr;

class OutcomeTest : public RouterTest {
 protected:
  OutcomeTest() {
    node_.PutUnsaid(kKeys);
    StartRouter({node_.target()});
    EXPECT_TRUE(AwaitState(0, HolderState::kExact));
    stub_ = v1::Router::NewStub(grpc::CreateCustomChannel(
        router_->addresses().front(), grpc::InsecureChannelCredentials(), MakeChannelArguments()));
  }

  static v1::RouteRequest RequestOf(const std::vector<BlockKey>& keys, char id) {
    v1::RouteRequest request;
    request.set_fingerprint(std::string(ScriptedFingerprint().view()));
    request.mutable_prompt()->set_keys(KeysToProto(keys));
    request.set_prompt_tokens(1000);
    request.set_request_id(std::string(16, id));
    return request;
  }

  v1::RouteResponse Route(const v1::RouteRequest& request,
                          grpc::StatusCode code = grpc::StatusCode::OK) {
    grpc::ClientContext context;
    v1::RouteResponse response;
    const grpc::Status status = stub_->Route(&context, request, &response);
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    return response;
  }

  bool Report(const v1::RouteResponse& route, v1::OutcomePhase phase, uint64_t cached = 0,
              uint64_t computed = 0, double seconds = 0) {
    v1::ReportOutcomeRequest request;
    request.set_booking(route.booking());
    request.set_router_incarnation(route.router_incarnation());
    request.set_phase(phase);
    request.set_cached_tokens(cached);
    request.set_computed_tokens(computed);
    request.set_compute_seconds(seconds);
    grpc::ClientContext context;
    v1::ReportOutcomeResponse response;
    const grpc::Status status = stub_->ReportOutcome(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.known();
  }

  ReplicaEntry Replica() { return client_->ListReplicas()->replicas.front(); }

  const std::vector<BlockKey> kKeys = NumberedKeys(1, 40);
  ScriptedNode node_{{.node_id = "node-a", .worker_address = "worker:a"}};
  std::unique_ptr<v1::Router::Stub> stub_;
};

TEST_F(OutcomeTest, RetryGetsTheSameAnswerAndBooksOnce) {
  const v1::RouteResponse first = Route(RequestOf(kKeys, 'x'));
  const v1::RouteResponse again = Route(RequestOf(kKeys, 'x'));
  EXPECT_EQ(first.SerializeAsString(), again.SerializeAsString());
  EXPECT_EQ(Replica().requests, 1u);
  EXPECT_NE(Route(RequestOf(kKeys, 'y')).booking(), first.booking());
  EXPECT_EQ(Replica().requests, 2u);
}

TEST_F(OutcomeTest, AnotherRequestUnderTheSameIdIsRefused) {
  Route(RequestOf(kKeys, 'x'));
  v1::RouteRequest other = RequestOf(kKeys, 'x');
  other.set_output_tokens(5);
  Route(other, grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(OutcomeTest, BookingHasTwoPartsAndEachEndsOnce) {
  const v1::RouteResponse route = Route(RequestOf(kKeys, 'x'));
  EXPECT_EQ(route.router_incarnation(), router_->core().incarnation().view());
  EXPECT_EQ(Replica().prefill_tokens, 1000u - 640);
  EXPECT_GE(Replica().kv_tokens, 1000u);
  EXPECT_TRUE(Report(route, v1::OUTCOME_PHASE_FIRST_TOKEN));
  EXPECT_EQ(Replica().prefill_tokens, 0u);
  EXPECT_GE(Replica().kv_tokens, 1000u);
  EXPECT_TRUE(Report(route, v1::OUTCOME_PHASE_FIRST_TOKEN));
  EXPECT_TRUE(Report(route, v1::OUTCOME_PHASE_END, 640, 360, 0.1));
  EXPECT_EQ(Replica().kv_tokens, 0u);
  EXPECT_EQ(Replica().requests, 0u);
  EXPECT_FALSE(Report(route, v1::OUTCOME_PHASE_END, 640, 360, 0.1)) << "over: only counted";
}

TEST_F(OutcomeTest, PredictedAndDeliveredTokensAreCounted) {
  Report(Route(RequestOf(kKeys, 'x')), v1::OUTCOME_PHASE_END, 600, 400, 0.1);
  const std::string metrics = router_->metrics().Text();
  EXPECT_THAT(metrics, HasSubstr("cairn_router_routes_total 1\n"));
  EXPECT_THAT(metrics, HasSubstr("cairn_router_predicted_tokens_total 640\n"));
  EXPECT_THAT(metrics, HasSubstr("cairn_router_delivered_tokens_total 600\n"));
  EXPECT_THAT(metrics, HasSubstr("cairn_router_stale_alarm 0\n"));
  EXPECT_THAT(metrics, HasSubstr("cairn_router_bookings_open 0\n"));
  EXPECT_THAT(metrics, HasSubstr("cairn_router_index_slots 40\n"));
  EXPECT_THAT(metrics, HasSubstr("cairn_router_holders{state=\"EXACT\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("cairn_router_rpcs_total{code=\"OK\",method=\"Route\"} 1\n"));
}

TEST_F(OutcomeTest, HowAnAnswerWasMadeIsCountedOnceAtItsEnd) {
  const v1::RouteResponse route = Route(RequestOf(kKeys, 'x'));
  RouteOutcome outcome = {
      .booking = {.id = *RouteBookingId::FromBytes(route.booking()),
                  .router_incarnation = *Incarnation::FromBytes(route.router_incarnation())},
      .phase = v1::OUTCOME_PHASE_FIRST_TOKEN,
      .output_tokens = 200,
      .served_tokens = 150,
      .preemptions = 2,
      .refusals = 3};
  EXPECT_TRUE(client_->ReportOutcome(outcome).value_or(false));
  EXPECT_THAT(router_->metrics().Text(), HasSubstr("cairn_router_output_tokens_total 0\n"));
  outcome.phase = v1::OUTCOME_PHASE_END;
  EXPECT_TRUE(client_->ReportOutcome(outcome).value_or(false));
  EXPECT_FALSE(client_->ReportOutcome(outcome).value_or(true)) << "over";
  const std::string metrics = router_->metrics().Text();
  EXPECT_THAT(metrics, HasSubstr("cairn_router_output_tokens_total 200\n"));
  EXPECT_THAT(metrics, HasSubstr("cairn_router_served_tokens_total 150\n"));
  EXPECT_THAT(metrics, HasSubstr("cairn_router_preemptions_total 2\n"));
  EXPECT_THAT(metrics, HasSubstr("cairn_router_refusals_total 3\n"));
}

TEST_F(OutcomeTest, BookingOfAnEarlierRouterIsOnlyCounted) {
  const v1::RouteResponse route = Route(RequestOf(kKeys, 'x'));
  StartRouter({node_.target()});
  stub_ = v1::Router::NewStub(grpc::CreateCustomChannel(
      router_->addresses().front(), grpc::InsecureChannelCredentials(), MakeChannelArguments()));
  EXPECT_FALSE(Report(route, v1::OUTCOME_PHASE_END, 640, 360, 0.1));
  EXPECT_THAT(router_->metrics().Text(), HasSubstr("cairn_router_reports_foreign_total 1\n"));
}

TEST_F(OutcomeTest, UnreportedBookingEndsByItself) {
  RouterConfig config = SmallConfig({node_.target()});
  config.prefill_ttl = absl::Milliseconds(200);
  StartRouter(config);
  ASSERT_TRUE(AwaitState(0, HolderState::kExact));
  stub_ = v1::Router::NewStub(grpc::CreateCustomChannel(
      router_->addresses().front(), grpc::InsecureChannelCredentials(), MakeChannelArguments()));
  const v1::RouteResponse route = Route(RequestOf(kKeys, 'x'));
  EXPECT_TRUE(Await([&] { return Replica().requests == 0; }));
  EXPECT_FALSE(Report(route, v1::OUTCOME_PHASE_END));
}

// As a gateway is, whose prompts say in their scope whose they are.
TEST_F(OutcomeTest, ACallerOfSeveralTenantsReportsForEachAndNobodyElseDoes) {
  const Sha256BlockHasher hasher;
  const RoutePolicySet policies{PrefixCostOptions{}};
  const RouterCalls calls({.core = &router_->core(), .hasher = &hasher, .policies = &policies});
  const Caller gateway{.id = "gateway", .tenant = "acme", .tenants = {"acme", "beta"}};
  const Caller all{.id = "all", .tenant = "zeta", .all_tenants = true};
  const Caller stranger{.id = "stranger", .tenant = "other", .tenants = {"other"}};
  for (const Caller& caller : {gateway, all}) {
    v1::RouteRequest request;
    request.set_fingerprint(std::string(ScriptedFingerprint().view()));
    v1::Region* const region = request.mutable_prompt()->add_regions();
    region->mutable_scope()->set_tenant("beta");
    region->add_tokens(7);
    v1::RouteResponse route;
    ASSERT_TRUE(calls.Route(caller, request, &route).ok());
    v1::ReportOutcomeRequest report;
    report.set_booking(route.booking());
    report.set_router_incarnation(route.router_incarnation());
    report.set_phase(v1::OUTCOME_PHASE_END);
    v1::ReportOutcomeResponse response;
    ASSERT_TRUE(calls.ReportOutcome(stranger, report, &response).ok());
    EXPECT_FALSE(response.known());
    EXPECT_EQ(Replica().requests, 1u);
    ASSERT_TRUE(calls.ReportOutcome(caller, report, &response).ok());
    EXPECT_TRUE(response.known()) << caller.id;
    EXPECT_EQ(Replica().requests, 0u);
  }
}

}  // namespace
}  // namespace cairn::router
