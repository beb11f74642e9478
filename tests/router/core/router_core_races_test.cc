// Feeds, routes, reports and ticks from several threads at once: nothing may race (run under the
// thread sanitizer), and at the end nothing is booked.
#include <gmock/gmock.h>

#include <thread>

#include "router/core/router_core.h"
#include "router/policy/prefix_cost_policy.h"
#include "tests/router/model_holder.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/seeded_random.h"

namespace cairn::router {
namespace {

const Fingerprint kModel = NumberedFingerprint(1);
constexpr uint32_t kRounds = 200;

void FeedAll(RouterCore* core, HolderIndex holder) {
  ModelHolder node({.node_id = "node-" + std::to_string(holder),
                    .worker_address = "worker-" + std::to_string(holder)});
  EXPECT_TRUE(core->OnFeed(holder, node.Hello()).ok());
  EXPECT_TRUE(core->OnFeed(holder, ModelHolder::Namespace(kModel, 16)).ok());
  for (const auto& message : node.Snapshots()) EXPECT_TRUE(core->OnFeed(holder, message).ok());
  for (uint32_t round = 0; round < kRounds; ++round) {
    const auto keys = NumberedKeys(round % 16, 8);
    const auto tiers = static_cast<uint8_t>(round % 3 == 0 ? 0 : kInHost);
    for (const auto& message : node.Set(keys, tiers, kModel, "acme")) {
      EXPECT_TRUE(core->OnFeed(holder, message).ok());
    }
    EXPECT_TRUE(core->OnFeed(holder, node.Heartbeat()).ok());
  }
}

void RouteAndReport(RouterCore* core) {
  const auto keys = NumberedKeys(0, 24);
  for (uint32_t round = 0; round < kRounds; ++round) {
    const auto answer = core->Route({.caller = "caller",
                                     .tenant = "acme",
                                     .fingerprint = kModel,
                                     .keys = keys,
                                     .prompt_tokens = 500,
                                     .request_id = ""});
    core->LookupPrefix("acme", kModel, keys);
    core->ListReplicas();
    core->Ready();
    if (!answer.ok()) continue;  // Before the first hello.
    const auto known = core->ReportOutcome({.booking = answer->booking,
                                            .router_incarnation = core->incarnation(),
                                            .worker_address = "",
                                            .cached_tokens = 16});
    EXPECT_TRUE(known.ok() && *known);
  }
}

TEST(RouterCoreRacesTest, CallsFromManyThreadsDoNotRace) {
  testing::FakeClock clock;
  testing::SeededRandom random(2);
  RouterOptions options;
  options.holder_addresses = {"a:1", "b:1"};
  auto core = RouterCore::Make(options, std::make_unique<PrefixCostPolicy>(PrefixCostOptions{}),
                               &clock, &random);
  ASSERT_TRUE(core.ok());
  std::vector<std::thread> threads;
  for (HolderIndex holder = 0; holder < 2; ++holder) {
    threads.emplace_back(FeedAll, core->get(), holder);
    threads.emplace_back(RouteAndReport, core->get());
  }
  for (uint32_t round = 0; round < kRounds; ++round) {
    clock.Advance(absl::Milliseconds(1));
    (*core)->Tick();
  }
  for (std::thread& thread : threads) thread.join();
  for (const ReplicaStatus& replica : (*core)->ListReplicas()) {
    EXPECT_EQ(replica.load.requests, 0u);
    EXPECT_EQ(replica.state, HolderState::kExact);
  }
}

}  // namespace
}  // namespace cairn::router
