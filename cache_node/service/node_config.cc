#include "cache_node/service/node_config.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cache_node/service/memory_terms.h"
#include "cache_node/store/feed_hub.h"
#include "common/rpc/field_status.h"
#include "common/rpc/labels.h"
#include "common/server/allocator.h"
#include "common/server/config_errors.h"
#include "common/server/memory_limit.h"
#include "common/server/rpc_server.h"
#include "common/wire/limits.h"

namespace cairn::node {
namespace {

constexpr ByteSize kBytesMax = ByteSize::GiB(16 << 10);

void CheckNames(const NodeConfig& config, ConfigErrors& errors) {
  errors.CheckNotEmpty("node-id", config.node_id);
  errors.Check(config.node_id.size() <= kNameBytesMax, "node-id", config.node_id,
               absl::StrCat("at most ", kNameBytesMax, " bytes"));
  errors.Check(config.worker_address.size() <= kNameBytesMax, "worker-address",
               config.worker_address, absl::StrCat("at most ", kNameBytesMax, " bytes"));
  errors.CheckRange("worker-kv-tokens", config.worker_kv_tokens, int64_t{0}, int64_t{1} << 40);
  errors.Add(InField("--labels", LabelsFromText(config.labels).status()));
  for (const std::string& address : config.advertise) {
    errors.Check(!address.empty() && address.size() <= kNameBytesMax &&
                     address.find(':') != std::string::npos,
                 "advertise", address, "host:port, as clients reach the node");
  }
  RpcServer::Options server;
  server.listen_addresses = config.listen;
  server.has_credentials = config.security.has_tls();
  server.insecure = config.security.insecure;
  server.insecure_anywhere = config.security.insecure_anywhere;
  errors.Add(RpcServer::Validate(server));
  config.security.Check(errors);
  config.security.CheckMetricsAddress("metrics-listen", config.metrics_listen, errors);
}

void CheckMemory(const NodeConfig& config, ConfigErrors& errors) {
  if (config.memory_limit.bytes() != 0) {
    errors.CheckRange("memory-limit", config.memory_limit, ByteSize::MiB(64), kBytesMax);
  }
  errors.CheckRange("host-memory", config.host_memory, ByteSize::MiB(1), kBytesMax);
  errors.CheckRange("index-memory", config.index_memory, ByteSize::MiB(1), kBytesMax);
  errors.CheckRange("namespace-memory", config.namespace_memory, ByteSize::MiB(1),
                    ByteSize::GiB(16));
  errors.CheckRange("request-memory", config.request_memory, ByteSize::MiB(1), ByteSize::GiB(16));
  errors.CheckRange("leased-memory", config.leased_memory, ByteSize(), config.host_memory);
  errors.CheckRange("reserved-memory", config.reserved_memory, ByteSize(), config.host_memory);
  errors.CheckRange("pin-memory", config.pin_memory, ByteSize(), config.host_memory);
  errors.CheckRange("connections-max", int64_t{config.connections_max}, int64_t{1},
                    int64_t{100'000});
  const std::vector<absl::string_view> policies = EvictionPolicyNames();
  errors.Check(
      std::find(policies.begin(), policies.end(), config.EvictionPolicyName()) != policies.end(),
      "eviction-policy", config.eviction_policy,
      absl::StrCat("one of ", absl::StrJoin(policies, ", ")));
}

void CheckCalls(const NodeConfig& config, ConfigErrors& errors) {
  errors.CheckRange("in-flight-bytes", config.in_flight_bytes, ByteSize(kMessageBytesMax),
                    kBytesMax);
  errors.CheckRange("writers-waiting-max", int64_t{config.writers_waiting_max}, int64_t{0},
                    int64_t{100'000});
  errors.CheckRange("admission-wait-ms", config.admission_wait, absl::Milliseconds(1),
                    absl::Minutes(10));
  errors.CheckRange("write-stall-ms", config.write_stall, absl::Milliseconds(1), absl::Minutes(10));
  errors.CheckRange("gets-max", int64_t{config.gets_max}, int64_t{1}, int64_t{100'000});
  errors.CheckRange("get-stall-ms", config.get_stall, absl::Milliseconds(10), absl::Hours(1));
  errors.CheckRange("executor-threads", int64_t{config.executor_threads}, int64_t{1}, int64_t{256});
  errors.CheckRange("executor-queue-max", int64_t{config.executor_queue_max}, int64_t{1},
                    int64_t{1'000'000});
}

void CheckTimes(const NodeConfig& config, ConfigErrors& errors) {
  const absl::Duration ms = absl::Milliseconds(1);
  errors.CheckRange("lease-ttl-max-ms", config.lease_ttl_max, ms, absl::Hours(24));
  errors.CheckRange("lease-ttl-ms", config.lease_ttl, ms, config.lease_ttl_max);
  errors.CheckRange("token-ttl-max-ms", config.token_ttl_max, ms, absl::Hours(24));
  errors.CheckRange("token-ttl-ms", config.token_ttl, ms, config.token_ttl_max);
  errors.CheckRange("token-life-max-ms", config.token_life_max, config.token_ttl_max,
                    absl::Hours(24));
  errors.CheckRange("removed-remembered", int64_t{config.removed_remembered}, int64_t{1},
                    int64_t{100'000'000});
  errors.CheckRange("feed-shards", int64_t{config.feed_shards}, int64_t{1}, int64_t{256});
  errors.CheckRange("feed-queue-records", int64_t{config.feed_queue_records}, int64_t{1},
                    int64_t{100'000'000});
  errors.CheckRange("heartbeat-ms", config.heartbeat, absl::Milliseconds(10), absl::Minutes(1));
  errors.CheckRange("feed-stall-ms", config.feed_stall, absl::Milliseconds(10), absl::Hours(1));
  errors.CheckRange("drain-grace-ms", config.drain_grace, absl::ZeroDuration(), absl::Hours(1));
}

}  // namespace

absl::Status NodeConfig::Validate() const {
  ConfigErrors errors;
  CheckNames(*this, errors);
  CheckMemory(*this, errors);
  disk.Check(host_memory, errors);
  device.Check(errors);
  decode.Check(errors);
  pull.Check(errors);
  local.Check(errors);
  CheckCalls(*this, errors);
  CheckTimes(*this, errors);
  return errors.ToStatus();
}

absl::string_view NodeConfig::EvictionPolicyName() const {
  if (!eviction_policy.empty()) return eviction_policy;
  const bool host_alone = !disk.on() && !device.on();
  return host_alone ? kDefaultEvictionPolicy : kDefaultEvictionPolicyWithDisk;
}

MemorySum NodeConfig::Memory() const {
  MemorySum sum;
  for (const MemoryTerm& term : MemoryTermsOf(*this)) sum.Add(term.name, term.size, term.flag);
  return sum;
}

NodeFacts::Memory NodeConfig::MemoryFacts(ByteSize limit) const {
  NodeFacts::Memory memory{.terms = {}, .limit_bytes = limit.bytes()};
  for (const MemoryTerm& term : MemoryTermsOf(*this)) {
    v1::MemoryTerm message;
    message.set_name(term.name);
    message.set_bytes(term.size.bytes());
    memory.terms.push_back(std::move(message));
  }
  return memory;
}

absl::StatusOr<ByteSize> MemoryLimitOf(const NodeConfig& config, absl::string_view root) {
  return cairn::MemoryLimitOf(config.memory_limit, config.Memory(), root);
}

}  // namespace cairn::node
