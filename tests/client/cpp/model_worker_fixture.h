// ModelWorkerTest: a worker between a fake router, two fake nodes and a fake engine, on a fake
// clock. The engine knows what every block must hold.
#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/cpp/model_worker.h"
#include "tests/client/cpp/fake_engine.h"
#include "tests/client/cpp/fake_node.h"
#include "tests/client/cpp/fake_router.h"
#include "tests/client/cpp/fake_wait.h"
#include "tests/client/cpp/sample_blocks.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/seeded_random.h"

namespace cairn::testing {

class ModelWorkerTest : public ::testing::Test {
 protected:
  ModelWorkerTest() { Use(TwoGroups()); }

  void Use(const Namespace& fields) {
    handle_.emplace(HandleOf(fields));
    node_ = std::make_unique<FakeNode>(*handle_);
    other_node_ = std::make_unique<FakeNode>(*handle_);
    router_ = std::make_unique<FakeRouter>();
    router_->AddReplica(node_->target());
    router_->AddReplica(other_node_->target());
    RouterClientOptions options;
    options.target = router_->target();
    router_client_ = std::make_unique<RouterClient>(options, parts_);
    MakePrompt(4);
  }

  void MakePrompt(size_t blocks, size_t tokens_beyond = 0) {
    tokens_.resize(blocks * handle_->block_tokens() + tokens_beyond);
    for (size_t i = 0; i < tokens_.size(); ++i) tokens_[i] = static_cast<uint32_t>(i);
    const Region region{.scope = {"public", "", ""}, .tokens = tokens_, .external_ids = {}};
    absl::StatusOr<Prompt> prompt = Prompt::Make(hasher_, *handle_, {&region, 1});
    CAIRN_CHECK_OK(prompt.status());
    prompt_.emplace(*std::move(prompt));
  }

  // Runs one request with a new engine, by a new worker.
  WorkOutcome Run(const std::function<void(FakeEngine*)>& prepare = [](FakeEngine*) {}) {
    return RunBy(ModelWorker(options_, *handle_, router_client_.get(), &nodes_), prepare);
  }
  WorkOutcome RunBy(
      const ModelWorker& worker,
      const std::function<void(FakeEngine*)>& prepare = [](FakeEngine*) {}) {
    engine_ = std::make_unique<FakeEngine>(&*handle_, &*prompt_);
    prepare(engine_.get());
    request_.prompt = &*prompt_;
    WorkOutcome outcome = worker.Run(request_, engine_.get());
    EXPECT_TRUE(engine_->prefix_was_right());
    return outcome;
  }

  FakeClock clock_;
  FakeWait wait_{&clock_};
  SeededRandom random_{11};
  Sha256BlockHasher hasher_;
  const ClientParts parts_{&hasher_, &clock_, &random_, &wait_};
  NodeClients nodes_{{}, parts_};
  std::optional<NamespaceHandle> handle_;
  std::unique_ptr<FakeNode> node_;
  std::unique_ptr<FakeNode> other_node_;
  std::unique_ptr<FakeRouter> router_;
  std::unique_ptr<RouterClient> router_client_;
  ModelWorkerOptions options_;
  WorkRequest request_ = {.output_tokens = 7};
  std::vector<uint32_t> tokens_;
  std::optional<Prompt> prompt_;
  std::unique_ptr<FakeEngine> engine_;
};

inline RoutedReplica ReplicaAt(const std::string& worker, const FakeNode& node) {
  RoutedReplica replica;
  replica.worker_address = worker;
  replica.node_addresses = {node.target()};
  return replica;
}

inline const absl::Status kGone = absl::UnavailableError("gone");

}  // namespace cairn::testing
