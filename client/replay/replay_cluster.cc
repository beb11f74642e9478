#include "client/replay/replay_cluster.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace cairn::replay {
namespace {

constexpr absl::Duration kReadyPollInterval = absl::Milliseconds(100);

absl::Status At(absl::string_view what, absl::string_view address, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(what, " ", address, ": ", status.message()));
}

absl::Status AddNode(const NamespaceHandle& name_space, RoutedReplica replica, NodeClients* nodes,
                     ReplayCluster* cluster) {
  const std::string& address = replica.node_addresses.front();
  const absl::StatusOr<std::shared_ptr<CacheNodeClient>> node = nodes->Get(address);
  if (!node.ok()) return At("node", address, node.status());
  const absl::Status registered =
      (*node)->RegisterNamespace(name_space.name(), name_space.fields()).status();
  if (!registered.ok()) return At("node", address, registered);
  const absl::StatusOr<v1::DescribeResponse> description = (*node)->Describe();
  if (!description.ok()) return At("node", address, description.status());
  cluster->host_bytes += description->load().host_bytes();
  cluster->replicas.push_back(std::move(replica));
  return absl::OkStatus();
}

absl::StatusOr<ReplicaList> AwaitReplicas(RouterClient* router, RetryWait* wait) {
  absl::StatusOr<ReplicaList> list = router->ListReplicas();
  for (absl::Duration waited;
       list.ok() && !(list->ready && !list->replicas.empty()) && waited < kRouterReadyWait;
       waited += kReadyPollInterval) {
    if (!wait->WaitFor(kReadyPollInterval)) return absl::CancelledError("the replay was stopped");
    list = router->ListReplicas();
  }
  if (list.ok() && list->replicas.empty()) {
    return absl::UnavailableError(
        "the router knows no replica: does each node have a "
        "--worker-address, and does the router list their addresses?");
  }
  return list;
}

}  // namespace

absl::StatusOr<ReplayCluster> PrepareRoutedCluster(const NamespaceHandle& name_space,
                                                   RouterClient* router, NodeClients* nodes,
                                                   RetryWait* wait) {
  const absl::StatusOr<ReplicaList> list = AwaitReplicas(router, wait);
  if (!list.ok()) return list.status();
  ReplayCluster cluster;
  absl::Status gone;
  for (const ReplicaEntry& entry : list->replicas) {
    if (entry.state == v1::HOLDER_STATE_OUT || entry.node_addresses.empty()) continue;
    RoutedReplica replica;
    replica.worker_address = entry.worker_address;
    replica.node_id = entry.node_id;
    replica.node_addresses = entry.node_addresses;
    const absl::Status status = AddNode(name_space, std::move(replica), nodes, &cluster);
    // It died after the router heard of it: workers find out too, and register where they must.
    if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
      gone.Update(status);
      continue;
    }
    if (!status.ok()) return status;
  }
  if (cluster.replicas.empty()) {
    if (!gone.ok()) return gone;
    return absl::UnavailableError("the router knows replicas, but not one of their nodes lives");
  }
  return cluster;
}

absl::StatusOr<ReplayCluster> PrepareSingleNode(const NamespaceHandle& name_space,
                                                const std::string& address, NodeClients* nodes) {
  RoutedReplica replica;
  replica.worker_address = address;
  replica.node_addresses = {address};
  ReplayCluster cluster;
  const absl::Status status = AddNode(name_space, std::move(replica), nodes, &cluster);
  if (!status.ok()) return status;
  return cluster;
}

}  // namespace cairn::replay
