// Requests that all begin alike, or that find their prefix where it is busy: how far the busiest
// replica may be over the mean, with one router and with several that know nothing of each other.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "tests/router/core/router_fixture.h"

namespace cairn::router {
namespace {

constexpr uint32_t kSharedBlocks = 8;
constexpr uint32_t kOwnBlocks = 8;

class BalanceTest : public RouterFixture {
 protected:
  // The shared beginning, then blocks that no other request has.
  static absl::StatusOr<RouteAnswer> RouteNext(RouterCore* core, uint32_t request,
                                               const Fingerprint& model) {
    std::vector<BlockKey> keys = NumberedKeys(0, kSharedBlocks);
    for (const BlockKey& key : NumberedKeys(1000 + request * kOwnBlocks, kOwnBlocks)) {
      keys.push_back(key);
    }
    return core->Route({.caller = "caller",
                        .tenant = "acme",
                        .fingerprint = model,
                        .keys = keys,
                        .request_id = ""});
  }
  static double BusiestOverMean(const std::map<std::string, int>& requests_of, size_t replicas) {
    int sum = 0;
    int busiest = 0;
    for (const auto& [replica, requests] : requests_of) {
      sum += requests;
      busiest = std::max(busiest, requests);
    }
    return static_cast<double>(busiest) * static_cast<double>(replicas) / sum;
  }
};

TEST_F(BalanceTest, APrefixThatAllShareIsServedColdElsewhereBeforeItsHolderIsSwamped) {
  Start();
  Put(0, 0, kSharedBlocks);
  std::map<std::string, int> requests_of;
  for (uint32_t request = 0; request < 300; ++request) {
    ++requests_of[FirstNode(*RouteNext(core_.get(), request, kModel))];
  }
  EXPECT_EQ(requests_of.size(), 3u);
  EXPECT_LE(BusiestOverMean(requests_of, 3), 1.3);
}

TEST_F(BalanceTest, SeveralRoutersSpreadAsWellAsOne) {
  Start();
  Put(0, 0, kSharedBlocks);
  std::vector<std::unique_ptr<RouterCore>> routers;
  routers.push_back(std::move(core_));
  for (int i = 0; i < 3; ++i) {
    Start();
    routers.push_back(std::move(core_));
  }
  std::map<std::string, int> requests_of;
  for (uint32_t request = 0; request < 400; ++request) {
    RouterCore* const router = routers[request % routers.size()].get();
    ++requests_of[FirstNode(*RouteNext(router, request, kModel))];
  }
  EXPECT_EQ(requests_of.size(), 3u);
  EXPECT_LE(BusiestOverMean(requests_of, 3), 1.4);
}

TEST_F(BalanceTest, AMissGoesToTheIdleReplicaAndNotToTheOneThatIsStuck) {
  Start();
  // Heavy work that nobody else has, and none of it ends.
  for (uint32_t request = 0; request < 10; ++request) {
    Put(0, 5000 + request * 100, 1);
    EXPECT_TRUE(TryRoute(5000 + request * 100, 50).ok());
  }
  std::map<std::string, uint64_t> queued;
  for (const ReplicaStatus& replica : core_->ListReplicas()) {
    queued[replica.node_id] = replica.load.prefill_tokens;
  }
  const auto idlest = std::min_element(queued.begin(), queued.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
  EXPECT_EQ(queued[FirstNode(Route(9000, 2))], idlest->second);
}

}  // namespace
}  // namespace cairn::router
