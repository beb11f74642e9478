// The client of a router before a fake one: what it sends, what it repeats, what it refuses.
#include "client/cpp/router_client.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/rpc/error_reason.h"
#include "common/wire/limits.h"
#include "common/wire/route_limits.h"
#include "tests/client/cpp/fake_router.h"
#include "tests/client/cpp/fake_wait.h"
#include "tests/client/cpp/sample_blocks.h"
#include "tests/testing/seeded_random.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::SizeIs;

class RouterClientTest : public ::testing::Test {
 protected:
  RouterClientTest() : space_(testing::HandleOf(testing::SampleNamespace())) {
    RouterClientOptions options;
    options.target = router_.target();
    options.timeout = absl::Seconds(60);
    client_ =
        std::make_unique<RouterClient>(options, ClientParts{&hasher_, &clock_, &random_, &wait_});
  }

  Prompt MakePrompt(size_t tokens) {
    tokens_.assign(tokens, 7);
    const Region region{.scope = {"public", "", ""}, .tokens = tokens_, .external_ids = {}};
    return *Prompt::Make(hasher_, space_, {&region, 1});
  }

  testing::FakeClock clock_;
  testing::FakeWait wait_{&clock_};
  testing::SeededRandom random_{7};
  Sha256BlockHasher hasher_;
  const NamespaceHandle space_;
  testing::FakeRouter router_;
  std::unique_ptr<RouterClient> client_;
  std::vector<uint32_t> tokens_;
};

TEST_F(RouterClientTest, AnswerIsAsTheRouterRanked) {
  router_.AddReplica("127.0.0.1:1", v1::ROUTE_REASON_PREFIX);
  router_.AddReplica("127.0.0.1:2");
  const absl::StatusOr<RouteAnswer> answer = client_->Route(space_, MakePrompt(40));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->replicas, ElementsAre(Field(&RoutedReplica::worker_address, "worker-1"),
                                            Field(&RoutedReplica::worker_address, "worker-2")));
  EXPECT_EQ(answer->replicas[0].reason, v1::ROUTE_REASON_PREFIX);
  EXPECT_THAT(answer->replicas[0].node_addresses, ElementsAre("127.0.0.1:1"));
  EXPECT_EQ(answer->booking.router_incarnation.view(), std::string(16, 'I'));
}

TEST_F(RouterClientTest, SendsKeysAndTheLengthOfTheWholePrompt) {
  router_.AddReplica("127.0.0.1:1");
  ASSERT_TRUE(client_->Route(space_, MakePrompt(40), {.output_tokens = 9}).ok());
  const v1::RouteRequest request = router_.routes().front();
  EXPECT_EQ(request.fingerprint(), space_.fingerprint().view());
  EXPECT_THAT(request.prompt().keys(), SizeIs(2 * kKeyBytes));
  EXPECT_TRUE(request.prompt().regions().empty());
  EXPECT_EQ(request.prompt_tokens(), 40u);
  EXPECT_EQ(request.output_tokens(), 9u);
}

TEST_F(RouterClientTest, SendsWhatItIsToldBesideThePrompt) {
  router_.AddReplica("127.0.0.1:1");
  RouteOptions options;
  options.session_id = "chat-7";
  options.required_labels = {{"zone", "a"}};
  options.preferred_labels = {{{"gpu", "h200"}, 2.5}};
  options.excluded_workers = {"worker-2", "worker-3"};
  options.deadline = absl::Microseconds(1500);
  ASSERT_TRUE(client_->Route(space_, MakePrompt(40), options).ok());
  ASSERT_TRUE(client_->Route(space_, MakePrompt(40)).ok());
  const v1::RouteRequest request = router_.routes()[0];
  EXPECT_EQ(request.session_id(), "chat-7");
  ASSERT_EQ(request.required_labels_size(), 1);
  EXPECT_EQ(request.required_labels(0).key() + request.required_labels(0).value(), "zonea");
  ASSERT_EQ(request.preferred_labels_size(), 1);
  EXPECT_EQ(request.preferred_labels(0).label().value(), "h200");
  EXPECT_EQ(request.preferred_labels(0).seconds(), 2.5);
  EXPECT_THAT(request.excluded_workers(), ElementsAre("worker-2", "worker-3"));
  EXPECT_EQ(request.deadline_ms(), 2u) << "rounded up: 0 would be none";
  const v1::RouteRequest plain = router_.routes()[1];
  EXPECT_EQ(plain.session_id(), "");
  EXPECT_EQ(plain.deadline_ms(), 0u);
}

TEST_F(RouterClientTest, WhereAllAreExcludedItDoesNotAskAgain) {
  router_.AddReplica("127.0.0.1:1");
  router_.FailNextRoutes(
      WithReason(absl::UnavailableError("all 1 replicas are excluded"), kAllReplicasExcluded), 1);
  EXPECT_EQ(client_->Route(space_, MakePrompt(40)).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(router_.routes(), SizeIs(1));
}

TEST_F(RouterClientTest, SendsTokensWhenAskedToOrWithoutAFullBlock) {
  router_.AddReplica("127.0.0.1:1");
  ASSERT_TRUE(client_->Route(space_, MakePrompt(40), {.by_tokens = true}).ok());
  ASSERT_TRUE(client_->Route(space_, MakePrompt(5)).ok());
  const std::vector<v1::RouteRequest> requests = router_.routes();
  EXPECT_EQ(requests[0].prompt().regions(0).tokens_size(), 40);
  EXPECT_EQ(requests[1].prompt().regions(0).tokens_size(), 5);
  EXPECT_TRUE(requests[0].prompt().keys().empty());
}

TEST_F(RouterClientTest, PromptOfMoreTokensThanACallTakesGoesByKeysWhateverWasAsked) {
  router_.AddReplica("127.0.0.1:1");
  const Prompt prompt = MakePrompt(kTokensPerCallMax + 1);
  ASSERT_TRUE(client_->Route(space_, prompt, {.by_tokens = true}).ok());
  EXPECT_THAT(router_.routes()[0].prompt().keys(), SizeIs(prompt.block_count() * kKeyBytes));
}

TEST_F(RouterClientTest, PromptOfKeysLeavesItsLengthToTheRouter) {
  router_.AddReplica("127.0.0.1:1");
  ASSERT_TRUE(client_->Route(space_, Prompt::FromKeys(testing::SampleKeys(3))).ok());
  EXPECT_EQ(router_.routes()[0].prompt_tokens(), 0u);
}

TEST_F(RouterClientTest, RouterWithoutReplicasIsAskedAgainUnderTheSameId) {
  router_.AddReplica("127.0.0.1:1");
  router_.FailNextRoutes(absl::UnavailableError("no replica is known"), 2);
  ASSERT_TRUE(client_->Route(space_, MakePrompt(40)).ok());
  const std::vector<v1::RouteRequest> requests = router_.routes();
  ASSERT_THAT(requests, SizeIs(3));
  EXPECT_THAT(requests[0].request_id(), SizeIs(kRequestIdBytes));
  EXPECT_EQ(requests[0].SerializeAsString(), requests[2].SerializeAsString());
  EXPECT_THAT(wait_.waits(), SizeIs(2));
}

TEST_F(RouterClientTest, EachRouteHasAnIdOfItsOwn) {
  router_.AddReplica("127.0.0.1:1");
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(client_->Route(space_, MakePrompt(40)).ok());
  EXPECT_NE(router_.routes()[0].request_id(), router_.routes()[1].request_id());
}

TEST_F(RouterClientTest, OtherFailuresAreNotRepeated) {
  router_.FailNextRoutes(absl::ResourceExhaustedError("bookings"), 1);
  EXPECT_EQ(client_->Route(space_, MakePrompt(40)).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(router_.routes(), SizeIs(1));
}

TEST_F(RouterClientTest, RouterThatIsGoneIsUnavailableAfterBoundedAttempts) {
  router_.Stop();
  EXPECT_EQ(client_->Route(space_, MakePrompt(40)).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(wait_.waits(), SizeIs(RetryOptions().attempts_max - 1));
}

TEST_F(RouterClientTest, AnswerWithoutAReplicaBreaksTheContract) {
  EXPECT_EQ(client_->Route(space_, MakePrompt(40)).status().code(), absl::StatusCode::kInternal);
}

TEST_F(RouterClientTest, OutcomeSaysAllThatItWasGiven) {
  router_.AddReplica("127.0.0.1:1");
  const RouteAnswer answer = *client_->Route(space_, MakePrompt(40));
  EXPECT_TRUE(*client_->ReportOutcome({.booking = answer.booking,
                                       .phase = v1::OUTCOME_PHASE_FIRST_TOKEN,
                                       .worker_address = "worker-2",
                                       .cached_tokens = 16,
                                       .computed_tokens = 24,
                                       .compute = absl::Milliseconds(1500),
                                       .output_tokens = 8,
                                       .served_tokens = 7,
                                       .preemptions = 2,
                                       .refusals = 3}));
  const v1::ReportOutcomeRequest report = router_.outcomes().front();
  EXPECT_EQ(report.booking(), answer.booking.id.view());
  EXPECT_EQ(report.router_incarnation(), std::string(16, 'I'));
  EXPECT_EQ(report.phase(), v1::OUTCOME_PHASE_FIRST_TOKEN);
  EXPECT_EQ(report.worker_address(), "worker-2");
  EXPECT_EQ(report.cached_tokens(), 16u);
  EXPECT_EQ(report.computed_tokens(), 24u);
  EXPECT_DOUBLE_EQ(report.compute_seconds(), 1.5);
  EXPECT_EQ(report.output_tokens(), 8u);
  EXPECT_EQ(report.served_tokens(), 7u);
  EXPECT_EQ(report.preemptions(), 2u);
  EXPECT_EQ(report.refusals(), 3u);
}

TEST_F(RouterClientTest, ReplicasAreListed) {
  router_.AddReplica("127.0.0.1:1");
  const absl::StatusOr<ReplicaList> list = client_->ListReplicas();
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(list->replicas, ElementsAre(Field(&ReplicaEntry::worker_address, "worker-1")));
  EXPECT_EQ(list->replicas[0].state, v1::HOLDER_STATE_EXACT);
  EXPECT_FALSE(list->replicas[0].incarnation.has_value());
  EXPECT_TRUE(list->ready);
}

TEST_F(RouterClientTest, OptionsOutOfRangeAreNamed) {
  RouterClientOptions options;
  options.target.clear();
  EXPECT_THAT(std::string(ValidateRouterClientOptions(options).message()),
              ::testing::HasSubstr("target"));
  options = {};
  options.timeout = absl::ZeroDuration();
  EXPECT_THAT(std::string(ValidateRouterClientOptions(options).message()),
              ::testing::HasSubstr("timeout"));
  options = {};
  options.retry.attempts_max = 0;
  EXPECT_THAT(std::string(ValidateRouterClientOptions(options).message()),
              ::testing::HasSubstr("attempts_max"));
}

// Two routers alike; the one that the client asks first is chosen by chance.
class TwoRoutersTest : public RouterClientTest {
 protected:
  TwoRoutersTest() {
    for (testing::FakeRouter* router : {&router_, &other_}) router->AddReplica("127.0.0.1:1");
    client_ = NewClient();
  }
  std::unique_ptr<RouterClient> NewClient() {
    RouterClientOptions options;
    options.target = router_.target() + "," + other_.target();
    options.timeout = absl::Seconds(60);
    return std::make_unique<RouterClient>(options,
                                          ClientParts{&hasher_, &clock_, &random_, &wait_});
  }
  testing::FakeRouter& Asked() { return router_.routes().empty() ? other_ : router_; }
  testing::FakeRouter& NotAsked() { return router_.routes().empty() ? router_ : other_; }

  testing::FakeRouter other_;
};

TEST_F(TwoRoutersTest, OneIsAskedAsLongAsItAnswers) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(client_->Route(space_, MakePrompt(40)).ok());
  EXPECT_EQ(router_.routes().size() + other_.routes().size(), 5u);
  EXPECT_TRUE(router_.routes().empty() || other_.routes().empty());
}

TEST_F(TwoRoutersTest, ClientsSpreadOverThem) {
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(NewClient()->Route(space_, MakePrompt(40)).ok());
  EXPECT_GT(router_.routes().size(), 5u);
  EXPECT_GT(other_.routes().size(), 5u);
}

TEST_F(TwoRoutersTest, TheOtherAnswersAtOnceWhenOneIsGone) {
  ASSERT_TRUE(client_->Route(space_, MakePrompt(40)).ok());
  testing::FakeRouter& other = NotAsked();
  Asked().Stop();
  const absl::Time before = clock_.SteadyNow();
  ASSERT_TRUE(client_->Route(space_, MakePrompt(40)).ok());
  EXPECT_EQ(clock_.SteadyNow(), before) << "no wait in between";
  EXPECT_EQ(other.routes().size(), 1u);
  ASSERT_TRUE(client_->Route(space_, MakePrompt(40)).ok());
  EXPECT_EQ(other.routes().size(), 2u);
}

TEST_F(TwoRoutersTest, AReportGoesToWhoBookedItAndToTheOtherWhenThatIsGone) {
  const absl::StatusOr<RouteAnswer> answer = client_->Route(space_, MakePrompt(40));
  ASSERT_TRUE(answer.ok());
  testing::FakeRouter& booked = Asked();
  testing::FakeRouter& other = NotAsked();
  ASSERT_TRUE(client_->ReportOutcome({.booking = answer->booking}).ok());
  EXPECT_EQ(booked.outcomes().size(), 1u);
  booked.Stop();
  ASSERT_TRUE(client_->ReportOutcome({.booking = answer->booking}).ok());
  EXPECT_EQ(other.outcomes().size(), 1u);
}

TEST_F(TwoRoutersTest, AReportOfTheFirstStillGoesThereAfterTheClientMovedOn) {
  const absl::StatusOr<RouteAnswer> answer = client_->Route(space_, MakePrompt(40));
  ASSERT_TRUE(answer.ok());
  testing::FakeRouter& booked = Asked();
  testing::FakeRouter& other = NotAsked();
  other.SetIncarnation('J');
  booked.FailNextRoutes(absl::UnavailableError("overloaded"), 1);
  ASSERT_TRUE(client_->Route(space_, MakePrompt(40)).ok());
  ASSERT_EQ(other.routes().size(), 1u);
  ASSERT_TRUE(client_->ReportOutcome({.booking = answer->booking}).ok());
  EXPECT_EQ(booked.outcomes().size(), 1u);
  EXPECT_TRUE(other.outcomes().empty());
}

TEST_F(TwoRoutersTest, WhatARouterRefusesIsNotAskedOfTheOther) {
  ASSERT_TRUE(client_->Route(space_, MakePrompt(40)).ok());
  testing::FakeRouter& other = NotAsked();
  Asked().FailNextRoutes(absl::ResourceExhaustedError("too many bookings"), 1);
  EXPECT_TRUE(absl::IsResourceExhausted(client_->Route(space_, MakePrompt(40)).status()));
  EXPECT_TRUE(other.routes().empty());
}

// A port that takes connections and says nothing.
class SilentPort {
 public:
  SilentPort() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    CAIRN_CHECK(bind(socket_, name, size) == 0 && listen(socket_, 16) == 0);
    CAIRN_CHECK(getsockname(socket_, name, &size) == 0);
    target_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~SilentPort() { close(socket_); }
  const std::string& target() const { return target_; }

 private:
  const int socket_;
  std::string target_;
};

TEST_F(TwoRoutersTest, OneThatHangsCostsAQuarterOfTheDeadlineAndTheOtherGetsTheRest) {
  const SilentPort silent;
  RouterClientOptions options;
  options.target = silent.target() + "," + router_.target();
  constexpr absl::Duration kTimeout = absl::Seconds(2);
  options.timeout = kTimeout;
  // Chance says which one a client asks first.
  bool hung = false;
  for (int i = 0; i < 40 && !hung; ++i) {
    RouterClient client(options, ClientParts{&hasher_, &clock_, &random_, &wait_});
    const absl::Time start = absl::Now();
    ASSERT_TRUE(client.Route(space_, MakePrompt(40)).ok());
    hung = absl::Now() - start >= kTimeout / 4;
  }
  EXPECT_TRUE(hung);
  EXPECT_LE(router_.last_route_left(), kTimeout - kTimeout / 4);
}

TEST_F(TwoRoutersTest, ABadAddressInTheListIsNamed) {
  RouterClientOptions options;
  options.target = "127.0.0.1:7080,nowhere";
  EXPECT_THAT(std::string(ValidateRouterClientOptions(options).message()),
              ::testing::HasSubstr("nowhere"));
  options.target = "127.0.0.1:7080,";
  EXPECT_FALSE(ValidateRouterClientOptions(options).ok());
}

}  // namespace
}  // namespace cairn
