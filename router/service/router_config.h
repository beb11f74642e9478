// RouterConfig: everything that a router is told at start. The defaults are those of the flags.
//
// A plain value; Validate says what is wrong with it, all at once, before anything listens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/security/client_security.h"
#include "common/security/server_security.h"
#include "common/server/byte_size.h"
#include "common/server/memory_sum.h"
#include "router/core/router_options.h"
#include "router/decisions/decision_recorder.h"
#include "router/policy/policy_registry.h"
#include "router/replication/replication_types.h"

namespace cairn::router {

// Each has a thread that follows it.
inline constexpr size_t kNodesMax = 1024;

struct RouterConfig {
  std::vector<std::string> listen = {"127.0.0.1:7080"};
  ServerSecurityConfig security;
  // Towards the nodes.
  ClientSecurityConfig node_security;
  std::string node_tls_name;                      // As ChannelOptions::tls_name.
  std::string metrics_listen = "127.0.0.1:7081";  // Empty: no metrics are served.

  // Where the nodes' feeds are, by one of these: a list; the addresses of a name, asked for again
  // and again; the endpoints of a Kubernetes service, watched.
  std::vector<std::string> nodes;
  std::string nodes_dns;  // name:port
  absl::Duration nodes_dns_interval = absl::Seconds(5);
  std::string kubernetes_service;    // namespace/name
  std::string kubernetes_port_name;  // Empty: it has one port.
  std::string kubernetes_api;        // URL; empty: as a pod is told.
  std::string kubernetes_ca = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
  std::string kubernetes_token_file = "/var/run/secrets/kubernetes.io/serviceaccount/token";
  int nodes_max = 64;  // Of those that are not listed here.

  // Policy.
  std::string route_policy = std::string(kDefaultRoutePolicy);  // For requests that name none.
  double miss_weight = 10;
  int64_t short_match_tokens = 1024;
  absl::Duration ramp = absl::Seconds(30);         // Of a new replica; zero: none.
  absl::Duration session_pull = absl::Seconds(1);  // A session's replica counts as less queued.
  double prefill_tokens_per_second = 15'000;       // Before a replica's own rate is known.
  double device_tokens_per_second = 1e9;
  double host_tokens_per_second = 200'000;
  double disk_tokens_per_second = 25'000;
  double same_host_tokens_per_second = 0;  // 0: workers do not read from there.
  double remote_tokens_per_second = 0;
  int64_t replica_kv_tokens = 0;  // 0: not known.

  // Copies of hot prefixes; 0 bytes a second: none are made.
  ByteSize replicate_bytes_per_second = ByteSize::MiB(64);
  int64_t replicate_tokens_min = 1024;
  double replicate_bytes_per_token = 128 * 1024;  // Before a copy said how many they are.

  // Feeds.
  absl::Duration degraded_after = absl::Seconds(1);
  absl::Duration out_after = absl::Seconds(2);
  absl::Duration feed_silence = absl::Seconds(10);
  absl::Duration ready_wait = absl::Seconds(10);

  // Bookings.
  absl::Duration prefill_ttl = absl::Minutes(5);
  absl::Duration decode_ttl = absl::Minutes(15);
  absl::Duration session_ttl = absl::Minutes(5);

  // Memory and bounds. The limit 0 takes the machine's (MemoryLimitOf).
  ByteSize memory_limit;
  ByteSize index_memory = ByteSize::MiB(256);
  int connections_max = 512;
  int bookings_max = 65'536;
  int sessions_max = 16'384;
  int speculative_blocks_max = 262'144;
  int answers_remembered_max = 8'192;
  int replicas_per_answer_max = 16;
  int namespaces_max = 4'096;

  // What is decided, and what becomes of it, to this file; empty: none.
  std::string record_decisions;
  ByteSize record_decisions_bytes = ByteSize::MiB(256);  // With the file before it.
  double record_decisions_share = 1;                     // Of the requests.

  absl::Duration drain_grace = absl::Seconds(2);

  // INVALID_ARGUMENT with one line for each flag that is wrong.
  absl::Status Validate() const;

  // URL of the API server: the flag's, or else that of the environment of a pod; empty where there
  // is none.
  std::string KubernetesApi() const;
  // How many are followed at most.
  size_t NodesMax() const;

  // REQUIRES: valid.
  RouterOptions CoreOptions() const;
  PrefixCostOptions PolicyOptions() const;
  DecisionRecorderOptions RecorderOptions() const;
  ReplicationOptions CopyOptions() const;

  // The terms of what the process may come to hold.
  MemorySum Memory() const;
  // What gRPC is told that its transports may hold.
  ByteSize TransportBytes() const;
};

// The limit to keep: common/server/memory_limit.h, over this configuration's sum.
absl::StatusOr<ByteSize> MemoryLimitOf(const RouterConfig& config, absl::string_view root);

}  // namespace cairn::router
