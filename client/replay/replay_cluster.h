// ReplayCluster: what a replay runs against, made ready for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/node_clients.h"
#include "client/cpp/retry_wait.h"
#include "client/cpp/route_types.h"
#include "client/cpp/router_client.h"

namespace cairn::replay {

struct ReplayCluster {
  // Whose nodes are there.
  std::vector<RoutedReplica> replicas;
  // Host memory for blocks, over all nodes.
  uint64_t host_bytes = 0;
};

// Longest wait for a router that says it is ready and knows a replica.
inline constexpr absl::Duration kRouterReadyWait = absl::Seconds(30);

// Waits for the router, and registers the namespace with every node that it knows. A node that is
// gone by then is passed over as long as there is another. A status names the address that did not
// do as it should.
absl::StatusOr<ReplayCluster> PrepareRoutedCluster(const NamespaceHandle& name_space,
                                                   RouterClient* router, NodeClients* nodes,
                                                   RetryWait* wait);

// The same for one node without a router.
absl::StatusOr<ReplayCluster> PrepareSingleNode(const NamespaceHandle& name_space,
                                                const std::string& address, NodeClients* nodes);

}  // namespace cairn::replay
