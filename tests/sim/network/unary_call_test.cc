// A client's call against a server that fails as often as it is told: what is asked again, and what
// is not.
#include "tests/sim/network/unary_call.h"

#include <gmock/gmock.h>

#include <deque>

#include "cairn/v1/cache_node.pb.h"
#include "tests/sim/network/unary_server.h"

namespace cairn::sim {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr HostId kClient = 1;
constexpr HostId kServer = 2;

class UnaryCallTest : public ::testing::Test, public Acceptor {
 protected:
  UnaryCallTest()
      : server_(
            &world_.network, [this](const UnaryServer::Request& request) { Answer(request); },
            [](StreamId) {}) {
    world_.weather.Calm();
    world_.network.Attach(kClient, "client", nullptr);
    world_.network.Attach(kServer, "server", this);
  }
  StreamEnd* Accept(StreamId stream, Method method, const Caller& caller) override {
    return server_.Accept(stream, method, caller);
  }
  void Answer(const UnaryServer::Request& request) {
    asked_.push_back(request.bytes);
    absl::Status status;
    if (!failures_.empty()) {
      status = failures_.front();
      failures_.pop_front();
    }
    v1::EndLeaseResponse response;
    response.set_complete(true);
    server_.Answer(request.stream, status, response);
  }
  // How the call ended.
  absl::Status Call(Method method) {
    std::optional<absl::Status> ended;
    const ClientSide side{&world_, kClient, Caller{.id = "me", .tenant = "acme"}, &dice_};
    UnaryCall call(side, kServer, method, "request", absl::Seconds(5),
                   [&](const absl::StatusOr<std::string>& answer) { ended = answer.status(); });
    while (!ended.has_value() && world_.scheduler.Step()) {
    }
    return ended.value_or(absl::InternalError("nothing more happens"));
  }

  World world_{1, WeatherOptions{}};
  Dice dice_{1, "test"};
  UnaryServer server_;
  std::deque<absl::Status> failures_;
  std::vector<std::string> asked_;
};

TEST_F(UnaryCallTest, EndsWithTheAnswer) {
  EXPECT_TRUE(Call(Method::kEndLease).ok());
  EXPECT_THAT(asked_, SizeIs(1));
}

TEST_F(UnaryCallTest, AsksAgainTheSameAfterUnavailable) {
  failures_ = {absl::UnavailableError(""), absl::UnavailableError("")};
  EXPECT_TRUE(Call(Method::kEndLease).ok());
  EXPECT_THAT(asked_, SizeIs(3));
  EXPECT_THAT(asked_, Each(std::string("request")));
}

TEST_F(UnaryCallTest, GivesUpAfterAFewAttempts) {
  failures_.assign(100, absl::UnavailableError(""));
  EXPECT_TRUE(absl::IsUnavailable(Call(Method::kEndLease)));
  EXPECT_THAT(asked_, SizeIs(UnaryCall::kAttemptsMax));
}

TEST_F(UnaryCallTest, TakesARefusalForTheAnswer) {
  failures_ = {absl::AbortedError("")};
  EXPECT_TRUE(absl::IsAborted(Call(Method::kEndLease)));
  EXPECT_THAT(asked_, SizeIs(1));
}

TEST_F(UnaryCallTest, WaitsForItsOwnRequestThatStillRuns) {
  failures_ = {absl::AbortedError("")};
  EXPECT_TRUE(Call(Method::kReserve).ok());
  EXPECT_THAT(asked_, SizeIs(2));
}

TEST_F(UnaryCallTest, EndsByItsTimeoutWhereNobodyAnswers) {
  world_.scheduler.Stall(kServer, world_.scheduler.Now() + absl::Hours(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(Call(Method::kEndLease)));
  EXPECT_THAT(asked_, IsEmpty());
}

}  // namespace
}  // namespace cairn::sim
