// Stories of holders that are added and removed while the router runs: what stays of one that went,
// what a place that is used again knows of its last one, and who gets something new.
#include <gmock/gmock.h>

#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/router/core/router_fixture.h"

namespace cairn::router {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class RouterMembersTest : public RouterFixture {
 protected:
  // A further node, with its feed in.
  HolderIndex Join(ModelHolder node) {
    const absl::StatusOr<HolderIndex> added = core_->AddHolder(node.identity().address);
    EXPECT_TRUE(added.ok()) << added.status();
    while (*added >= nodes_.size()) nodes_.push_back(node);
    nodes_[*added] = std::move(node);
    Connect(*added);
    return *added;
  }
  void Leave(HolderIndex holder) {
    core_->OnFeedBroken(holder);
    core_->RemoveHolder(holder);
  }
  std::vector<std::string> Workers() {
    std::vector<std::string> workers;
    for (const ReplicaStatus& replica : core_->ListReplicas()) {
      workers.push_back(replica.worker_address);
    }
    return workers;
  }
  ReplicaStatus StatusOf(const std::string& worker) {
    for (const ReplicaStatus& replica : core_->ListReplicas()) {
      if (replica.worker_address == worker) return replica;
    }
    ADD_FAILURE() << worker << " is not listed";
    return {};
  }
  const std::vector<HolderIndex> kFirstThree = {0, 1, 2};
};

TEST_F(RouterMembersTest, ANodeThatJoinsIsFollowedAndFound) {
  Start();
  const HolderIndex joined = Join(NodeAt(3));
  EXPECT_EQ(joined, 3);
  Put(joined, 0, 10);
  const RouteAnswer answer = Route(0, 10);
  EXPECT_EQ(FirstNode(answer), "node-3");
  EXPECT_THAT(answer.replicas, SizeIs(4));
  EXPECT_FALSE(core_->AddHolder("10.0.0.3:7000").ok()) << "it is followed";
}

TEST_F(RouterMembersTest, OneThatLeftHoldsNothingAndItsWorkerIsListedLastForAWhile) {
  Start();
  Put(0, 0, 10);
  Leave(0);
  EXPECT_THAT(core_->LookupPrefix("acme", kModel, NumberedKeys(0, 10)).holders, IsEmpty());
  const RouteAnswer answer = Route(0, 10);
  ASSERT_THAT(answer.replicas, SizeIs(3));
  EXPECT_EQ(answer.replicas[2].worker_address, "worker-0");
  EXPECT_EQ(answer.replicas[2].reason, RouteReason::kHolderOut);
  EXPECT_EQ(StatusOf("worker-0").node_id, "node-0");
  EXPECT_THAT(core_->HolderStates(), SizeIs(2));
  Pass(options_.departed_for - absl::Milliseconds(100), {1, 2});
  EXPECT_THAT(Workers(), SizeIs(3));
  Pass(absl::Milliseconds(200), {1, 2});
  EXPECT_THAT(Workers(), UnorderedElementsAre("worker-1", "worker-2"));
}

TEST_F(RouterMembersTest, TheLastKnownWorkersStayWhileNoHolderLives) {
  Start();
  for (const HolderIndex holder : kFirstThree) Leave(holder);
  Pass(2 * options_.departed_for, {});
  const RouteAnswer answer = Route(0, 10);
  EXPECT_THAT(answer.replicas, SizeIs(3));
  EXPECT_TRUE(answer.degraded);
  const HolderIndex back = Join(NodeAt(7));
  Pass(absl::Milliseconds(200), {back});
  EXPECT_THAT(Workers(), ElementsAre("worker-7"));
}

TEST_F(RouterMembersTest, APlaceThatIsUsedAgainKnowsNothingOfItsLastNode) {
  Start();
  Put(1, 0, 10);
  Leave(1);
  Pass(2 * options_.departed_for, {0, 2});
  const HolderIndex again = Join(
      ModelHolder({.node_id = "node-9", .address = "10.0.0.9:7000", .worker_address = "worker-9"}));
  EXPECT_EQ(again, 1);
  EXPECT_THAT(core_->LookupPrefix("acme", kModel, NumberedKeys(0, 10)).holders, IsEmpty());
  EXPECT_EQ(StatusOf("worker-9").blocks, 0u);
  EXPECT_EQ(Route(0, 10).replicas[0].matched.total(), 0u);
  Put(again, 0, 4);
  EXPECT_EQ(FirstNode(Route(0, 10)), "node-9");
}

TEST_F(RouterMembersTest, AnAddressThatAnotherNodeGotIsNotTakenForTheOldOne) {
  Start();
  Put(0, 0, 10);
  const RouteAnswer before = Route(0, 10);
  EXPECT_EQ(FirstNode(before), "node-0");
  Leave(0);
  // Another pod, with the same addresses for its node and its worker.
  ModelHolder other({.node_id = "node-9",
                     .address = "10.0.0.0:7000",
                     .worker_address = "worker-0",
                     .incarnation = 'z'});
  Join(other);
  EXPECT_EQ(StatusOf("worker-0").node_id, "node-9");
  EXPECT_EQ(StatusOf("worker-0").load, ReplicaLoad{}) << "that was another worker's";
  EXPECT_THAT(Workers(), SizeIs(3));
  EXPECT_EQ(Route(0, 10).replicas[0].matched.fed[kHostTier], 0u);
}

TEST_F(RouterMembersTest, WithoutAWordFromTheSourceTheHelloSaysThatAnotherNodeIsThere) {
  Start();
  Put(0, 0, 10);
  Route(0, 10);
  core_->OnFeedBroken(0);
  nodes_[0] = ModelHolder({.node_id = "node-9",
                           .address = "10.0.0.0:7000",
                           .worker_address = "worker-0",
                           .incarnation = 'z'});
  Connect(0);
  EXPECT_EQ(StatusOf("worker-0").node_id, "node-9");
  EXPECT_EQ(StatusOf("worker-0").load, ReplicaLoad{});
  EXPECT_THAT(core_->LookupPrefix("acme", kModel, NumberedKeys(0, 10)).holders, IsEmpty());
}

TEST_F(RouterMembersTest, ANodeThatComesBackElsewhereTakesItsReplicaWithIt) {
  Start();
  Route(0, 10);
  Leave(2);
  ModelHolder moved({.node_id = "node-2",
                     .address = "10.0.0.22:7000",
                     .worker_address = "worker-2",
                     .incarnation = 'z'});
  Join(std::move(moved));
  EXPECT_THAT(Workers(), UnorderedElementsAre("worker-0", "worker-1", "worker-2"));
  EXPECT_THAT(StatusOf("worker-2").node_addresses, ElementsAre("10.0.0.22:7000"));
  EXPECT_EQ(StatusOf("worker-2").state, HolderState::kExact);
}

TEST_F(RouterMembersTest, OneThatIsHeldBackGetsNothingNewAndComesBackWithARamp) {
  Start();
  EXPECT_TRUE(core_->Ready());
  Put(0, 0, 10);
  core_->HoldBack(0, true);
  const RouteAnswer answer = Route(0, 10);
  EXPECT_EQ(answer.replicas[2].node_id, "node-0");
  EXPECT_EQ(answer.replicas[2].reason, RouteReason::kHolderOut);
  EXPECT_EQ(StatusOf("worker-0").drain_state, v1::DRAIN_STATE_DRAINING);
  EXPECT_EQ(StatusOf("worker-1").drain_state, v1::DRAIN_STATE_SERVING);
  for (int i = 0; i < 40; ++i) Route(1000 + 100 * static_cast<uint32_t>(i), 50);
  Pass(absl::Minutes(2), kFirstThree);
  core_->HoldBack(0, false);
  const RouteAnswer back = Route(9000, 50);
  for (const RankedReplica& replica : back.replicas) {
    EXPECT_EQ(replica.terms.ramp_seconds > 0, replica.node_id == "node-0") << replica.node_id;
  }
  EXPECT_EQ(FirstNode(Route(0, 10)), "node-0");
}

TEST_F(RouterMembersTest, NotReadyBeforeTheFirstListAndItsSnapshots) {
  options_.holder_addresses.clear();
  options_.members_to_come = true;
  Make();
  EXPECT_FALSE(core_->Ready());
  core_->MembersKnown();
  EXPECT_FALSE(core_->Ready()) << "nobody is there";
  const HolderIndex joined = *core_->AddHolder(nodes_[0].identity().address);
  EXPECT_FALSE(core_->Ready());
  Connect(joined);
  EXPECT_TRUE(core_->Ready());
  EXPECT_FALSE(core_->Degraded());
}

TEST_F(RouterMembersTest, ReadyByWaitingIsDegradedUntilAllIsIn) {
  Make();
  Connect(0);
  Connect(1);
  Feed(2, {nodes_[2].Hello(), ModelHolder::Namespace(kModel, kBlockTokens)});
  EXPECT_FALSE(Route(0, 10).degraded) << "it is not ready, and says so";
  Pass(options_.ready_wait, kFirstThree);
  EXPECT_TRUE(core_->Ready());
  EXPECT_TRUE(core_->Degraded());
  EXPECT_TRUE(Route(0, 10).degraded);
  Feed(2, nodes_[2].Snapshots());
  EXPECT_FALSE(core_->Degraded());
  EXPECT_FALSE(Route(0, 10).degraded);
  core_->OnFeedBroken(2);
  EXPECT_FALSE(core_->Degraded()) << "it is over for good";
}

TEST_F(RouterMembersTest, WaitingForAListThatDoesNotComeIsDegradedToo) {
  options_.holder_addresses.clear();
  options_.members_to_come = true;
  Make();
  Pass(options_.ready_wait, {});
  EXPECT_TRUE(core_->Ready());
  EXPECT_TRUE(core_->Degraded());
}

// Addresses that come and go at random, with nodes behind them that claim each other's ids and
// workers, are held back, break and route: when all went and one plain node is there, nothing else
// is.
TEST_F(RouterMembersTest, NothingIsLeftOfAddressesThatCameAndWentAtRandom) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 dice(seed);
    const auto pick = [&dice](uint32_t below) { return static_cast<uint32_t>(dice() % below); };
    options_.holder_addresses.clear();
    Make();
    std::map<HolderIndex, ModelHolder> followed;
    for (int step = 0; step < 300; ++step) {
      auto some = followed.begin();
      if (!followed.empty()) std::advance(some, pick(static_cast<uint32_t>(followed.size())));
      const uint32_t what = pick(8);
      if (what < 2 || followed.empty()) {
        ModelHolder node({.node_id = absl::StrCat("node-", pick(6)),
                          .address = absl::StrCat("10.0.0.", pick(6), ":7000"),
                          .worker_address = absl::StrCat("worker-", pick(6)),
                          .incarnation = static_cast<char>('a' + pick(20))});
        const auto added = core_->AddHolder(node.identity().address);
        if (!added.ok()) continue;
        ASSERT_TRUE(followed.emplace(*added, node).second);
        std::vector<Message> messages = {node.Hello(),
                                         ModelHolder::Namespace(kModel, kBlockTokens)};
        for (Message& message : node.Snapshots()) messages.push_back(std::move(message));
        const auto keys = NumberedKeys(pick(40), 8);
        for (Message& message : node.Set(keys, kInHost, kModel, "acme")) {
          messages.push_back(std::move(message));
        }
        bool in = true;
        for (const Message& message : messages) in = in && core_->OnFeed(*added, message).ok();
        if (!in) core_->OnFeedBroken(*added);
      } else if (what == 2) {
        Leave(some->first);
        followed.erase(some);
      } else if (what == 3) {
        core_->OnFeedBroken(some->first);
      } else if (what == 4) {
        core_->HoldBack(some->first, pick(2) == 0);
      } else if (what == 5) {
        Pass(absl::Milliseconds(100 * pick(300)), {});
      } else {
        static_cast<void>(TryRoute(pick(40), 1 + pick(20)));
      }
    }
    for (const auto& [holder, node] : followed) Leave(holder);
    const HolderIndex last = Join(NodeAt(9));
    Pass(options_.booking.decode_ttl, {last});
    EXPECT_THAT(Workers(), ElementsAre("worker-9"));
    EXPECT_EQ(core_->counters().index_slots, 0u);
    EXPECT_EQ(core_->counters().speculative_marks, 0u);
    EXPECT_THAT(core_->HolderStates(), ElementsAre(HolderState::kExact));
    EXPECT_EQ(StatusOf("worker-9").load, ReplicaLoad{});
  }
}

// Every two seconds a pod is replaced, under a new address, for an hour: places are used again.
TEST_F(RouterMembersTest, ComingAndGoingForAnHourTakesNoMorePlacesThanAMinuteOfIt) {
  Start();
  HolderIndex current = 2;
  HolderIndex highest = 0;
  for (int round = 0; round < 1800; ++round) {
    Leave(current);
    current = Join(ModelHolder({.node_id = absl::StrCat("pod-", round),
                                .address = absl::StrCat("10.1.0.1:", 1000 + round),
                                .worker_address = absl::StrCat("10.1.0.1:", 30000 + round)}));
    highest = std::max(highest, current);
    Put(current, 0, 4);
    Pass(absl::Seconds(2), {0, 1, current});
  }
  EXPECT_LE(highest, 2 + options_.departed_for / absl::Seconds(2) + 1);
  EXPECT_LE(core_->ListReplicas().size(), 2 + options_.departed_for / absl::Seconds(2) + 1);
  Pass(absl::Minutes(3), {0, 1, current});
  EXPECT_EQ(core_->counters().index_slots, 4u);
  EXPECT_THAT(Workers(), SizeIs(3));
}

}  // namespace
}  // namespace cairn::router
