// What is wrong in a request, one thing at a time: the status, and that it names the field.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "cairn/v1/router.grpc.pb.h"
#include "common/rpc/channel_options.h"
#include "common/rpc/id_conversion.h"
#include "common/wire/limits.h"
#include "common/wire/route_limits.h"
#include "tests/router/service/router_fixture.h"

namespace cairn::router {
namespace {

using ::testing::HasSubstr;

template <typename Request>
struct BadCase {
  std::string name;
  std::function<void(Request*)> bend;
  std::string says;
  grpc::StatusCode code = grpc::StatusCode::INVALID_ARGUMENT;
};

class BadInputTest : public RouterTest {
 protected:
  BadInputTest() {
    StartRouter({node_.target()});
    EXPECT_TRUE(AwaitState(0, HolderState::kExact));
    stub_ = v1::Router::NewStub(grpc::CreateCustomChannel(
        router_->addresses().front(), grpc::InsecureChannelCredentials(), MakeChannelArguments()));
  }

  template <typename Request, typename Response>
  void Check(grpc::Status (v1::Router::Stub::*method)(grpc::ClientContext*, const Request&,
                                                      Response*),
             const Request& good, const std::vector<BadCase<Request>>& cases) {
    const auto call = [&](const Request& request) {
      grpc::ClientContext context;
      Response response;
      return (stub_.get()->*method)(&context, request, &response);
    };
    const grpc::Status fine = call(good);
    EXPECT_TRUE(fine.ok()) << fine.error_message();
    for (const BadCase<Request>& bad : cases) {
      Request request = good;
      bad.bend(&request);
      const grpc::Status status = call(request);
      EXPECT_EQ(status.error_code(), bad.code) << bad.name << ": " << status.error_message();
      EXPECT_THAT(status.error_message(), HasSubstr(bad.says)) << bad.name;
    }
    EXPECT_TRUE(call(good).ok()) << "the router still serves";
  }

  ScriptedNode node_{{.node_id = "node-a",
                      .worker_address = "worker:a",
                      .labels = {{"zone", "a"}, {"gpu", "h200"}}}};
  std::unique_ptr<v1::Router::Stub> stub_;
};

void Require(const std::string& key, const std::string& value, v1::RouteRequest* request) {
  v1::Label* label = request->add_required_labels();
  label->set_key(key);
  label->set_value(value);
}

void Prefer(const std::string& key, const std::string& value, double seconds,
            v1::RouteRequest* request) {
  v1::PreferredLabel* preferred = request->add_preferred_labels();
  preferred->mutable_label()->set_key(key);
  preferred->mutable_label()->set_value(value);
  preferred->set_seconds(seconds);
}

void SetTokens(size_t count, v1::Prompt* prompt) {
  prompt->clear_keys();
  v1::Region* region = prompt->add_regions();
  region->mutable_scope()->set_tenant("public");
  for (size_t i = 0; i < count; ++i) region->add_tokens(static_cast<uint32_t>(i));
}

TEST_F(BadInputTest, Route) {
  v1::RouteRequest good;
  good.set_fingerprint(std::string(ScriptedFingerprint().view()));
  good.mutable_prompt()->set_keys(KeysToProto(NumberedKeys(1, 4)));
  using Request = v1::RouteRequest;
  Check(&v1::Router::Stub::Route, good,
        std::vector<BadCase<Request>>{
            {"no fingerprint", [](Request* r) { r->clear_fingerprint(); }, "fingerprint"},
            {"short fingerprint", [](Request* r) { r->set_fingerprint("x"); }, "fingerprint"},
            {"empty prompt", [](Request* r) { r->clear_prompt(); }, "prompt"},
            {"half a key", [](Request* r) { r->mutable_prompt()->mutable_keys()->pop_back(); },
             "keys"},
            {"too many keys",
             [](Request* r) {
               r->mutable_prompt()->set_keys(std::string((kKeysPerLookupMax + 1) * kKeyBytes, 'k'));
             },
             "keys", grpc::StatusCode::INVALID_ARGUMENT},
            {"keys and tokens",
             [](Request* r) {
               const std::string keys = r->prompt().keys();
               SetTokens(16, r->mutable_prompt());
               r->mutable_prompt()->set_keys(keys);
             },
             "prompt"},
            {"region without tokens", [](Request* r) { SetTokens(0, r->mutable_prompt()); },
             "regions"},
            {"tokens beyond the bound",
             [](Request* r) { SetTokens(kTokensPerCallMax + 1, r->mutable_prompt()); }, "tokens"},
            {"another tenant's tokens",
             [](Request* r) {
               SetTokens(16, r->mutable_prompt());
               r->mutable_prompt()->mutable_regions(0)->mutable_scope()->set_tenant("other");
             },
             "other", grpc::StatusCode::PERMISSION_DENIED},
            {"external ids in a namespace of tokens",
             [](Request* r) {
               SetTokens(16, r->mutable_prompt());
               r->mutable_prompt()->mutable_regions(0)->add_external_ids("id");
             },
             "prompt"},
            {"fewer tokens than the blocks", [](Request* r) { r->set_prompt_tokens(63); },
             "prompt_tokens"},
            {"fewer tokens than given",
             [](Request* r) {
               SetTokens(100, r->mutable_prompt());
               r->set_prompt_tokens(99);
             },
             "prompt_tokens"},
            {"too long", [](Request* r) { r->set_prompt_tokens(kPromptTokensMax + 1); },
             "prompt_tokens"},
            {"too long an answer", [](Request* r) { r->set_output_tokens(1u << 31); },
             "output_tokens"},
            {"odd request id", [](Request* r) { r->set_request_id("seven"); }, "request_id"},
        });
}

TEST_F(BadInputTest, RouteWishes) {
  v1::RouteRequest good;
  good.set_fingerprint(std::string(ScriptedFingerprint().view()));
  good.mutable_prompt()->set_keys(KeysToProto(NumberedKeys(1, 4)));
  good.set_session_id(std::string(kSessionIdBytesMax, '\xff'));
  Require("zone", "a", &good);
  Prefer("zone", "b", kPreferredLabelSecondsMax, &good);
  good.add_excluded_workers("worker:z");
  good.add_excluded_workers("worker:z");
  good.set_deadline_ms(kRouteDeadlineMsMax);
  using Request = v1::RouteRequest;
  const auto no_labels = [](Request* r) { r->clear_required_labels(); };
  Check(&v1::Router::Stub::Route, good,
        std::vector<BadCase<Request>>{
            {"long session",
             [](Request* r) { r->set_session_id(std::string(kSessionIdBytesMax + 1, 's')); },
             "session_id: 129 bytes, at most 128"},
            {"empty key", [](Request* r) { Require("", "a", r); }, "required_labels: label \"=a\""},
            {"empty value", [](Request* r) { Require("rack", "", r); }, "rack="},
            {"long key", [](Request* r) { Require(std::string(65, 'k'), "a", r); },
             "key of 65 bytes"},
            {"long value", [](Request* r) { Require("rack", std::string(1000, 'v'), r); },
             "value of 1000 bytes"},
            {"odd bytes", [](Request* r) { Require("rack", "a b", r); }, "letters, digits"},
            {"a key twice", [](Request* r) { Require("zone", "b", r); },
             "\"zone\" is given twice: zone=a and zone=b"},
            {"too many labels",
             [&](Request* r) {
               no_labels(r);
               for (int i = 0; i < 17; ++i) Require("k" + std::to_string(i), "v", r);
             },
             "required_labels: 17 labels, at most 16"},
            {"labels that nobody has", [](Request* r) { Require("rack", "7", r); },
             "no replica has zone=a and rack=7", grpc::StatusCode::FAILED_PRECONDITION},
            {"a preferred key twice", [](Request* r) { Prefer("zone", "c", 1, r); },
             "preferred_labels: label \"zone\""},
            {"no seconds", [](Request* r) { Prefer("gpu", "l4", 0, r); }, "gpu=l4 of 0 seconds"},
            {"negative seconds", [](Request* r) { Prefer("gpu", "l4", -1, r); }, "above 0"},
            {"too many seconds", [](Request* r) { Prefer("gpu", "l4", 60.5, r); }, "at most 60"},
            {"seconds that are none", [](Request* r) { Prefer("gpu", "l4", std::nan(""), r); },
             "preferred_labels"},
            {"a preferred label without one",
             [](Request* r) { r->add_preferred_labels()->set_seconds(1); }, "preferred_labels"},
            {"too many preferred",
             [](Request* r) {
               for (int i = 0; i < 16; ++i) Prefer("k" + std::to_string(i), "v", 1, r);
             },
             "preferred_labels: 17 labels, at most 16"},
            {"empty worker", [](Request* r) { r->add_excluded_workers(""); },
             "excluded_workers: an address of 0 bytes"},
            {"long worker", [](Request* r) { r->add_excluded_workers(std::string(257, 'w')); },
             "excluded_workers: an address of 257 bytes"},
            {"too many workers",
             [](Request* r) {
               for (int i = 0; i < 63; ++i) r->add_excluded_workers("w" + std::to_string(i));
             },
             "excluded_workers: 65 workers, at most 64"},
            {"nobody left", [](Request* r) { r->add_excluded_workers("worker:a"); },
             "all 1 replicas", grpc::StatusCode::UNAVAILABLE},
            {"late deadline", [](Request* r) { r->set_deadline_ms(kRouteDeadlineMsMax + 1); },
             "deadline_ms: 3600001, at most 3600000"},
        });
  EXPECT_EQ(router_->core().counters().bookings.booked, 2u) << "the good ones";
}

TEST_F(BadInputTest, LookupPrefix) {
  v1::LookupPrefixRequest good;
  good.set_fingerprint(std::string(ScriptedFingerprint().view()));
  SetTokens(40, good.mutable_prompt());
  using Request = v1::LookupPrefixRequest;
  Check(&v1::Router::Stub::LookupPrefix, good,
        std::vector<BadCase<Request>>{
            {"no fingerprint", [](Request* r) { r->clear_fingerprint(); }, "fingerprint"},
            {"empty prompt", [](Request* r) { r->clear_prompt(); }, "prompt"},
            {"another tenant",
             [](Request* r) {
               r->mutable_prompt()->mutable_regions(0)->mutable_scope()->set_tenant("other");
             },
             "other", grpc::StatusCode::PERMISSION_DENIED},
        });
}

TEST_F(BadInputTest, ReportOutcome) {
  v1::ReportOutcomeRequest good;
  good.set_booking(std::string(16, 'b'));
  good.set_router_incarnation(std::string(16, 'i'));
  good.set_phase(v1::OUTCOME_PHASE_END);
  using Request = v1::ReportOutcomeRequest;
  Check(
      &v1::Router::Stub::ReportOutcome, good,
      std::vector<BadCase<Request>>{
          {"no booking", [](Request* r) { r->clear_booking(); }, "booking"},
          {"no incarnation", [](Request* r) { r->clear_router_incarnation(); },
           "router_incarnation"},
          {"no phase", [](Request* r) { r->clear_phase(); }, "phase"},
          {"a phase to come", [](Request* r) { r->set_phase(static_cast<v1::OutcomePhase>(7)); },
           "phase: 7"},
          {"long worker", [](Request* r) { r->set_worker_address(std::string(300, 'w')); },
           "worker_address"},
          {"too many cached", [](Request* r) { r->set_cached_tokens(uint64_t{1} << 40); },
           "cached_tokens"},
          {"too many computed", [](Request* r) { r->set_computed_tokens(uint64_t{1} << 63); },
           "computed_tokens"},
          {"too many generated", [](Request* r) { r->set_output_tokens(uint64_t{1} << 40); },
           "output_tokens"},
          {"more served than generated", [](Request* r) { r->set_served_tokens(1); },
           "served_tokens: 1"},
          {"too many preemptions", [](Request* r) { r->set_preemptions(1u << 31); }, "preemptions"},
          {"too many refusals", [](Request* r) { r->set_refusals(1u << 31); }, "refusals"},
          {"negative time", [](Request* r) { r->set_compute_seconds(-1); }, "compute_seconds"},
          {"no number", [](Request* r) { r->set_compute_seconds(std::nan("")); },
           "compute_seconds"},
          {"endless", [](Request* r) { r->set_compute_seconds(HUGE_VAL); }, "compute_seconds"},
      });
}

}  // namespace
}  // namespace cairn::router
