// Method: one wrong value at a time, and what the message says of it.
#include "router/service/router_config.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <functional>

#include "router/core/router_core.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/seeded_random.h"

namespace cairn::router {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

RouterConfig GoodConfig() {
  RouterConfig config;
  config.security.insecure = true;
  config.nodes = {"127.0.0.1:7070", "node-b.example:7070"};
  return config;
}

TEST(RouterConfig, DefaultsWithNodesAreFineAndTheCoreTakesThem) {
  EXPECT_TRUE(GoodConfig().Validate().ok()) << GoodConfig().Validate();
  const testing::FakeClock clock;
  testing::SeededRandom random(1);
  EXPECT_TRUE(RouterCore::Make(GoodConfig().CoreOptions(),
                               std::make_unique<PrefixCostPolicy>(GoodConfig().PolicyOptions()),
                               &clock, &random)
                  .ok());
}

struct Case {
  std::function<void(RouterConfig*)> bend;
  std::string flag;
  std::string value;
};

void ExpectEachIsNamed(const std::vector<Case>& cases) {
  for (const Case& bad : cases) {
    RouterConfig config = GoodConfig();
    bad.bend(&config);
    const absl::Status status = config.Validate();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.flag;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(bad.flag), HasSubstr(bad.value)));
  }
}

TEST(RouterConfig, EachWrongValueIsNamedWithItsFlag) {
  ExpectEachIsNamed({
      {[](RouterConfig* c) { c->nodes = {}; }, "--nodes", "1 to 1024"},
      {[](RouterConfig* c) { c->nodes = {"here"}; }, "--nodes: 'here'", "host:port"},
      {[](RouterConfig* c) { c->nodes = {"127.0.0.1:99999"}; }, "--nodes", "1 to 65535"},
      {[](RouterConfig* c) {
         c->nodes = {"a:1", "a:1"};
       },
       "--nodes=a:1", "once"},
      {[](RouterConfig* c) { c->security.insecure = false; }, "--listen", "--insecure"},
      {[](RouterConfig* c) { c->listen = {"0.0.0.0:7080"}; }, "--listen", "loopback"},
      {[](RouterConfig* c) { c->metrics_listen = "nowhere"; }, "--metrics-listen", "nowhere"},
      {[](RouterConfig* c) { c->miss_weight = 0.5; }, "--miss-weight", "0.5"},
      {[](RouterConfig* c) { c->route_policy = "best"; }, "--route-policy", "\"best\""},
      {[](RouterConfig* c) { c->prefill_tokens_per_second = 0; }, "--prefill-tokens-per-second",
       "0"},
      {[](RouterConfig* c) { c->remote_tokens_per_second = -1; }, "--remote-tokens-per-second",
       "-1"},
      {[](RouterConfig* c) { c->out_after = absl::Milliseconds(500); }, "--out-after-ms", "1s"},
      {[](RouterConfig* c) { c->ready_wait = -absl::Seconds(1); }, "--ready-wait-ms", "-1s"},
      {[](RouterConfig* c) { c->index_memory = ByteSize(); }, "--index-memory", "1MiB"},
      {[](RouterConfig* c) { c->bookings_max = 0; }, "--bookings-max", "0"},
      {[](RouterConfig* c) { c->sessions_max = 0; }, "--sessions-max", "0"},
      {[](RouterConfig* c) { c->session_ttl = absl::ZeroDuration(); }, "--session-ttl-ms", "100ms"},
      {[](RouterConfig* c) { c->ramp = -absl::Seconds(1); }, "--ramp-ms", "-1s"},
      {[](RouterConfig* c) { c->session_pull = absl::Hours(2); }, "--session-pull-ms", "1h"},
      {[](RouterConfig* c) { c->replicas_per_answer_max = 1000; }, "--replicas-per-answer-max",
       "256"},
      {[](RouterConfig* c) { c->record_decisions_bytes = ByteSize::MiB(1); },
       "--record-decisions-bytes", "4MiB"},
      {[](RouterConfig* c) { c->record_decisions_share = 0; }, "--record-decisions-share", "0"},
  });
}

TEST(RouterConfig, OneSourceOfNodesIsNamedAndItsFlagsFit) {
  ExpectEachIsNamed({
      {[](RouterConfig* c) { c->nodes_dns = "a:1"; }, "--nodes", "or else one of"},
      {[](RouterConfig* c) {
         c->nodes.clear();
         c->nodes_dns = "unix:/a";
       },
       "--nodes-dns", "NAME:PORT"},
      {[](RouterConfig* c) { c->nodes_dns_interval = absl::ZeroDuration(); },
       "--nodes-dns-interval-ms", "100ms"},
      {[](RouterConfig* c) { c->nodes_max = 0; }, "--nodes-max", "1024"},
      {[](RouterConfig* c) {
         c->nodes.clear();
         c->kubernetes_service = "cairn";
         c->kubernetes_api = "https://10.0.0.1:443";
       },
       "--kubernetes-service=cairn", "NAMESPACE/NAME"},
      {[](RouterConfig* c) {
         c->nodes.clear();
         c->kubernetes_service = "prod/cairn";
         c->kubernetes_api = "http://10.0.0.1:80";
       },
       "--kubernetes-api", "use https"},
      {[](RouterConfig* c) {
         c->nodes.clear();
         c->kubernetes_service = "prod/cairn";
         c->kubernetes_api = "https://10.0.0.1:443";
         c->kubernetes_port_name = "a b";
       },
       "--kubernetes-port-name", "a b"},
  });
}

TEST(RouterConfig, InAPodTheApiServerIsThatOfItsEnvironment) {
  RouterConfig config = GoodConfig();
  config.nodes.clear();
  config.kubernetes_service = "prod/cairn";
  unsetenv("KUBERNETES_SERVICE_HOST");
  EXPECT_THAT(std::string(config.Validate().message()), HasSubstr("--kubernetes-api"));
  setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
  setenv("KUBERNETES_SERVICE_PORT", "443", 1);
  EXPECT_EQ(config.KubernetesApi(), "https://[fd00::1]:443");
  EXPECT_TRUE(config.Validate().ok()) << config.Validate();
  setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
  EXPECT_EQ(config.KubernetesApi(), "https://10.0.0.1:443");
  EXPECT_EQ(config.NodesMax(), 64u);
  EXPECT_TRUE(config.CoreOptions().members_to_come);
}

TEST(RouterConfig, ShortSilenceStillLeavesRoomForALateTick) {
  RouterConfig config = GoodConfig();
  config.degraded_after = absl::Milliseconds(100);
  EXPECT_LT(config.CoreOptions().tick_advance_max, config.degraded_after);
}

TEST(RouterConfig, MemoryBeyondTheLimitIsRefusedWithTheSum) {
  RouterConfig config = GoodConfig();
  config.memory_limit = ByteSize::MiB(100);
  const absl::Status status = MemoryLimitOf(config, "/").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("bookings"), HasSubstr("--index-memory")));
}

}  // namespace
}  // namespace cairn::router
