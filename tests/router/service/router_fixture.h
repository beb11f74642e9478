// RouterTest: a whole router in this process, and a client before it.
//
// Everything runs on real time and real sockets of loopback; what takes a while is awaited as a
// condition, within a bound.
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/cpp/namespace_handle.h"
#include "client/cpp/prompt.h"
#include "client/cpp/router_client.h"
#include "common/base/check.h"
#include "router/service/router.h"
#include "tests/router/service/scripted_node.h"
#include "tests/testing/identity_samples.h"

namespace cairn::router {

inline constexpr absl::Duration kLongest = absl::Seconds(20);

// Asks again until the condition holds; false when it does not within `longest`.
inline bool Await(const std::function<bool()>& condition, absl::Duration longest = kLongest) {
  const WakeEvent never;
  const SystemClock clock;
  const absl::Time end = clock.SteadyNow() + longest;
  while (!condition()) {
    if (clock.SteadyNow() > end) return false;
    never.WaitFor(absl::Milliseconds(2));
  }
  return true;
}

class RouterTest : public ::testing::Test {
 protected:
  static RouterConfig SmallConfig(std::vector<std::string> nodes) {
    RouterConfig config;
    config.listen = {"127.0.0.1:0"};
    config.security.insecure = true;
    config.metrics_listen.clear();
    config.nodes = std::move(nodes);
    config.index_memory = ByteSize::MiB(8);
    config.bookings_max = 1024;
    config.speculative_blocks_max = 4096;
    config.answers_remembered_max = 128;
    config.connections_max = 16;
    config.drain_grace = absl::Milliseconds(100);
    return config;
  }

  void StartRouter(const RouterConfig& config, Router::Log log = nullptr) {
    client_ = nullptr;
    router_ = nullptr;
    absl::StatusOr<std::unique_ptr<Router>> router = Router::Start(config, std::move(log));
    ASSERT_TRUE(router.ok()) << router.status();
    router_ = *std::move(router);
    RouterClientOptions options;
    options.target = router_->addresses().front();
    client_ = std::make_unique<RouterClient>(options, parts_.parts());
  }

  void StartRouter(std::vector<std::string> nodes) { StartRouter(SmallConfig(std::move(nodes))); }

  // What the health service says of `service`. By hand: Debian has no generated class for it.
  bool Serving(const std::string& service) {
    grpc::GenericStub stub(
        grpc::CreateChannel(router_->addresses().front(), grpc::InsecureChannelCredentials()));
    const std::string request = std::string("\x0a") + static_cast<char>(service.size()) + service;
    const grpc::Slice slice(request);
    const grpc::ByteBuffer message(&slice, 1);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    grpc::CompletionQueue queue;
    const auto call =
        stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", message, &queue);
    call->StartCall();
    grpc::ByteBuffer answer;
    grpc::Status status;
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    CAIRN_CHECK(queue.Next(&tag, &ok));
    grpc::Slice bytes;
    if (!status.ok() || !answer.TrySingleSlice(&bytes).ok()) return false;
    return bytes.size() == 2 && bytes.begin()[1] == 1;  // Field 1: SERVING.
  }

  HolderState StateOf(HolderIndex holder) { return router_->core().StateOf(holder); }
  bool AwaitState(HolderIndex holder, HolderState state, absl::Duration longest = kLongest) {
    return Await([&] { return StateOf(holder) == state; }, longest);
  }

  // Of a prompt of these keys in the scripted namespace, at the only holder that has any.
  uint32_t BlocksMatched(const std::vector<BlockKey>& keys) {
    uint32_t blocks = 0;
    for (const HolderMatch& match :
         router_->core().LookupPrefix("public", ScriptedFingerprint(), keys).holders) {
      blocks = std::max(blocks, match.blocks);
    }
    return blocks;
  }

  SystemClientParts parts_;
  std::unique_ptr<Router> router_;
  std::unique_ptr<RouterClient> client_;
};

}  // namespace cairn::router
