#include "router/service/router_flags.h"

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/security/server_security_flags.h"
#include "router/policy/policy_registry.h"

ABSL_FLAG(std::vector<std::string>, listen, {"127.0.0.1:7080"},
          "Addresses to serve gRPC on: host:port, [v6]:port or unix:/path, comma-separated.");
ABSL_FLAG(std::string, metrics_listen, "127.0.0.1:7081",
          "Address of /metrics over HTTP; empty serves none.");
ABSL_FLAG(std::vector<std::string>, nodes, {},
          "Addresses of the cache nodes to follow, host:port, comma-separated; or else "
          "--nodes-dns or --kubernetes-service.");
ABSL_FLAG(
    std::string, nodes_dns, "",
    "NAME:PORT: each address of the name is a cache node, asked for again and again. A failure "
    "keeps the last ones.");
ABSL_FLAG(int, nodes_dns_interval_ms, 5'000, "Time between two questions for --nodes-dns.");
ABSL_FLAG(std::string, kubernetes_service, "",
          "NAMESPACE/NAME: the endpoints of this service are the cache nodes, by list and watch of "
          "its EndpointSlices; the service account may get, list and watch them.");
ABSL_FLAG(std::string, kubernetes_port_name, "",
          "Name of the service's port that nodes are followed at; empty: it has only one.");
ABSL_FLAG(std::string, kubernetes_api, "",
          "URL of the API server; empty: that of a pod's environment. http only on loopback, and "
          "without a token.");
ABSL_FLAG(std::string, kubernetes_ca, cairn::router::RouterConfig().kubernetes_ca,
          "CA of the API server, PEM, read for each request.");
ABSL_FLAG(std::string, kubernetes_token_file, cairn::router::RouterConfig().kubernetes_token_file,
          "Token of the service account, read for each request.");
ABSL_FLAG(int, nodes_max, 64,
          "Nodes to follow at most, 4 MiB each, where they are not listed by --nodes.");
ABSL_FLAG(std::string, node_tls_ca, "",
          "CA of the nodes' certificates, PEM, re-read; empty: nodes are followed in plain text.");
ABSL_FLAG(std::string, node_tls_cert, "", "Certificate to show to nodes, PEM, re-read.");
ABSL_FLAG(std::string, node_tls_key, "", "Private key of --node-tls-cert.");
ABSL_FLAG(std::string, node_tls_name, "",
          "Name that the nodes' certificates have; empty: the host of each address.");
ABSL_FLAG(std::string, node_token_file, "",
          "File with the bearer token to send to nodes, one line, re-read.");

ABSL_FLAG(std::string, route_policy, std::string(cairn::router::kDefaultRoutePolicy),
          absl::StrCat("How replicas are ranked, where a request does not name a policy; all but "
                       "the default are for comparison: ",
                       absl::StrJoin(cairn::router::RoutePolicyNames(), ", "), "."));
ABSL_FLAG(double, miss_weight, 10,
          "Weight of a miss against waiting: a replica keeps a prefix until the extra wait there "
          "exceeds so many times what the hit saves.");
ABSL_FLAG(
    int64_t, short_match_tokens, 1024,
    "A best match under this, or under a quarter of the prompt, is too short to follow: there the "
    "hash of the first blocks chooses among the least queued.");
ABSL_FLAG(
    int, ramp_ms, 30'000,
    "Time in which a new replica's queue is counted longer, less and less, so that it does not "
    "draw all misses at once; 0: none.");
ABSL_FLAG(
    int, session_pull_ms, 1'000,
    "The replica that a session's last prompt went to counts as so much less queued, and never "
    "as more than a hit there would save.");
ABSL_FLAG(double, prefill_tokens_per_second, 15'000,
          "Tokens a second that a replica computes, until its own rate is learned.");
ABSL_FLAG(double, device_tokens_per_second, 1e9,
          "Tokens a second that a worker reads from its own node's device memory; 0: it cannot.");
ABSL_FLAG(double, host_tokens_per_second, 200'000,
          "Tokens a second that a worker reads from its own node's host memory; 0: it cannot.");
ABSL_FLAG(double, disk_tokens_per_second, 25'000,
          "Tokens a second that a worker reads from its own node's disk; 0: it cannot.");
ABSL_FLAG(double, same_host_tokens_per_second, 0,
          "Tokens a second that a worker reads from another node on its host; 0: none.");
ABSL_FLAG(double, remote_tokens_per_second, 0,
          "Tokens a second that a worker reads from a node on another host; 0: none.");
ABSL_FLAG(int64_t, replica_kv_tokens, 0,
          "KV tokens that a worker's own memory holds, where its node does not say; 0: not known.");

ABSL_FLAG(
    cairn::ByteSize, replicate_bytes_per_second, cairn::ByteSize::MiB(64),
    "Bytes a second of hot prefixes that nodes are asked to copy from their saturated holders "
    "(nodes need a --peer-file); 0: none.");
ABSL_FLAG(int64_t, replicate_tokens_min, 1024, "Shorter prefixes are not copied.");
ABSL_FLAG(double, replicate_bytes_per_token, 128 * 1024,
          "Bytes of a token's KV, until a copy of the namespace said how many they are.");

ABSL_FLAG(int, degraded_after_ms, 1'000, "Silence of a node after which it counts as degraded.");
ABSL_FLAG(int, out_after_ms, 2'000, "Silence of a node after which nothing of it is matched.");
ABSL_FLAG(int, feed_silence_ms, 10'000, "Silence of a feed after which it is opened anew.");
ABSL_FLAG(int, ready_wait_ms, 10'000,
          "Longest wait for the nodes' snapshots before the router says that it is ready.");
ABSL_FLAG(int, prefill_ttl_ms, 300'000, "Life of a booking whose first token is not reported.");
ABSL_FLAG(int, decode_ttl_ms, 900'000, "Life of a booking after its first token.");
ABSL_FLAG(int, session_ttl_ms, 300'000,
          "A session is forgotten so long after its last prompt was routed.");

ABSL_FLAG(cairn::ByteSize, memory_limit, cairn::ByteSize(),
          "Resident memory never exceeds this; 0: the cgroup's limit, or 80 % of the machine.");
ABSL_FLAG(cairn::ByteSize, index_memory, cairn::ByteSize::MiB(256),
          "Index of who holds what, 100 bytes for each block and holder.");
ABSL_FLAG(int, connections_max, 512, "Connections that the memory sum allows for, 256 KiB each.");
ABSL_FLAG(int, bookings_max, 65'536, "Requests routed and not reported to have ended.");
ABSL_FLAG(int, sessions_max, 16'384,
          "Sessions whose last replica is remembered; the one used longest ago goes first.");
ABSL_FLAG(int, speculative_blocks_max, 262'144,
          "Blocks that routed requests are about to write, remembered until the feed says so.");
ABSL_FLAG(int, answers_remembered_max, 8'192,
          "Answers remembered so that retries with a request id are safe.");
ABSL_FLAG(int, replicas_per_answer_max, 16, "Replicas in one answer.");
ABSL_FLAG(int, namespaces_max, 4'096, "Namespaces that the nodes may name, with 4 tenants each.");

ABSL_FLAG(std::string, record_decisions, "",
          "File to record decisions in, with all that they rested on and what became of them, for "
          "`cairnctl replay-decisions`; holds no prompts. The file before it is kept as FILE.1. "
          "Empty: none.");
ABSL_FLAG(cairn::ByteSize, record_decisions_bytes, cairn::ByteSize::MiB(256),
          "Most that the two files hold; the oldest decisions go first.");
ABSL_FLAG(double, record_decisions_share, 1, "Share of the requests that are recorded.");

ABSL_FLAG(int, drain_grace_ms, 2'000, "Time that open calls get after SIGTERM.");

namespace cairn::router {

RouterConfig ConfigFromFlags() {
  const auto ms = [](int count) { return absl::Milliseconds(count); };
  RouterConfig config;
  config.listen = absl::GetFlag(FLAGS_listen);
  config.security = ServerSecurityFromFlags();
  config.node_security.tls.ca = absl::GetFlag(FLAGS_node_tls_ca);
  config.node_security.tls.cert = absl::GetFlag(FLAGS_node_tls_cert);
  config.node_security.tls.key = absl::GetFlag(FLAGS_node_tls_key);
  config.node_security.token_file = absl::GetFlag(FLAGS_node_token_file);
  config.node_tls_name = absl::GetFlag(FLAGS_node_tls_name);
  config.metrics_listen = absl::GetFlag(FLAGS_metrics_listen);
  config.nodes = absl::GetFlag(FLAGS_nodes);
  config.nodes_dns = absl::GetFlag(FLAGS_nodes_dns);
  config.nodes_dns_interval = ms(absl::GetFlag(FLAGS_nodes_dns_interval_ms));
  config.kubernetes_service = absl::GetFlag(FLAGS_kubernetes_service);
  config.kubernetes_port_name = absl::GetFlag(FLAGS_kubernetes_port_name);
  config.kubernetes_api = absl::GetFlag(FLAGS_kubernetes_api);
  config.kubernetes_ca = absl::GetFlag(FLAGS_kubernetes_ca);
  config.kubernetes_token_file = absl::GetFlag(FLAGS_kubernetes_token_file);
  config.nodes_max = absl::GetFlag(FLAGS_nodes_max);
  config.route_policy = absl::GetFlag(FLAGS_route_policy);
  config.miss_weight = absl::GetFlag(FLAGS_miss_weight);
  config.short_match_tokens = absl::GetFlag(FLAGS_short_match_tokens);
  config.ramp = ms(absl::GetFlag(FLAGS_ramp_ms));
  config.session_pull = ms(absl::GetFlag(FLAGS_session_pull_ms));
  config.prefill_tokens_per_second = absl::GetFlag(FLAGS_prefill_tokens_per_second);
  config.device_tokens_per_second = absl::GetFlag(FLAGS_device_tokens_per_second);
  config.host_tokens_per_second = absl::GetFlag(FLAGS_host_tokens_per_second);
  config.disk_tokens_per_second = absl::GetFlag(FLAGS_disk_tokens_per_second);
  config.same_host_tokens_per_second = absl::GetFlag(FLAGS_same_host_tokens_per_second);
  config.remote_tokens_per_second = absl::GetFlag(FLAGS_remote_tokens_per_second);
  config.replica_kv_tokens = absl::GetFlag(FLAGS_replica_kv_tokens);
  config.replicate_bytes_per_second = absl::GetFlag(FLAGS_replicate_bytes_per_second);
  config.replicate_tokens_min = absl::GetFlag(FLAGS_replicate_tokens_min);
  config.replicate_bytes_per_token = absl::GetFlag(FLAGS_replicate_bytes_per_token);
  config.degraded_after = ms(absl::GetFlag(FLAGS_degraded_after_ms));
  config.out_after = ms(absl::GetFlag(FLAGS_out_after_ms));
  config.feed_silence = ms(absl::GetFlag(FLAGS_feed_silence_ms));
  config.ready_wait = ms(absl::GetFlag(FLAGS_ready_wait_ms));
  config.prefill_ttl = ms(absl::GetFlag(FLAGS_prefill_ttl_ms));
  config.decode_ttl = ms(absl::GetFlag(FLAGS_decode_ttl_ms));
  config.session_ttl = ms(absl::GetFlag(FLAGS_session_ttl_ms));
  config.memory_limit = absl::GetFlag(FLAGS_memory_limit);
  config.index_memory = absl::GetFlag(FLAGS_index_memory);
  config.connections_max = absl::GetFlag(FLAGS_connections_max);
  config.bookings_max = absl::GetFlag(FLAGS_bookings_max);
  config.sessions_max = absl::GetFlag(FLAGS_sessions_max);
  config.speculative_blocks_max = absl::GetFlag(FLAGS_speculative_blocks_max);
  config.answers_remembered_max = absl::GetFlag(FLAGS_answers_remembered_max);
  config.replicas_per_answer_max = absl::GetFlag(FLAGS_replicas_per_answer_max);
  config.namespaces_max = absl::GetFlag(FLAGS_namespaces_max);
  config.record_decisions = absl::GetFlag(FLAGS_record_decisions);
  config.record_decisions_bytes = absl::GetFlag(FLAGS_record_decisions_bytes);
  config.record_decisions_share = absl::GetFlag(FLAGS_record_decisions_share);
  config.drain_grace = ms(absl::GetFlag(FLAGS_drain_grace_ms));
  return config;
}

}  // namespace cairn::router
