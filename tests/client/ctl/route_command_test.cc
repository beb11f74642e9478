// cairnctl route against the client's fake router: what it asks, what it prints, what it refuses.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "client/ctl/command.h"
#include "common/rpc/error_reason.h"
#include "common/wire/route_limits.h"
#include "tests/client/cpp/fake_router.h"

namespace cairn::ctl {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Json = nlohmann::json;

class RouteCommandTest : public ::testing::Test {
 protected:
  RouteCommandTest() {
    router_.AddReplica("127.0.0.1:1", v1::ROUTE_REASON_PREFIX);
    router_.AddReplica("127.0.0.1:2");
  }
  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"route", "--router", router_.target()});
    std::istringstream in;
    std::ostringstream out;
    std::ostringstream err;
    const int code = RunCairnctl(arguments, {&in, &out}, &err);
    out_ = out.str();
    err_ = err.str();
    return code;
  }

  testing::FakeRouter router_;
  std::string out_;
  std::string err_;
};

TEST_F(RouteCommandTest, PrintsTheReplicasWithTheirTermsAndEndsTheBooking) {
  ASSERT_EQ(Run({"--output", "json"}), 0) << err_;
  const Json answer = Json::parse(out_);
  ASSERT_THAT(answer["replicas"], SizeIs(2));
  EXPECT_EQ(answer["replicas"][0]["worker"], "worker-1");
  EXPECT_EQ(answer["replicas"][0]["reason"], "ROUTE_REASON_PREFIX");
  for (const char* term : {"score", "queued_seconds", "compute_seconds", "fetch_seconds",
                           "expected_ttft_seconds", "trust"}) {
    EXPECT_TRUE(answer["replicas"][1].contains(term)) << term;
  }
  const std::vector<v1::ReportOutcomeRequest> outcomes = router_.outcomes();
  ASSERT_THAT(outcomes, SizeIs(1));
  EXPECT_EQ(outcomes[0].phase(), v1::OUTCOME_PHASE_END);
}

TEST_F(RouteCommandTest, ThePersonIsToldWhatPutTheFirstOneBeforeTheOthers) {
  ASSERT_EQ(Run({}), 0) << err_;
  EXPECT_THAT(out_, ContainsRegex("\nworker-1 +node-1 +PREFIX .*\nworker-2 +node-2 +LOAD "));
  EXPECT_THAT(out_, HasSubstr("\nfirst: by its score, with a part of the prompt"));
  EXPECT_THAT(out_, Not(HasSubstr("degraded")));
}

TEST_F(RouteCommandTest, AsksForWhatItWasTold) {
  ASSERT_EQ(Run({"--policy", "preble", "--session", "chat", "--require", "zone=a,gpu=h200",
                 "--prefer", "rack=7", "--prefer-seconds", "2.5", "--exclude", "w:1,w:2",
                 "--deadline-ms", "800", "--output-tokens", "50", "--tokens", "0..99"}),
            0)
      << err_;
  const v1::RouteRequest asked = router_.routes().front();
  EXPECT_EQ(asked.policy(), "preble");
  EXPECT_EQ(asked.session_id(), "chat");
  ASSERT_EQ(asked.required_labels_size(), 2);
  EXPECT_EQ(asked.required_labels(1).value(), "h200");
  ASSERT_EQ(asked.preferred_labels_size(), 1);
  EXPECT_EQ(asked.preferred_labels(0).seconds(), 2.5);
  EXPECT_THAT(asked.excluded_workers(), ElementsAre("w:1", "w:2"));
  EXPECT_EQ(asked.deadline_ms(), 800u);
  EXPECT_EQ(asked.output_tokens(), 50u);
  EXPECT_EQ(asked.prompt_tokens(), 100u);
}

TEST_F(RouteCommandTest, WhatMakesNoSenseEndsWith2AndAsksNobody) {
  const struct {
    std::vector<std::string> arguments;
    std::string says;
  } cases[] = {
      {{"--require", "zone"}, "--require: label \"zone\": must be key=value"},
      {{"--prefer", "zone=a,zone=b"}, "--prefer: label \"zone\" is given twice"},
      {{"--prefer-seconds", "0"}, "--prefer-seconds: '0'"},
      {{"--prefer-seconds", "61"}, "--prefer-seconds: '61'"},
      {{"--deadline-ms", "soon"}, "--deadline-ms: 'soon'"},
      {{"--output-tokens", "-1"}, "--output-tokens: '-1'"},
      {{"--tokens", "x"}, "--tokens: 'x'"},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(Run(one.arguments), 2) << one.says;
    EXPECT_THAT(err_, HasSubstr(one.says));
    EXPECT_THAT(out_, IsEmpty());
  }
  EXPECT_THAT(router_.routes(), IsEmpty());
}

TEST_F(RouteCommandTest, WhatTheRouterRefusesEndsWith1WithoutAdviceAboutNodes) {
  router_.FailNextRoutes(absl::FailedPreconditionError("no replica has zone=x"), 1);
  EXPECT_EQ(Run({"--require", "zone=x"}), 1);
  EXPECT_THAT(err_, HasSubstr("no replica has zone=x"));
  EXPECT_THAT(err_, Not(HasSubstr("register")));
  router_.FailNextRoutes(
      WithReason(absl::UnavailableError("all 2 replicas are excluded"), kAllReplicasExcluded), 1);
  EXPECT_EQ(Run({"--exclude", "worker-1,worker-2"}), 1);
  EXPECT_THAT(err_, HasSubstr("all 2 replicas are excluded"));
  EXPECT_THAT(err_, Not(HasSubstr("listening")));
  router_.Stop();
  EXPECT_EQ(Run({}), 1);
  EXPECT_THAT(err_, HasSubstr("Is a router listening there?"));
  EXPECT_THAT(err_, Not(HasSubstr("--node asks")));
}

}  // namespace
}  // namespace cairn::ctl
