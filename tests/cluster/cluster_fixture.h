// ClusterTest: a fixture with real nodes and a real router as processes, replays through them, and
// questions about them.
//
// Prints the programs' logs when a test failed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "cairn/v1/cache_node.pb.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/node_clients.h"
#include "client/cpp/prompt.h"
#include "client/cpp/router_client.h"
#include "client/replay/replay_runner.h"
#include "client/replay/trace.h"
#include "gmock/gmock.h"
#include "tests/testing/server_process.h"

namespace cairn::testing {

class ClusterTest : public ::testing::Test {
 protected:
  // Longest wait for what is to happen soon: far more than it takes, for machines that are busy.
  static constexpr absl::Duration kSoon = absl::Seconds(30);

  ClusterTest();
  void TearDown() override;

  // Adds nodes "node-1", "node-2" and so on beside workers "worker-1", "worker-2"; `flags` may say
  // otherwise. The test fails when one does not get ready.
  void AddNodes(size_t count, const std::vector<std::string>& flags = {});
  // At the same address with the same flags, as another run.
  void RestartNode(size_t node);
  ServerProcess& node(size_t node) { return *nodes_[node].process; }
  std::vector<std::string> NodeAddresses() const;
  v1::DescribeResponse Describe(size_t node);

  // A router that follows the feeds at these addresses; none: where `flags` say that nodes are.
  void StartRouter(const std::vector<std::string>& feeds, std::vector<std::string> flags = {},
                   bool await_ready = true);
  // As RestartNode; does not wait until it is ready.
  void RestartRouter();
  ServerProcess& router() { return *router_; }
  // What replays ask; keeps its connection over the router's runs.
  RouterClient& router_client() { return *router_client_; }

  // Of this run of the router.
  ReplicaList List();
  // Asks until the list fulfils `condition`; false after `bound`.
  bool AwaitList(absl::FunctionRef<bool(const ReplicaList&)> condition,
                 absl::Duration bound = kSoon);
  // Until every feed is EXACT and has as many blocks as its node says.
  bool AwaitExact(absl::Duration bound = kSoon);

  // Of small blocks: 64 tokens, 1 KiB.
  static replay::ReplayOptions SmallBlocks();
  static NamespaceHandle SmallBlocksNamespace();
  // The request's prompt, by keys: nothing of the tokens is needed any more.
  static Prompt KeysOf(const replay::TraceRequest& request);
  replay::ReplayTarget Target();
  static std::vector<replay::TraceRequest> Generate(uint64_t seed, uint64_t requests);

  // The router's index says of each prompt and node what the node itself says, and of each node as
  // many blocks. Asks at once, and once.
  void ExpectIndexIsListing(absl::Span<const replay::TraceRequest> requests);

 private:
  struct Node {
    std::vector<std::string> flags;
    std::unique_ptr<ServerProcess> process;
  };

  void StartRouterProcess(const std::string& listen, bool await_ready);
  void Print(absl::string_view name, const ServerProcess* process) const;

  SystemClientParts parts_;
  std::vector<Node> nodes_;
  std::vector<std::string> router_flags_;
  std::unique_ptr<ServerProcess> router_;
  std::unique_ptr<NodeClients> node_clients_;
  std::unique_ptr<RouterClient> router_client_;
  std::unique_ptr<RouterClient> asker_;
};

// The replica beside that node; an empty one, and a failure, when there is none.
ReplicaEntry ReplicaOf(const ReplicaList& list, const std::string& node_id);

// A list with the state of each feed, for messages.
std::string ToString(const ReplicaList& list);

}  // namespace cairn::testing
