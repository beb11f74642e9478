// NodeConfig: everything that a cache node is told at start. The defaults are those of the flags.
//
// A plain value; Validate says what is wrong with it, all at once, before anything listens.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cache_node/local/local_config.h"
#include "cache_node/pull/pull_config.h"
#include "cache_node/service/decode_config.h"
#include "cache_node/service/device_config.h"
#include "cache_node/service/disk_config.h"
#include "cache_node/service/node_facts.h"
#include "cache_node/store/policies/policy_registry.h"
#include "common/security/server_security.h"
#include "common/server/byte_size.h"
#include "common/server/memory_sum.h"

namespace cairn::node {

struct NodeConfig {
  std::vector<std::string> listen = {"127.0.0.1:7070"};
  ServerSecurityConfig security;
  std::string quota_file;                         // Of tenants; empty: nobody has a limit.
  std::string public_prefix_file;                 // Empty: none is listed; see Node::Start.
  std::string metrics_listen = "127.0.0.1:7071";  // Empty: no metrics are served.

  std::string node_id;
  std::string worker_address;
  int64_t worker_kv_tokens = 0;        // That its own memory holds; 0: not known.
  std::vector<std::string> labels;     // key=value, for requests to choose by.
  std::vector<std::string> advertise;  // Empty: as it listens.

  // Memory. The limit 0 takes the machine's (MemoryLimitOf).
  ByteSize memory_limit;
  ByteSize host_memory = ByteSize::GiB(1);
  ByteSize index_memory = ByteSize::MiB(128);
  ByteSize namespace_memory = ByteSize::MiB(64);
  ByteSize request_memory = ByteSize::MiB(32);
  ByteSize leased_memory;    // 0: half of the pool.
  ByteSize reserved_memory;  // 0: half of the pool.
  ByteSize pin_memory;       // 0: a quarter of the pool.
  int connections_max = 1024;
  std::string eviction_policy;  // By name; empty: EvictionPolicyName says which.

  DiskConfig disk;
  DeviceConfig device;
  DecodeConfig decode;
  PullConfig pull;
  LocalConfig local;

  // Calls.
  ByteSize in_flight_bytes = ByteSize::MiB(64);
  int writers_waiting_max = 2048;
  absl::Duration admission_wait = absl::Seconds(10);
  absl::Duration write_stall = absl::Seconds(2);
  int gets_max = 1024;
  absl::Duration get_stall = absl::Seconds(30);
  int executor_threads = 2;
  int executor_queue_max = 4096;

  // Leases and tokens.
  absl::Duration lease_ttl = absl::Seconds(30);
  absl::Duration lease_ttl_max = absl::Minutes(10);
  absl::Duration token_ttl = absl::Seconds(30);
  absl::Duration token_ttl_max = absl::Minutes(5);
  absl::Duration token_life_max = absl::Minutes(30);
  int removed_remembered = 65536;

  // Feed.
  int feed_shards = 64;
  int feed_queue_records = 4096;
  absl::Duration heartbeat = absl::Milliseconds(500);
  absl::Duration feed_stall = absl::Seconds(30);

  absl::Duration drain_grace = absl::Seconds(10);

  // INVALID_ARGUMENT with one line for each flag that is wrong.
  absl::Status Validate() const;

  // The terms of what the process may come to hold.
  MemorySum Memory() const;
  // The one that is named, or the default: lru where there is a disk tier or a device, since what
  // comes in must stay until it is written there, and a policy that knows it to be of little worth
  // lets it go before.
  absl::string_view EvictionPolicyName() const;
  // The same for Describe.
  NodeFacts::Memory MemoryFacts(ByteSize limit) const;
};

// The limit to keep: common/server/memory_limit.h, over this configuration's sum.
absl::StatusOr<ByteSize> MemoryLimitOf(const NodeConfig& config, absl::string_view root);

}  // namespace cairn::node
