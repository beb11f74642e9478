// RouterFixture: a RouterCore over three model nodes, on a fake clock, with verbs for stories.
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "router/core/router_core.h"
#include "router/policy/prefix_cost_policy.h"
#include "tests/router/model_holder.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/seeded_random.h"

namespace cairn::router {

class RouterFixture : public ::testing::Test {
 protected:
  using Message = ModelHolder::Message;
  static constexpr uint32_t kBlockTokens = 256;

  void SetUp() override {
    options_.holder_addresses = {"10.0.0.0:7000", "10.0.0.1:7000", "10.0.0.2:7000"};
    for (int i = 0; i < 3; ++i) nodes_.push_back(NodeAt(i));
  }
  static ModelHolder NodeAt(int i, char incarnation = 'i') {
    const std::string host = "10.0.0." + std::to_string(i);
    return ModelHolder({.node_id = "node-" + std::to_string(i),
                        .address = host + ":7000",
                        .worker_address = "worker-" + std::to_string(i),
                        .incarnation = incarnation,
                        .shards = 4});
  }
  void Make() {
    auto core = RouterCore::Make(options_, std::make_unique<PrefixCostPolicy>(PrefixCostOptions{}),
                                 &clock_, &random_);
    ASSERT_TRUE(core.ok()) << core.status();
    core_ = *std::move(core);
  }
  void Feed(HolderIndex holder, const std::vector<Message>& messages) {
    for (const Message& message : messages) {
      const auto resyncs = core_->OnFeed(holder, message);
      ASSERT_TRUE(resyncs.ok()) << resyncs.status();
    }
  }
  void Connect(HolderIndex holder) {
    ModelHolder& node = nodes_[holder];
    node.NewStream();
    Feed(holder, {node.Hello(), ModelHolder::Namespace(kModel, kBlockTokens)});
    Feed(holder, node.Snapshots());
    Feed(holder, {node.Heartbeat()});
  }
  void Start() {
    Make();
    for (HolderIndex holder = 0; holder < 3; ++holder) Connect(holder);
  }
  void Put(HolderIndex holder, uint32_t first, uint32_t count, const std::string& tenant = "acme") {
    Feed(holder, nodes_[holder].Set(NumberedKeys(first, count), kInHost, kModel, tenant));
  }
  // Time in which the given nodes go on with their heartbeats.
  void Pass(absl::Duration time, const std::vector<HolderIndex>& beating) {
    for (const absl::Time end = clock_.SteadyNow() + time; clock_.SteadyNow() < end;) {
      clock_.Advance(absl::Milliseconds(100));
      core_->Tick();
      for (const HolderIndex holder : beating) Feed(holder, {nodes_[holder].Heartbeat()});
    }
  }
  absl::StatusOr<RouteAnswer> TryRoute(uint32_t first, uint32_t count,
                                       const std::string& request_id = "",
                                       const std::string& tenant = "acme") {
    const auto keys = NumberedKeys(first, count);
    return core_->Route({.caller = "caller",
                         .tenant = tenant,
                         .fingerprint = kModel,
                         .keys = keys,
                         .request_id = request_id});
  }
  RouteAnswer Route(uint32_t first, uint32_t count, const std::string& tenant = "acme") {
    auto answer = TryRoute(first, count, "", tenant);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return *std::move(answer);
  }
  bool Report(const RouteAnswer& answer, OutcomePhase phase, uint64_t cached = 0,
              absl::string_view worker = "") {
    const auto known = core_->ReportOutcome({.booking = answer.booking,
                                             .router_incarnation = core_->incarnation(),
                                             .phase = phase,
                                             .worker_address = worker,
                                             .cached_tokens = cached,
                                             .computed_tokens = 1});
    EXPECT_TRUE(known.ok()) << known.status();
    return *known;
  }
  std::string FirstNode(const RouteAnswer& answer) { return answer.replicas.front().node_id; }

  const Fingerprint kModel = NumberedFingerprint(1);
  RouterOptions options_;
  testing::FakeClock clock_;
  testing::SeededRandom random_{5};
  std::vector<ModelHolder> nodes_;
  std::unique_ptr<RouterCore> core_;
};

}  // namespace cairn::router
