#include "router/service/router_config.h"

#include <algorithm>
#include <cstdlib>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/rpc/field_status.h"
#include "common/rpc/target.h"
#include "common/server/allocator.h"
#include "common/server/config_errors.h"
#include "common/server/memory_limit.h"
#include "common/server/rpc_server.h"
#include "router/index/block_holders.h"
#include "router/membership/kubernetes/curl_transport.h"

namespace cairn::router {
namespace {

constexpr ByteSize kBytesMax = ByteSize::GiB(16 << 10);
constexpr double kRateMax = 1e12;

// Upper bounds of what one of each takes, for the printed sum.
constexpr ByteSize kMarkBytes = ByteSize(192);
constexpr ByteSize kBookingBytes = ByteSize(320);
// Two names of 256 and 128 bytes at most, the list's node, the table's entry.
constexpr ByteSize kSessionBytes = ByteSize(640);
constexpr ByteSize kBookingReplicaBytes = ByteSize(16);
constexpr ByteSize kAnswerBytes = ByteSize(512);
constexpr ByteSize kAnswerReplicaBytes = ByteSize(512);
constexpr ByteSize kNamespaceBytes = ByteSize(256);
constexpr ByteSize kNamespaceHolderBytes = ByteSize(16);
constexpr ByteSize kPartitionBytes = ByteSize(768);
// A record as it is written, in the forms that it goes through.
constexpr ByteSize kDecisionWriterBytes = ByteSize::MiB(4);
// What is known of prefixes, orders that wait, and calls that run.
constexpr ByteSize kCopiesBytes = ByteSize::MiB(32);
// A connection's buffers, a message as it comes and as it is parsed, a thread.
constexpr ByteSize kFeedBytes = ByteSize::MiB(4);
// A call that runs: its message as it comes, parsed, and its keys; on at most so many threads of
// gRPC's.
constexpr ByteSize kCallBytes = ByteSize::MiB(4);
constexpr int kCallThreadsMax = 16;
constexpr ByteSize kConnectionBytes = ByteSize::KiB(256);
// Code, stacks, gRPC's own, metrics.
constexpr ByteSize kBaseBytes = ByteSize::MiB(64);

// Tenants that share a namespace, on average.
constexpr int kPartitionsPerNamespace = 4;

ByteSize Times(int64_t count, ByteSize each) {
  return ByteSize(static_cast<uint64_t>(count) * each.bytes());
}

ByteSize Plus(ByteSize a, ByteSize b) { return ByteSize(a.bytes() + b.bytes()); }

// host:port; a socket's path has no addresses.
absl::Status ValidateNamedTarget(const std::string& target) {
  if (absl::StartsWith(target, "unix:") || absl::StartsWith(target, "[")) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", target, "': a name and a port are wanted, NAME:PORT"));
  }
  return ValidateTarget(target);
}

void CheckAddresses(const RouterConfig& config, ConfigErrors& errors) {
  RpcServer::Options server;
  server.listen_addresses = config.listen;
  server.has_credentials = config.security.has_tls();
  server.insecure = config.security.insecure;
  server.insecure_anywhere = config.security.insecure_anywhere;
  errors.Add(RpcServer::Validate(server));
  config.security.Check(errors);
  errors.Add(config.node_security.Check("node-"));
  config.security.CheckMetricsAddress("metrics-listen", config.metrics_listen, errors);
}

// As the API server takes it for a namespace, a service or a port.
bool IsDnsLabel(absl::string_view text) {
  constexpr size_t kBytesMax = 63;
  return !text.empty() && text.size() <= kBytesMax && text.front() != '-' && text.back() != '-' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_islower(static_cast<unsigned char>(c)) ||
                  absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '-';
         });
}

void CheckKubernetes(const RouterConfig& config, ConfigErrors& errors) {
  const std::vector<std::string> names = absl::StrSplit(config.kubernetes_service, '/');
  errors.Check(names.size() == 2 && IsDnsLabel(names[0]) && IsDnsLabel(names[1]),
               "kubernetes-service", config.kubernetes_service, "NAMESPACE/NAME");
  errors.Check(config.kubernetes_port_name.empty() || IsDnsLabel(config.kubernetes_port_name),
               "kubernetes-port-name", config.kubernetes_port_name, "a port's name, or none");
  const std::string api = config.KubernetesApi();
  if (api.empty()) {
    errors.Check(false, "kubernetes-api", "",
                 "a URL outside a pod, where KUBERNETES_SERVICE_HOST is not set");
    return;
  }
  errors.Add(InField("--kubernetes-api", CurlTransport::Validate({api, config.kubernetes_ca,
                                                                  config.kubernetes_token_file})));
}

void CheckNodes(const RouterConfig& config, ConfigErrors& errors) {
  const std::string value =
      config.nodes.empty() ? "" : absl::StrCat(config.nodes.size(), " addresses");
  const int sources = (config.nodes.empty() ? 0 : 1) + (config.nodes_dns.empty() ? 0 : 1) +
                      (config.kubernetes_service.empty() ? 0 : 1);
  errors.Check(sources == 1 && config.nodes.size() <= kNodesMax, "nodes", value,
               absl::StrCat("the addresses of 1 to ", kNodesMax,
                            " cache nodes, or else one of --nodes-dns and --kubernetes-service"));
  if (!config.nodes_dns.empty()) {
    errors.Add(InField("--nodes-dns", ValidateNamedTarget(config.nodes_dns)));
  }
  if (!config.kubernetes_service.empty()) CheckKubernetes(config, errors);
  errors.CheckRange("nodes-dns-interval-ms", config.nodes_dns_interval, absl::Milliseconds(100),
                    absl::Hours(1));
  errors.CheckRange("nodes-max", int64_t{config.nodes_max}, int64_t{1}, int64_t{kNodesMax});
  absl::flat_hash_set<std::string> seen;
  for (const std::string& node : config.nodes) {
    if (const absl::Status status = ValidateTarget(node); !status.ok()) {
      errors.Add(InField("--nodes", status));
    }
    errors.Check(seen.insert(node).second, "nodes", node, "named once");
  }
}

void CheckPolicy(const RouterConfig& config, ConfigErrors& errors) {
  errors.Add(InField("--route-policy", MakeRoutePolicy(config.route_policy, {}).status()));
  errors.CheckReal("miss-weight", config.miss_weight, 1, 1'000'000);
  errors.CheckRange("short-match-tokens", config.short_match_tokens, int64_t{0}, int64_t{1} << 22);
  errors.CheckReal("prefill-tokens-per-second", config.prefill_tokens_per_second, 1, kRateMax);
  errors.CheckReal("device-tokens-per-second", config.device_tokens_per_second, 0, kRateMax);
  errors.CheckReal("host-tokens-per-second", config.host_tokens_per_second, 0, kRateMax);
  errors.CheckReal("disk-tokens-per-second", config.disk_tokens_per_second, 0, kRateMax);
  errors.CheckReal("same-host-tokens-per-second", config.same_host_tokens_per_second, 0, kRateMax);
  errors.CheckReal("remote-tokens-per-second", config.remote_tokens_per_second, 0, kRateMax);
  errors.CheckRange("replicate-bytes-per-second", config.replicate_bytes_per_second, ByteSize(),
                    kBytesMax);
  errors.CheckRange("replicate-tokens-min", config.replicate_tokens_min, int64_t{1},
                    int64_t{1} << 22);
  errors.CheckReal("replicate-bytes-per-token", config.replicate_bytes_per_token, 1, 1e9);
  errors.CheckRange("replica-kv-tokens", config.replica_kv_tokens, int64_t{0}, int64_t{1} << 40);
}

void CheckTimes(const RouterConfig& config, ConfigErrors& errors) {
  const absl::Duration least = absl::Milliseconds(100);
  errors.CheckRange("degraded-after-ms", config.degraded_after, least, absl::Hours(1));
  errors.CheckRange("out-after-ms", config.out_after, config.degraded_after, absl::Hours(1));
  errors.CheckRange("feed-silence-ms", config.feed_silence, absl::Seconds(1), absl::Hours(1));
  errors.CheckRange("ready-wait-ms", config.ready_wait, absl::ZeroDuration(), absl::Hours(1));
  errors.CheckRange("prefill-ttl-ms", config.prefill_ttl, least, absl::Hours(24));
  errors.CheckRange("decode-ttl-ms", config.decode_ttl, least, absl::Hours(24));
  errors.CheckRange("session-ttl-ms", config.session_ttl, least, absl::Hours(24));
  errors.CheckRange("ramp-ms", config.ramp, absl::ZeroDuration(), absl::Hours(1));
  errors.CheckRange("session-pull-ms", config.session_pull, absl::ZeroDuration(), absl::Hours(1));
  errors.CheckRange("drain-grace-ms", config.drain_grace, absl::ZeroDuration(), absl::Hours(1));
}

void CheckBounds(const RouterConfig& config, ConfigErrors& errors) {
  const auto check = [&](absl::string_view flag, int value, int64_t max) {
    errors.CheckRange(flag, int64_t{value}, int64_t{1}, max);
  };
  if (config.memory_limit.bytes() != 0) {
    errors.CheckRange("memory-limit", config.memory_limit, ByteSize::MiB(64), kBytesMax);
  }
  errors.CheckRange("index-memory", config.index_memory, ByteSize::MiB(1), kBytesMax);
  check("connections-max", config.connections_max, 100'000);
  check("bookings-max", config.bookings_max, 100'000'000);
  check("sessions-max", config.sessions_max, 10'000'000);
  check("speculative-blocks-max", config.speculative_blocks_max, 100'000'000);
  check("answers-remembered-max", config.answers_remembered_max, 10'000'000);
  check("replicas-per-answer-max", config.replicas_per_answer_max, 256);
  check("namespaces-max", config.namespaces_max, 1'000'000);
  errors.CheckRange("record-decisions-bytes", config.record_decisions_bytes, ByteSize::MiB(4),
                    kBytesMax);
  errors.CheckReal("record-decisions-share", config.record_decisions_share, 1e-6, 1);
}

}  // namespace

absl::Status RouterConfig::Validate() const {
  ConfigErrors errors;
  CheckAddresses(*this, errors);
  CheckNodes(*this, errors);
  CheckPolicy(*this, errors);
  CheckTimes(*this, errors);
  CheckBounds(*this, errors);
  return errors.ToStatus();
}

std::string RouterConfig::KubernetesApi() const {
  if (!kubernetes_api.empty()) return kubernetes_api;
  const char* const host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* const port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (host == nullptr || port == nullptr) return "";
  const bool is_v6 = absl::StrContains(host, ':');
  return absl::StrCat("https://", is_v6 ? "[" : "", host, is_v6 ? "]" : "", ":", port);
}

size_t RouterConfig::NodesMax() const {
  return nodes.empty() ? static_cast<size_t>(nodes_max) : nodes.size();
}

RouterOptions RouterConfig::CoreOptions() const {
  RouterOptions options;
  options.members_to_come = nodes.empty();
  options.feed.degraded_after = degraded_after;
  options.feed.out_after = out_after;
  options.speculation.marks_max = static_cast<size_t>(speculative_blocks_max);
  options.booking.prefill_ttl = prefill_ttl;
  options.booking.decode_ttl = decode_ttl;
  options.booking.bookings_max = static_cast<size_t>(bookings_max);
  options.sessions.sessions_max = static_cast<size_t>(sessions_max);
  options.sessions.ttl = session_ttl;
  options.booking.prefill_tokens_per_second_prior = prefill_tokens_per_second;
  options.transfer.own = {device_tokens_per_second, host_tokens_per_second, disk_tokens_per_second};
  options.same_host_tokens_per_second = same_host_tokens_per_second;
  options.remote_tokens_per_second = remote_tokens_per_second;
  if (replica_kv_tokens > 0) options.replica_kv_tokens = static_cast<uint64_t>(replica_kv_tokens);
  options.ready_wait = ready_wait;
  options.tick_advance_max = std::min(options.tick_advance_max, degraded_after * 0.8);
  options.slots_max = index_memory.bytes() / BlockHolders::kBytesPerSlot;
  options.namespaces_max = static_cast<size_t>(namespaces_max);
  options.partitions_max = static_cast<size_t>(namespaces_max) * kPartitionsPerNamespace;
  options.replicas_per_answer_max = static_cast<size_t>(replicas_per_answer_max);
  options.answers_remembered_max = static_cast<size_t>(answers_remembered_max);
  return options;
}

PrefixCostOptions RouterConfig::PolicyOptions() const {
  PrefixCostOptions options;
  options.miss_weight = miss_weight;
  options.short_match_tokens = static_cast<uint64_t>(short_match_tokens);
  options.ramp_seconds = absl::ToDoubleSeconds(ramp);
  options.session_seconds = absl::ToDoubleSeconds(session_pull);
  return options;
}

DecisionRecorderOptions RouterConfig::RecorderOptions() const {
  DecisionRecorderOptions options;
  options.bytes_max = record_decisions_bytes.bytes();
  options.share = record_decisions_share;
  options.policy = route_policy;
  options.policy_options = PolicyOptions();
  return options;
}

ReplicationOptions RouterConfig::CopyOptions() const {
  ReplicationOptions options;
  options.bytes_per_second = replicate_bytes_per_second.bytes();
  options.prefix_tokens_min = static_cast<uint64_t>(replicate_tokens_min);
  options.bytes_per_token = replicate_bytes_per_token;
  return options;
}

MemorySum RouterConfig::Memory() const {
  const auto node_count = static_cast<int64_t>(NodesMax());
  MemorySum sum;
  sum.Add("index", index_memory, "index-memory");
  sum.Add("speculative blocks", Times(speculative_blocks_max, kMarkBytes),
          "speculative-blocks-max");
  sum.Add("bookings",
          Times(bookings_max,
                Plus(kBookingBytes, Times(replicas_per_answer_max, kBookingReplicaBytes))),
          "bookings-max");
  sum.Add("sessions", Times(sessions_max, kSessionBytes), "sessions-max");
  sum.Add("answers remembered",
          Times(answers_remembered_max,
                Plus(kAnswerBytes, Times(replicas_per_answer_max, kAnswerReplicaBytes))),
          "answers-remembered-max");
  const ByteSize of_namespace =
      Plus(Plus(kNamespaceBytes, Times(node_count, kNamespaceHolderBytes)),
           Times(kPartitionsPerNamespace, kPartitionBytes));
  sum.Add("namespaces and tenants", Times(namespaces_max, of_namespace), "namespaces-max");
  if (!record_decisions.empty()) {
    sum.Add("decisions to record", Plus(ByteSize(kDecisionQueueBytes), kDecisionWriterBytes),
            "record-decisions");
  }
  if (replicate_bytes_per_second.bytes() > 0) {
    sum.Add("copies of hot prefixes", kCopiesBytes, "replicate-bytes-per-second");
  }
  sum.Add("feeds", Times(node_count, kFeedBytes), nodes.empty() ? "nodes-max" : "nodes");
  sum.Add("connections", TransportBytes(), "connections-max");
  sum.Add("calls that run", Times(kCallThreadsMax, kCallBytes));
  sum.Add("allocator's reserve", AllocatorRetainedMax());
  sum.Add("base", kBaseBytes);
  return sum;
}

ByteSize RouterConfig::TransportBytes() const { return Times(connections_max, kConnectionBytes); }

absl::StatusOr<ByteSize> MemoryLimitOf(const RouterConfig& config, absl::string_view root) {
  return cairn::MemoryLimitOf(config.memory_limit, config.Memory(), root);
}

}  // namespace cairn::router
