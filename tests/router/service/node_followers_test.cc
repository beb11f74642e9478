// Lists of nodes by hand, real feeds of scripted nodes: who is followed, who gets something new,
// and what is left of those that went.
#include "router/service/node_followers.h"

#include <gmock/gmock.h>

#include "common/server/periodic_thread.h"
#include "router/policy/prefix_cost_policy.h"
#include "tests/router/service/router_fixture.h"

namespace cairn::router {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class NodeFollowersTest : public ::testing::Test {
 protected:
  NodeFollowersTest() {
    RouterOptions options;
    options.members_to_come = true;
    core_ = *RouterCore::Make(options, std::make_unique<PrefixCostPolicy>(PrefixCostOptions{}),
                              &clock_, &random_);
    followers_ = std::make_unique<NodeFollowers>(
        kNodesMax, FeedFollower::Options{},
        FeedFollower::Parts{core_.get(), &clock_, &random_, nullptr});
    ticker_.emplace("ticker", absl::Milliseconds(20), [this] { core_->Tick(); });
  }

  static Member At(const ScriptedNode& node, const std::string& identity = "",
                   MemberState state = MemberState::kServing) {
    return {node.target(), identity, state};
  }
  std::vector<std::string> Followed() {
    std::vector<std::string> addresses;
    for (const NodeFollowers::Entry& entry : followers_->Entries()) {
      addresses.push_back(entry.address);
    }
    return addresses;
  }
  bool AwaitExact(size_t count) {
    return Await([&] {
      const std::vector<HolderState> states = core_->HolderStates();
      return states == std::vector<HolderState>(count, HolderState::kExact);
    });
  }
  // Of a prompt that nobody has.
  std::string FirstWorker() {
    const auto answer = core_->Route({.caller = "c",
                                      .tenant = "public",
                                      .fingerprint = ScriptedFingerprint(),
                                      .keys = kKeys,
                                      .request_id = ""});
    return answer.ok() ? answer->replicas[0].worker_address
                       : std::string(answer.status().message());
  }
  size_t HoldersOfKeys() {
    return core_->LookupPrefix("public", ScriptedFingerprint(), kKeys).holders.size();
  }

  static constexpr size_t kNodesMax = 2;
  const std::vector<BlockKey> kKeys = NumberedKeys(1, 10);
  SystemClock clock_;
  SecureRandom random_;
  std::unique_ptr<RouterCore> core_;
  std::unique_ptr<NodeFollowers> followers_;
  std::optional<PeriodicThread> ticker_;
  ScriptedNode a_{{.node_id = "node-a", .worker_address = "worker:a", .incarnation = 'a'}};
  ScriptedNode b_{{.node_id = "node-b", .worker_address = "worker:b", .incarnation = 'b'}};
};

TEST_F(NodeFollowersTest, FollowsWhoIsListedAndForgetsWhoIsNot) {
  a_.Put(kKeys);
  followers_->Apply({{At(a_), At(b_)}});
  ASSERT_TRUE(AwaitExact(2));
  EXPECT_EQ(HoldersOfKeys(), 1u);
  followers_->Apply({{At(b_)}});
  EXPECT_THAT(Followed(), ElementsAre(b_.target()));
  EXPECT_EQ(HoldersOfKeys(), 0u) << "when Apply returns nothing of it is matched";
  EXPECT_THAT(core_->HolderStates(), SizeIs(1));
  followers_->Apply({{At(a_), At(b_)}});
  EXPECT_THAT(Followed(), ElementsAre(b_.target(), a_.target()));
  EXPECT_TRUE(AwaitExact(2));
  EXPECT_EQ(HoldersOfKeys(), 1u);
  EXPECT_EQ(a_.feeds(), 2);
  EXPECT_EQ(b_.feeds(), 1) << "those that stay are left alone";
  EXPECT_EQ(followers_->totals().joined, 3u);
  EXPECT_EQ(followers_->totals().left, 1u);
}

TEST_F(NodeFollowersTest, WhatLeavesOrIsNotReadyIsFollowedAndGetsNothingNew) {
  for (const MemberState state : {MemberState::kLeaving, MemberState::kNotReady}) {
    followers_->Apply({{At(a_), At(b_)}});
    ASSERT_TRUE(AwaitExact(2));
    followers_->Apply({{At(a_, "", state), At(b_)}});
    for (int i = 0; i < 20; ++i) EXPECT_EQ(FirstWorker(), "worker:b");
    EXPECT_TRUE(followers_->Entries()[0].held_back);
    EXPECT_THAT(core_->HolderStates(), SizeIs(2));
  }
  EXPECT_EQ(a_.feeds(), 1);
}

TEST_F(NodeFollowersTest, AnotherIdentityAtTheAddressIsAnotherNode) {
  a_.Put(kKeys);
  followers_->Apply({{At(a_)}});
  ASSERT_TRUE(AwaitExact(1));
  followers_->Apply({{At(a_, "uid-1")}});
  EXPECT_EQ(a_.feeds(), 1) << "the source learned who it is";
  followers_->Apply({{At(a_, "uid-2")}});
  EXPECT_EQ(followers_->totals().left, 1u);
  ASSERT_TRUE(AwaitExact(1));
  EXPECT_EQ(a_.feeds(), 2);
}

TEST_F(NodeFollowersTest, OverTheBoundTheFirstAreFollowedAndTheOthersCounted) {
  const ScriptedNode c({.node_id = "node-c", .worker_address = "worker:c", .incarnation = 'c'});
  followers_->Apply({{At(a_), At(b_), At(c)}});
  EXPECT_THAT(Followed(), ElementsAre(a_.target(), b_.target()));
  EXPECT_EQ(followers_->totals().over_bound, 1u);
  followers_->Apply({{At(b_), At(c)}});
  EXPECT_THAT(Followed(), ElementsAre(b_.target(), c.target()));
  EXPECT_EQ(followers_->totals().over_bound, 0u);
}

TEST_F(NodeFollowersTest, CountsOfThoseThatWentStay) {
  followers_->Apply({{At(a_)}});
  ASSERT_TRUE(AwaitExact(1));
  const uint64_t messages = followers_->totals().messages;
  EXPECT_GT(messages, 0u);
  followers_->Apply({});
  EXPECT_THAT(Followed(), IsEmpty());
  EXPECT_GE(followers_->totals().messages, messages);
}

}  // namespace
}  // namespace cairn::router
