#include "tests/cluster/cluster_fixture.h"

#include <iostream>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/replay/generated_trace.h"
#include "client/replay/replay_namespace.h"
#include "common/identity/block_hasher.h"
#include "common/rpc/caller_identity.h"

namespace cairn::testing {
namespace {

// Between two questions to a program.
constexpr absl::Duration kAskInterval = absl::Milliseconds(5);
// Of those that differ, so many are said.
constexpr int kDifferencesMax = 5;

// Nodes that are gone are to be noticed soon: there is another in the list.
ClientOptions NodeOptions() {
  ClientOptions options;
  options.control_timeout = absl::Seconds(2);
  options.data_timeout = absl::Seconds(10);
  options.retry.attempts_max = 2;
  return options;
}

std::unique_ptr<RouterClient> NewClient(const std::string& address, const ClientParts& parts) {
  RouterClientOptions options;
  options.target = address;
  return std::make_unique<RouterClient>(options, parts);
}

}  // namespace

std::string ToString(const ReplicaList& list) {
  std::string text = list.ready ? "ready" : "not ready";
  for (const HolderEntry& holder : list.holders) {
    absl::StrAppend(&text, "\n  ", holder.address, " '", holder.node_id, "' ",
                    v1::HolderState_Name(holder.state), " ", holder.error);
  }
  for (const ReplicaEntry& replica : list.replicas) {
    absl::StrAppend(&text, "\n  ", replica.worker_address, " beside '", replica.node_id, "' at ",
                    absl::StrJoin(replica.node_addresses, ","), ", ", replica.blocks, " blocks ",
                    replica.conflict);
  }
  return text;
}

ReplicaEntry ReplicaOf(const ReplicaList& list, const std::string& node_id) {
  for (const ReplicaEntry& replica : list.replicas) {
    if (replica.node_id == node_id) return replica;
  }
  ADD_FAILURE() << "no replica beside " << node_id << ": " << ToString(list);
  return {};
}

ClusterTest::ClusterTest()
    : node_clients_(std::make_unique<NodeClients>(NodeOptions(), parts_.parts())) {}

void ClusterTest::TearDown() {
  if (!HasFailure()) return;
  Print("the router", router_.get());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    Print(absl::StrCat("node ", i), nodes_[i].process.get());
  }
}

void ClusterTest::Print(absl::string_view name, const ServerProcess* process) const {
  if (process != nullptr) std::cerr << "log of " << name << ":\n" << process->Log() << "\n";
}

void ClusterTest::AddNodes(size_t count, const std::vector<std::string>& flags) {
  for (size_t i = 0; i < count; ++i) {
    const size_t number = nodes_.size() + 1;
    Node node;
    node.flags = {absl::StrCat("--node-id=node-", number),
                  absl::StrCat("--worker-address=worker-", number), "--host-memory=64MiB",
                  "--memory-limit=1GiB"};
    node.flags.insert(node.flags.end(), flags.begin(), flags.end());
    absl::StatusOr<std::unique_ptr<ServerProcess>> process = ServerProcess::Start(
        {.program = absl::StrCat(CAIRN_BIN_DIR, "/cairn-node"), .flags = node.flags});
    ASSERT_TRUE(process.ok()) << process.status();
    node.process = *std::move(process);
    node.flags.push_back(absl::StrCat("--listen=", node.process->address()));
    nodes_.push_back(std::move(node));
  }
}

void ClusterTest::RestartNode(size_t node) {
  nodes_[node].process = nullptr;
  absl::StatusOr<std::unique_ptr<ServerProcess>> process = ServerProcess::Start(
      {.program = absl::StrCat(CAIRN_BIN_DIR, "/cairn-node"), .flags = nodes_[node].flags});
  ASSERT_TRUE(process.ok()) << process.status();
  nodes_[node].process = *std::move(process);
}

std::vector<std::string> ClusterTest::NodeAddresses() const {
  std::vector<std::string> addresses;
  for (const Node& node : nodes_) addresses.push_back(node.process->address());
  return addresses;
}

v1::DescribeResponse ClusterTest::Describe(size_t node) {
  const auto client = node_clients_->Get(nodes_[node].process->address());
  const absl::StatusOr<v1::DescribeResponse> answer = (*client)->Describe();
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.ok() ? *answer : v1::DescribeResponse();
}

void ClusterTest::StartRouter(const std::vector<std::string>& feeds, std::vector<std::string> flags,
                              bool await_ready) {
  router_flags_ = std::move(flags);
  if (!feeds.empty()) {
    router_flags_.push_back(absl::StrCat("--nodes=", absl::StrJoin(feeds, ",")));
  }
  ASSERT_NO_FATAL_FAILURE(StartRouterProcess("127.0.0.1:0", await_ready));
  router_client_ = NewClient(router_->address(), parts_.parts());
}

void ClusterTest::RestartRouter() {
  const std::string address = router_->address();
  router_ = nullptr;
  StartRouterProcess(address, /*await_ready=*/false);
}

void ClusterTest::StartRouterProcess(const std::string& listen, bool await_ready) {
  std::vector<std::string> flags = router_flags_;
  flags.push_back(absl::StrCat("--listen=", listen));
  absl::StatusOr<std::unique_ptr<ServerProcess>> process =
      ServerProcess::Start({.program = absl::StrCat(CAIRN_BIN_DIR, "/cairn-router"),
                            .flags = std::move(flags),
                            .await_ready = await_ready});
  ASSERT_TRUE(process.ok()) << process.status();
  router_ = *std::move(process);
  asker_ = NewClient(router_->address(), parts_.parts());
}

ReplicaList ClusterTest::List() {
  const absl::StatusOr<ReplicaList> list = asker_->ListReplicas();
  EXPECT_TRUE(list.ok()) << list.status();
  return list.ok() ? *list : ReplicaList();
}

bool ClusterTest::AwaitList(absl::FunctionRef<bool(const ReplicaList&)> condition,
                            absl::Duration bound) {
  const absl::Time deadline = absl::Now() + bound;
  while (true) {
    const ReplicaList list = List();
    if (condition(list)) return true;
    if (absl::Now() >= deadline) {
      std::cerr << "the router still says: " << ToString(list) << "\n";
      return false;
    }
    if (router_->process().WaitExit(kAskInterval)) return false;
  }
}

bool ClusterTest::AwaitExact(absl::Duration bound) {
  return AwaitList(
      [this](const ReplicaList& list) {
        for (const HolderEntry& holder : list.holders) {
          if (holder.state != v1::HOLDER_STATE_EXACT) return false;
        }
        for (size_t i = 0; i < nodes_.size(); ++i) {
          const v1::DescribeResponse description = Describe(i);
          const ReplicaEntry replica = ReplicaOf(list, description.node().node_id());
          if (replica.blocks != description.blocks()) return false;
        }
        return true;
      },
      bound);
}

replay::ReplayOptions ClusterTest::SmallBlocks() {
  replay::ReplayOptions options;
  options.block_tokens = 64;
  options.block_bytes = 1024;
  return options;
}

NamespaceHandle ClusterTest::SmallBlocksNamespace() {
  return *replay::MakeReplayNamespace(SmallBlocks().block_tokens, SmallBlocks().block_bytes);
}

Prompt ClusterTest::KeysOf(const replay::TraceRequest& request) {
  const std::vector<uint32_t> tokens = request.prompt.Tokens();
  const Region region{.scope = {kPublicTenant, "", ""}, .tokens = tokens, .external_ids = {}};
  return Prompt::FromKeys(
      Prompt::Make(Sha256BlockHasher(), SmallBlocksNamespace(), {&region, 1})->keys());
}

replay::ReplayTarget ClusterTest::Target() {
  return {.router = router_client_.get(), .node_address = "", .nodes = node_clients_.get()};
}

std::vector<replay::TraceRequest> ClusterTest::Generate(uint64_t seed, uint64_t requests) {
  const auto trace = replay::GeneratedTrace::Make({.seed = seed, .requests = requests});
  std::vector<replay::TraceRequest> result;
  for (uint64_t i = 0; i < requests; ++i) result.push_back(**(*trace)->Next());
  return result;
}

void ClusterTest::ExpectIndexIsListing(absl::Span<const replay::TraceRequest> requests) {
  const NamespaceHandle name_space = SmallBlocksNamespace();
  int differences = 0;
  uint64_t blocks_compared = 0;
  for (const replay::TraceRequest& request : requests) {
    const Prompt prompt = KeysOf(request);
    const absl::StatusOr<PrefixAnswer> index = asker_->LookupPrefix(name_space, prompt);
    ASSERT_TRUE(index.ok()) << index.status();
    std::map<std::string, uint32_t> indexed;
    for (const HolderPrefix& holder : index->holders) indexed[holder.node_id] = holder.blocks;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const auto listing = (*node_clients_->Get(nodes_[i].process->address()))
                               ->Lookup(name_space, {&prompt, 1}, {.by_keys = true});
      ASSERT_TRUE(listing.ok()) << listing.status();
      const std::string id = absl::StrCat("node-", i + 1);
      const uint32_t present = listing->prompts[0].blocks_present;
      blocks_compared += present;
      if (indexed[id] == present || ++differences > kDifferencesMax) continue;
      ADD_FAILURE() << "of a prompt of " << prompt.block_count() << " blocks " << id << " has "
                    << present << ", the index " << indexed[id];
    }
  }
  EXPECT_EQ(differences, 0);
  EXPECT_GT(blocks_compared, 0u) << "nothing to compare";
  const ReplicaList list = List();
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const v1::DescribeResponse description = Describe(i);
    const std::string& id = description.node().node_id();
    EXPECT_EQ(ReplicaOf(list, id).blocks, description.blocks()) << id;
  }
}

}  // namespace cairn::testing
