// Nodes that come, go, fall silent, drain, change their ids and name each other's workers, at
// random while requests are routed: whatever they did, once three plain nodes stand there again
// nothing of the churn is left in the router, neither as a replica nor as a block, a mark, load or
// memory.
#include <gmock/gmock.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "tests/router/core/router_fixture.h"

namespace cairn::router {
namespace {

constexpr uint32_t kSeeds = 30;
constexpr int kSteps = 400;

class MembershipChurnTest : public RouterFixture {
 protected:
  uint32_t Pick(uint32_t below) { return static_cast<uint32_t>(dice_() % below); }

  // The next run at that address, under any of a few ids and beside any of a few workers.
  void Appear(HolderIndex holder) {
    core_->OnFeedBroken(holder);
    streaming_[holder] = false;
    nodes_[holder] = ModelHolder({.node_id = absl::StrCat("node-", Pick(4)),
                                  .address = absl::StrCat("10.0.0.", holder, ":7000"),
                                  .worker_address = Pick(5) == 0 ? "" : absl::StrCat("w-", Pick(4)),
                                  .incarnation = static_cast<char>('a' + Pick(20)),
                                  .shards = 1 + Pick(5)});
    nodes_[holder].NewStream();
    Say(holder, {nodes_[holder].Hello(), ModelHolder::Namespace(kModel, kBlockTokens)});
    Say(holder, nodes_[holder].Snapshots());
  }
  // As a follower does: the first message that is refused ends the stream.
  void Say(HolderIndex holder, const std::vector<Message>& messages) {
    for (const Message& message : messages) {
      streaming_[holder] = core_->OnFeed(holder, message).ok();
      if (!streaming_[holder]) return core_->OnFeedBroken(holder);
    }
  }

  void Step() {
    const auto holder = static_cast<HolderIndex>(Pick(3));
    switch (Pick(8)) {
      case 0:
        return Appear(holder);
      case 1:
        streaming_[holder] = false;
        return core_->OnFeedBroken(holder);
      case 2:
        return Pass(absl::Milliseconds(100 * Pick(15)), {});
      case 3:
        if (!streaming_[holder]) return;
        return Say(holder, nodes_[holder].Set(NumberedKeys(Pick(40), 1 + Pick(8)),
                                              Pick(4) == 0 ? uint8_t{0} : kInHost, kModel, "acme"));
      case 4:
        if (!streaming_[holder]) return;
        return Say(holder, {nodes_[holder].Heartbeat(Pick(4) == 0 ? v1::DRAIN_STATE_DRAINING
                                                                  : v1::DRAIN_STATE_SERVING)});
      default:
        return Request();
    }
  }
  void Request() {
    const absl::StatusOr<RouteAnswer> answer = TryRoute(Pick(40), 1 + Pick(20));
    if (!answer.ok()) {
      EXPECT_TRUE(absl::IsUnavailable(answer.status())) << answer.status();
      return;
    }
    if (Pick(2) == 0) return;  // Never reported on.
    const std::string worker = Pick(3) == 0 ? absl::StrCat("w-", Pick(6)) : "";
    const auto phase = Pick(3) == 0 ? OutcomePhase::kFirstToken : OutcomePhase::kEnd;
    Report(*answer, phase, Pick(2) * kBlockTokens, worker);
  }

  std::mt19937 dice_;
  bool streaming_[3] = {false, false, false};
};

TEST_F(MembershipChurnTest, NothingIsLeftOfNodesThatWent) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    dice_.seed(seed);
    Make();
    for (bool& streaming : streaming_) streaming = false;
    for (int step = 0; step < kSteps; ++step) Step();

    for (HolderIndex holder = 0; holder < 3; ++holder) core_->OnFeedBroken(holder);
    for (HolderIndex holder = 0; holder < 3; ++holder) {
      nodes_[holder] = NodeAt(holder, 'Z');
      Connect(holder);
    }
    Pass(options_.booking.decode_ttl, {0, 1, 2});
    const std::vector<ReplicaStatus> replicas = core_->ListReplicas();
    ASSERT_EQ(replicas.size(), 3u);
    for (const ReplicaStatus& replica : replicas) {
      EXPECT_EQ(replica.worker_address.substr(0, 7), "worker-");
      EXPECT_EQ(replica.conflict, "");
      EXPECT_EQ(replica.state, HolderState::kExact);
      EXPECT_EQ(replica.blocks, 0u);
      EXPECT_EQ(replica.load, ReplicaLoad{});
    }
    const RouterCore::Counters counters = core_->counters();
    EXPECT_EQ(counters.index_slots, 0u);
    EXPECT_EQ(counters.speculative_marks, 0u);
    EXPECT_EQ(counters.bookings.booked, counters.bookings.ended + counters.bookings.expired);
    EXPECT_THAT(core_->LookupPrefix("acme", kModel, NumberedKeys(0, 40)).holders,
                ::testing::IsEmpty());
  }
}

}  // namespace
}  // namespace cairn::router
