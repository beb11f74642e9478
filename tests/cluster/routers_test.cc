// Several routers over the same nodes, each on its own: what a new one says before it knows all,
// what a node that drains gets from each, and what a router's own standing still does to what it
// knows.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/cluster/checked_payload.h"
#include "tests/cluster/cluster_fixture.h"
#include "tests/cluster/feed_proxy.h"
#include "tests/cluster/numbered_prompt.h"
#include "tests/cluster/test_client.h"

namespace cairn::testing {
namespace {

// The contract's bound: nothing new for a node that drains.
constexpr absl::Duration kDrainBound = absl::Seconds(2);
constexpr uint64_t kPrompts = 60;

// A second router, with a client.
class OtherRouter {
 public:
  explicit OtherRouter(std::vector<std::string> flags, bool await_ready = true) {
    absl::StatusOr<std::unique_ptr<ServerProcess>> process =
        ServerProcess::Start({.program = absl::StrCat(CAIRN_BIN_DIR, "/cairn-router"),
                              .flags = std::move(flags),
                              .await_ready = await_ready});
    EXPECT_TRUE(process.ok()) << process.status();
    process_ = *std::move(process);
    RouterClientOptions options;
    options.target = process_->address();
    client_ = std::make_unique<RouterClient>(options, parts_.parts());
  }

  ServerProcess& process() { return *process_; }
  RouterClient& client() { return *client_; }
  ReplicaList List() { return *client_->ListReplicas(); }
  bool AwaitList(absl::FunctionRef<bool(const ReplicaList&)> condition) {
    for (const absl::Time end = absl::Now() + absl::Seconds(30); absl::Now() < end;) {
      if (condition(List())) return true;
      if (process_->process().WaitExit(absl::Milliseconds(5))) return false;
    }
    ADD_FAILURE() << ToString(List());
    return false;
  }

 private:
  SystemClientParts parts_;
  std::unique_ptr<ServerProcess> process_;
  std::unique_ptr<RouterClient> client_;
};

class RoutersTest : public ClusterTest {
 protected:
  void SetUp() override {
    for (const replay::TraceRequest& request : Generate(1, kPrompts)) {
      prompts_.push_back(KeysOf(request));
    }
  }
  // Of each prompt, who is to take it; none is reported on.
  std::vector<std::string> FirstNodes(RouterClient* client) {
    std::vector<std::string> nodes;
    for (const Prompt& prompt : prompts_) {
      const absl::StatusOr<RouteAnswer> answer = client->Route(name_space_, prompt, {});
      EXPECT_TRUE(answer.ok()) << answer.status();
      if (answer.ok()) nodes.push_back(answer->replicas[0].node_id);
    }
    return nodes;
  }
  static size_t CountOf(const std::string& id, const std::vector<std::string>& ids) {
    return static_cast<size_t>(std::count(ids.begin(), ids.end(), id));
  }

  const NamespaceHandle name_space_ = SmallBlocksNamespace();
  std::vector<Prompt> prompts_;
};

TEST_F(RoutersTest, ANewOneWithoutASnapshotIsNotReadyThenDegradedThenWhole) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(2));
  ASSERT_NO_FATAL_FAILURE(StartRouter(NodeAddresses()));
  FeedProxy held(node(1).address());
  held.Hold(true);
  OtherRouter late(
      {absl::StrCat("--nodes=", node(0).address(), ",", held.address()), "--ready-wait-ms=3000"},
      /*await_ready=*/false);
  ASSERT_TRUE(late.AwaitList([](const ReplicaList& list) {
    return list.holders.size() == 2 && list.holders[0].state == v1::HOLDER_STATE_EXACT;
  }));
  EXPECT_FALSE(late.List().ready);
  EXPECT_FALSE(late.process().IsReady());
  ASSERT_TRUE(late.process().AwaitReady(absl::Now() + kSoon).ok());
  EXPECT_TRUE(late.List().degraded);
  const absl::StatusOr<RouteAnswer> answer = late.client().Route(name_space_, prompts_[0], {});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->degraded);
  EXPECT_TRUE(late.AwaitList(
      [&](const ReplicaList&) { return absl::StrContains(late.process().Log(), "DEGRADED"); }));
  held.Hold(false);
  EXPECT_TRUE(late.AwaitList([](const ReplicaList& list) { return !list.degraded; }));
  EXPECT_FALSE(List().degraded) << "the other one was never";
}

TEST_F(RoutersTest, ANodeThatDrainsGetsNothingNewFromAnyOfThem) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(3, {"--drain-grace-ms=60000"}));
  ASSERT_NO_FATAL_FAILURE(StartRouter(NodeAddresses(), {"--ramp-ms=0"}));
  OtherRouter second(
      {absl::StrCat("--nodes=", node(0).address(), ",", node(1).address(), ",", node(2).address()),
       "--ramp-ms=0"});
  const auto are_exact = [](const ReplicaList& list) {
    return std::all_of(list.holders.begin(), list.holders.end(), [](const HolderEntry& holder) {
      return holder.state == v1::HOLDER_STATE_EXACT;
    });
  };
  ASSERT_TRUE(AwaitList(are_exact));
  ASSERT_TRUE(second.AwaitList(are_exact));
  EXPECT_GT(CountOf("node-1", FirstNodes(&router_client())), 0u);
  EXPECT_GT(CountOf("node-1", FirstNodes(&second.client())), 0u);

  // A reader keeps it alive while it drains.
  TestClient client(node(0).address(), nullptr);
  ASSERT_TRUE(client->RegisterNamespace(name_space_.name(), name_space_.fields()).ok());
  const NumberedPrompt prompt(*client, name_space_, 1, 2);
  ASSERT_TRUE(PutPrompt(*client, name_space_, prompt.prompt()).ok());
  LookupOptions lookup;
  lookup.lease_readers = 1;
  lookup.lease_ttl = absl::Seconds(60);
  const auto leased = client->Lookup(name_space_, {&prompt.prompt(), 1}, lookup);
  ASSERT_TRUE(leased.ok() && leased->lease.has_value()) << leased.status();
  const absl::Time told_at = absl::Now();
  ASSERT_EQ(node(0).Terminate(absl::ZeroDuration()), std::nullopt);
  const auto drains = [](const ReplicaList& list) {
    return ReplicaOf(list, "node-1").drain_state == v1::DRAIN_STATE_DRAINING;
  };
  ASSERT_TRUE(AwaitList(drains));
  ASSERT_TRUE(second.AwaitList(drains));
  EXPECT_LT(absl::Now() - told_at, kDrainBound);
  EXPECT_EQ(CountOf("node-1", FirstNodes(&router_client())), 0u);
  EXPECT_EQ(CountOf("node-1", FirstNodes(&second.client())), 0u);
  EXPECT_EQ(ReplicaOf(List(), "node-1").state, v1::HOLDER_STATE_EXACT) << "it still serves reads";
}

TEST_F(RoutersTest, ARouterThatStoodStillTakesNobodyForDeadAndNoBookingForOver) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(3));
  ASSERT_NO_FATAL_FAILURE(StartRouter(NodeAddresses(), {"--prefill-ttl-ms=2000"}));
  ASSERT_TRUE(AwaitExact());
  std::vector<RouteBooking> bookings;
  for (const Prompt& prompt : prompts_) {
    bookings.push_back(router_client().Route(name_space_, prompt, {})->booking);
  }
  router().Stop();
  // Longer than any silence that takes a node out, and than a booking lives.
  EXPECT_EQ(router().process().WaitExit(absl::Seconds(5)), std::nullopt);
  router().Continue();
  const ReplicaList first = List();
  for (const HolderEntry& holder : first.holders) {
    EXPECT_EQ(holder.state, v1::HOLDER_STATE_EXACT) << ToString(first);
  }
  uint64_t requests = 0;
  for (const ReplicaEntry& replica : first.replicas) requests += replica.requests;
  EXPECT_EQ(requests, prompts_.size());
  for (const RouteBooking& booking : bookings) {
    const auto known = router_client().ReportOutcome({.booking = booking});
    ASSERT_TRUE(known.ok()) << known.status();
    EXPECT_TRUE(*known);
  }
}

TEST_F(RoutersTest, EachKnowsAllAndItsBookingsAreItsOwn) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(2));
  ASSERT_NO_FATAL_FAILURE(StartRouter(NodeAddresses()));
  OtherRouter second({absl::StrCat("--nodes=", node(0).address(), ",", node(1).address())});
  const absl::StatusOr<RouteAnswer> answer = router_client().Route(name_space_, prompts_[0], {});
  ASSERT_TRUE(answer.ok()) << answer.status();
  const auto elsewhere = second.client().ReportOutcome({.booking = answer->booking});
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  EXPECT_FALSE(*elsewhere) << "it is counted, and no more";
  second.process().Kill9();
  const auto here = router_client().ReportOutcome({.booking = answer->booking});
  ASSERT_TRUE(here.ok()) << here.status();
  EXPECT_TRUE(*here);
}

}  // namespace
}  // namespace cairn::testing
