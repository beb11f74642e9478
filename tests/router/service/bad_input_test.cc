// What is wrong in a request, one thing at a time: the status, and that it names the field.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "cairn/v1/router.grpc.pb.h"
#include "common/rpc/channel_options.h"
#include "common/rpc/id_conversion.h"
#include "common/wire/limits.h"
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

  ScriptedNode node_{{.node_id = "node-a", .worker_address = "worker:a"}};
  std::unique_ptr<v1::Router::Stub> stub_;
};

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
  Check(&v1::Router::Stub::ReportOutcome, good,
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
            {"negative time", [](Request* r) { r->set_compute_seconds(-1); }, "compute_seconds"},
            {"no number", [](Request* r) { r->set_compute_seconds(std::nan("")); },
             "compute_seconds"},
            {"endless", [](Request* r) { r->set_compute_seconds(HUGE_VAL); }, "compute_seconds"},
        });
}

}  // namespace
}  // namespace cairn::router
