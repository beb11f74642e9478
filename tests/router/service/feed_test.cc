// A router before scripted nodes that fall silent, lose records, cut their feeds, restart and claim
// each other's names.
#include <gmock/gmock.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "cairn/v1/router.grpc.pb.h"
#include "tests/router/service/router_fixture.h"

namespace cairn::router {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<BlockKey> kKeys = NumberedKeys(1, 40);

class FeedTest : public RouterTest {
 protected:
  ScriptedNode node_{{.node_id = "node-a", .worker_address = "worker:a"}};
};

TEST_F(FeedTest, BlocksThatANodeHasAreFoundAndThoseThatFollow) {
  node_.PutUnsaid(absl::MakeSpan(kKeys).first(30));
  StartRouter({node_.target()});
  EXPECT_TRUE(AwaitState(0, HolderState::kExact));
  EXPECT_EQ(BlocksMatched(kKeys), 30u);
  node_.Put(absl::MakeSpan(kKeys).subspan(30));
  EXPECT_TRUE(Await([&] { return BlocksMatched(kKeys) == 40; }));
  EXPECT_EQ(node_.resyncs(), 0u);
}

TEST_F(FeedTest, LostRecordsAreAskedForAgain) {
  StartRouter({node_.target()});
  ASSERT_TRUE(AwaitState(0, HolderState::kExact));
  node_.PutUnsaid(kKeys);
  EXPECT_TRUE(Await([&] { return BlocksMatched(kKeys) == 40; }));
  EXPECT_TRUE(AwaitState(0, HolderState::kExact));
  EXPECT_GT(node_.resyncs(), 0u);
  EXPECT_EQ(node_.feeds(), 1);
}

TEST_F(FeedTest, NodeThatTakesTheRouterForAWorkerIsNamedWithWhatToDo) {
  absl::Mutex mutex;
  std::vector<std::string> lines;
  const auto said = [&](absl::string_view what) {
    absl::MutexLock lock(&mutex);
    return std::count_if(lines.begin(), lines.end(),
                         [what](const std::string& line) { return absl::StrContains(line, what); });
  };
  node_.ShowPart();
  StartRouter(SmallConfig({node_.target()}), [&](absl::string_view line) {
    absl::MutexLock lock(&mutex);
    lines.emplace_back(line);
  });
  const auto partial = [&] {
    const std::string text = router_->metrics().Text();
    const std::string name = "\ncairn_router_partial_heartbeats_total ";
    return std::stoull(text.substr(text.find(name) + name.size()));
  };
  EXPECT_TRUE(Await([&] { return partial() >= 3; }));
  EXPECT_EQ(StateOf(0), HolderState::kRecovering);
  EXPECT_EQ(said("the role router"), 1) << "once a feed";
  client_ = nullptr;
  router_ = nullptr;  // Before what it logs to.
}

TEST_F(FeedTest, CutFeedIsOpenedAgainAndWhatWasHeldStands) {
  node_.PutUnsaid(kKeys);
  StartRouter({node_.target()});
  ASSERT_TRUE(AwaitState(0, HolderState::kExact));
  node_.HoldSnapshots(true);
  node_.Cut();
  EXPECT_TRUE(Await([&] { return node_.feeds() == 2; }));
  EXPECT_TRUE(AwaitState(0, HolderState::kRecovering));
  EXPECT_EQ(BlocksMatched(kKeys), 40u) << "the same run: what was held stands until it is replaced";
  node_.HoldSnapshots(false);
  EXPECT_TRUE(AwaitState(0, HolderState::kExact));
  EXPECT_EQ(BlocksMatched(kKeys), 40u);
}

TEST_F(FeedTest, SilentNodeIsDegradedThenOutAndComesBack) {
  node_.PutUnsaid(kKeys);
  StartRouter({node_.target()});
  ASSERT_TRUE(AwaitState(0, HolderState::kExact));
  node_.Silence(true);
  EXPECT_TRUE(AwaitState(0, HolderState::kDegraded));
  EXPECT_EQ(BlocksMatched(kKeys), 40u);
  EXPECT_TRUE(AwaitState(0, HolderState::kOut));
  EXPECT_EQ(BlocksMatched(kKeys), 0u);
  node_.Silence(false);
  EXPECT_TRUE(AwaitState(0, HolderState::kExact));
  EXPECT_EQ(BlocksMatched(kKeys), 40u);
  EXPECT_EQ(node_.feeds(), 1) << "a pause is no reason for a new feed";
}

TEST_F(FeedTest, FeedThatStaysSilentIsOpenedAnew) {
  RouterConfig config = SmallConfig({node_.target()});
  config.feed_silence = absl::Seconds(1);
  StartRouter(config);
  ASSERT_TRUE(AwaitState(0, HolderState::kExact));
  node_.Silence(true);
  EXPECT_TRUE(Await([&] { return node_.feeds() > 1; }));
  node_.Silence(false);
  EXPECT_TRUE(AwaitState(0, HolderState::kExact));
}

TEST_F(FeedTest, RestartedNodeHasWhatItSaysNowAndNothingElse) {
  node_.PutUnsaid(kKeys);
  StartRouter({node_.target()});
  ASSERT_TRUE(AwaitState(0, HolderState::kExact));
  node_.Restart('j');
  node_.PutUnsaid(absl::MakeSpan(kKeys).first(7));
  EXPECT_TRUE(AwaitState(0, HolderState::kExact));
  EXPECT_TRUE(Await([&] {
    const auto list = client_->ListReplicas();
    return list.ok() && list->replicas.front().incarnation->bytes[0] == 'j' &&
           list->replicas.front().state == v1::HOLDER_STATE_EXACT;
  }));
  EXPECT_EQ(BlocksMatched(kKeys), 7u);
  EXPECT_EQ(client_->ListReplicas()->replicas.front().blocks, 7u);
}

TEST_F(FeedTest, SecondNodeOfAnIdIsRefusedAndBothAddressesAreSaid) {
  ScriptedNode twin({.node_id = "node-a", .worker_address = "worker:b", .incarnation = 'k'});
  StartRouter({node_.target(), twin.target()});
  ASSERT_TRUE(Await(
      [&] { return StateOf(0) == HolderState::kExact || StateOf(1) == HolderState::kExact; }));
  const HolderIndex loser = StateOf(0) == HolderState::kExact ? 1 : 0;
  const auto both = AllOf(HasSubstr(node_.target()), HasSubstr(twin.target()));
  EXPECT_TRUE(Await([&] {
    const auto list = client_->ListReplicas();
    return list.ok() && !list->holders[loser].error.empty() &&
           ::testing::Value(list->holders[loser].error, both);
  })) << client_->ListReplicas()->holders[loser].error;
  EXPECT_EQ(StateOf(loser), HolderState::kOut);

  // The one that it lost to goes: its name is free.
  (loser == 0 ? twin : node_).Stop();
  EXPECT_TRUE(AwaitState(loser, HolderState::kExact));
}

TEST_F(FeedTest, RouterIsNotReadyBeforeTheSnapshotsAreIn) {
  node_.PutUnsaid(kKeys);
  node_.HoldSnapshots(true);
  RouterConfig config = SmallConfig({node_.target()});
  config.ready_wait = absl::Minutes(10);
  StartRouter(config);
  EXPECT_TRUE(AwaitState(0, HolderState::kRecovering));
  EXPECT_FALSE(client_->ListReplicas()->ready);
  EXPECT_FALSE(Serving("readiness"));
  EXPECT_FALSE(Serving("cairn.v1.Router"));
  EXPECT_TRUE(Serving("liveness"));
  node_.HoldSnapshots(false);
  EXPECT_TRUE(Await([&] { return Serving("readiness"); }));
  EXPECT_TRUE(Serving("cairn.v1.Router"));
  EXPECT_EQ(BlocksMatched(kKeys), 40u);
}

TEST_F(FeedTest, RouterIsReadyAfterTheWaitWhateverIsMissing) {
  node_.HoldSnapshots(true);
  RouterConfig config = SmallConfig({node_.target()});
  config.ready_wait = absl::Milliseconds(300);
  StartRouter(config);
  EXPECT_TRUE(Await([&] { return client_->ListReplicas()->ready; }));
  EXPECT_NE(StateOf(0), HolderState::kExact);
}

TEST_F(FeedTest, RouterWaitsForNoNodeThatIsNotThere) {
  const std::string gone = node_.target();
  node_.Stop();
  RouterConfig config = SmallConfig({gone});
  config.ready_wait = absl::Minutes(10);
  StartRouter(config);
  EXPECT_TRUE(Await([&] { return client_->ListReplicas()->ready; }));
  EXPECT_THAT(client_->ListReplicas()->holders.front().error, HasSubstr("connect"));
}

TEST_F(FeedTest, FeedThatBreaksTheContractIsEndedAndSaid) {
  ScriptedNode odd({.node_id = "", .worker_address = "worker:b"});
  StartRouter({odd.target()});
  EXPECT_TRUE(Await([&] { return !client_->ListReplicas()->holders.front().error.empty(); }));
  EXPECT_TRUE(Await([&] {
    return ::testing::Value(client_->ListReplicas()->holders.front().error, HasSubstr("node id"));
  }));
  EXPECT_EQ(StateOf(0), HolderState::kOut);
}

}  // namespace
}  // namespace cairn::router
