#include "cache_node/service/node_flags.h"

#include "absl/flags/flag.h"
#include "cache_node/store/policies/policy_registry.h"
#include "common/security/server_security_flags.h"

ABSL_FLAG(std::vector<std::string>, listen, {"127.0.0.1:7070"},
          "Addresses to serve gRPC on: host:port, [v6]:port or unix:/path, comma-separated.");
ABSL_FLAG(std::string, quota_file, "",
          "File of what each tenant may take of this node, re-read: a line a tenant or * for the "
          "rest, with host=, host-kept=, disk=, leased=, reserved=, pinned= (sizes), requests=, "
          "bytes= (a second). Empty: no limits.");
ABSL_FLAG(
    std::string, public_prefix_file, "",
    "Prefixes that may be kept for all tenants (tenant public), re-read: a line each, the key "
    "of its last block. Empty: none; with --insecure all.");
ABSL_FLAG(std::string, metrics_listen, "127.0.0.1:7071",
          "Address of /metrics over HTTP; empty serves none.");
ABSL_FLAG(std::string, node_id, "", "Name of this node, unique in the fleet. Required.");
ABSL_FLAG(std::string, worker_address, "", "Address of the model worker beside this node.");
ABSL_FLAG(int64_t, worker_kv_tokens, 0,
          "KV tokens that the worker's own memory holds, for routers; 0: not known.");
ABSL_FLAG(std::vector<std::string>, labels, {},
          "Labels that requests can choose by at routers: key=value, comma-separated, at most 16.");
ABSL_FLAG(std::vector<std::string>, advertise, {},
          "Addresses at which clients reach this node; empty: as it listens.");

ABSL_FLAG(cairn::ByteSize, memory_limit, cairn::ByteSize(),
          "Resident memory never exceeds this; 0: the cgroup's limit, or 80 % of the machine.");
ABSL_FLAG(cairn::ByteSize, host_memory, cairn::ByteSize::GiB(1), "Pool of KV blocks.");
ABSL_FLAG(cairn::ByteSize, index_memory, cairn::ByteSize::MiB(128), "Index of the blocks.");
ABSL_FLAG(cairn::ByteSize, namespace_memory, cairn::ByteSize::MiB(64),
          "Namespaces and their names, retired ones among them.");
ABSL_FLAG(cairn::ByteSize, request_memory, cairn::ByteSize::MiB(32),
          "Answers remembered so that retries with a request id are safe.");
ABSL_FLAG(cairn::ByteSize, leased_memory, cairn::ByteSize(),
          "Bytes of the pool that leases may hold; 0: half.");
ABSL_FLAG(cairn::ByteSize, reserved_memory, cairn::ByteSize(),
          "Bytes of the pool that writers may hold reserved; 0: half.");
ABSL_FLAG(cairn::ByteSize, pin_memory, cairn::ByteSize(),
          "Bytes of the pool that may be pinned by wish; 0: a quarter.");
ABSL_FLAG(std::string, eviction_policy, "",
          "Which blocks leave host memory for others, and which are not let in: reuse, lru or "
          "s3_fifo; empty: reuse, and lru where there is a disk tier or a device.");
ABSL_FLAG(int, connections_max, 1024, "Connections that the memory sum allows for, 256 KiB each.");

ABSL_FLAG(std::string, disk_dir, "",
          "Directory of the disk tier, for this node alone; empty: no disk tier.");
ABSL_FLAG(cairn::ByteSize, disk_bytes, cairn::ByteSize(),
          "Bytes that the disk tier may take there. Required with --disk-dir.");
ABSL_FLAG(cairn::ByteSize, disk_index_memory, cairn::ByteSize::MiB(256),
          "Index of the blocks on disk, about 100 bytes a block; beyond it none is written.");
ABSL_FLAG(std::string, spill_admission, "always",
          "Which blocks are written to disk: always (each, as it is committed) or second-touch "
          "(those that are used again).");
ABSL_FLAG(int, disk_read_threads, 4, "Blocks read from disk at once.");
ABSL_FLAG(cairn::ByteSize, spill_block_bytes, cairn::ByteSize::MiB(16),
          "Largest block that is written to disk: memory is kept for several of that size.");
ABSL_FLAG(cairn::ByteSize, spill_file_bytes, cairn::ByteSize(),
          "Size of a file of blocks, the unit that leaves when the disk tier is full; 0: the "
          "smaller of 256MiB and a sixteenth of --disk-bytes.");
ABSL_FLAG(int, spill_file_age_ms, 1'000,
          "Longest time that a block waits for others before its file is finished.");
ABSL_FLAG(cairn::ByteSize, spill_pinned_bytes, cairn::ByteSize(),
          "Bytes of the pool that are held while they are written; 0: an eighth.");
ABSL_FLAG(cairn::ByteSize, spill_queue_bytes, cairn::ByteSize::GiB(4),
          "Bytes of blocks that may wait to be written; those beyond it are not.");

ABSL_FLAG(std::string, device, "none",
          "Device whose memory holds copies of blocks above host memory: none, cuda:N, or emulated "
          "(plain memory, for tests).");
ABSL_FLAG(cairn::ByteSize, device_bytes, cairn::ByteSize(),
          "Bytes of its memory for blocks, taken at the start, of which a block may have a "
          "sixteenth. Required with --device.");
ABSL_FLAG(cairn::ByteSize, device_index_memory, cairn::ByteSize::MiB(64),
          "What is known of blocks there; beyond it one is copied only in place of others.");

ABSL_FLAG(cairn::ByteSize, decode_memory, cairn::ByteSize(),
          "Memory for tokens of running sequences (served decode), beside --host-memory; 0: none "
          "run here.");
ABSL_FLAG(int, decode_threads, 0, "Threads that compute attention; 0: one for each processor.");
ABSL_FLAG(
    int, decode_streams_max, 0,
    "Decode streams that may be open. 0: 64 with --decode-memory; without that this node serves no "
    "attention. Given alone, attention is served over leased blocks, and no sequence runs.");
ABSL_FLAG(cairn::ByteSize, decode_in_flight_bytes, cairn::ByteSize::MiB(32),
          "Requests of attention and their answers in memory at once.");
ABSL_FLAG(int, decode_idle_ms, 60'000,
          "A sequence that nothing is asked of for so long ends, where its opening does not say.");
ABSL_FLAG(int, decode_stall_ms, 5'000,
          "A decode stream whose client takes no answer for so long is cut.");

ABSL_FLAG(std::string, peer_file, "",
          "Nodes that this one may pull blocks from, re-read: a line each, node id and address. "
          "Empty: it pulls nothing.");
ABSL_FLAG(std::string, peer_tls_ca, "",
          "CA of the peers' certificates, PEM, re-read; empty: peers are reached in plain text.");
ABSL_FLAG(std::string, peer_tls_cert, "", "Certificate to show to peers, PEM, re-read.");
ABSL_FLAG(std::string, peer_tls_key, "", "Private key of --peer-tls-cert.");
ABSL_FLAG(std::string, peer_tls_name, "",
          "Name that the peers' certificates have; empty: the host of each address.");
ABSL_FLAG(std::string, peer_token_file, "",
          "File with the bearer token to send to peers, one line, re-read.");
ABSL_FLAG(cairn::ByteSize, pull_bytes_per_second, cairn::ByteSize::MiB(128),
          "Payload that pulls may bring in a second, all together; 0: no bound.");
ABSL_FLAG(int, pull_threads, 2, "Transfers from peers at once.");

ABSL_FLAG(
    std::string, local_socket, "auto",
    "Unix socket for clients of this host: a path, @ and an abstract name, or auto for a name "
    "of its own; empty: they use the network.");
ABSL_FLAG(int, local_connections_max, 128, "Connections on it.");
ABSL_FLAG(cairn::ByteSize, local_staging_memory, cairn::ByteSize::MiB(16),
          "Memory that writers of this host fill before the node takes it in.");
ABSL_FLAG(int, local_return_ms, 5'000,
          "A client of this host that does not give back memory for so long is cut.");

ABSL_FLAG(cairn::ByteSize, in_flight_bytes, cairn::ByteSize::MiB(64),
          "Payload admitted from the network and not yet in the pool.");
ABSL_FLAG(int, writers_waiting_max, 2048, "Write streams that may wait for admission.");
ABSL_FLAG(int, admission_wait_ms, 10'000, "Longest wait of a Write stream for admission.");
ABSL_FLAG(int, write_stall_ms, 2'000,
          "An admitted Write stream that sends nothing for so long is cut while others wait.");
ABSL_FLAG(int, gets_max, 1024, "Get calls that run at once.");
ABSL_FLAG(int, get_stall_ms, 30'000, "A Get whose reader takes nothing for so long is cut.");
ABSL_FLAG(int, executor_threads, 2, "Threads for calls that hash, remake memory or remove much.");
ABSL_FLAG(int, executor_queue_max, 4096, "Such calls that may wait for a thread.");

ABSL_FLAG(int, lease_ttl_ms, 30'000, "Time to live of a lease's share when none is asked for.");
ABSL_FLAG(int, lease_ttl_max_ms, 600'000, "Longest that may be asked for.");
ABSL_FLAG(int, token_ttl_ms, 30'000, "Life of a write token without a write, by default.");
ABSL_FLAG(int, token_ttl_max_ms, 300'000, "Longest that may be asked for.");
ABSL_FLAG(int, token_life_max_ms, 1'800'000, "Longest life of a token, however often renewed.");
ABSL_FLAG(int, removed_remembered, 65'536, "Removed keys remembered, to say why a block is gone.");

ABSL_FLAG(int, feed_shards, 64, "Shards of the feed.");
ABSL_FLAG(int, feed_queue_records, 4096, "Records that may wait for one watcher of the feed.");
ABSL_FLAG(int, heartbeat_ms, 500, "Time between heartbeats of the feed.");
ABSL_FLAG(int, feed_stall_ms, 30'000, "A watcher that takes no message for so long is cut.");

ABSL_FLAG(int, drain_grace_ms, 10'000, "Time that open calls and leases get after SIGTERM.");

namespace cairn::node {

namespace {

DiskConfig DiskConfigFromFlags() {
  DiskConfig config;
  config.dir = absl::GetFlag(FLAGS_disk_dir);
  config.bytes = absl::GetFlag(FLAGS_disk_bytes);
  config.index_memory = absl::GetFlag(FLAGS_disk_index_memory);
  config.spill_admission = absl::GetFlag(FLAGS_spill_admission);
  config.read_threads = absl::GetFlag(FLAGS_disk_read_threads);
  config.spill_block_bytes = absl::GetFlag(FLAGS_spill_block_bytes);
  config.spill_file_bytes = absl::GetFlag(FLAGS_spill_file_bytes);
  config.spill_file_age = absl::Milliseconds(absl::GetFlag(FLAGS_spill_file_age_ms));
  config.spill_pinned_bytes = absl::GetFlag(FLAGS_spill_pinned_bytes);
  config.spill_queue_bytes = absl::GetFlag(FLAGS_spill_queue_bytes);
  return config;
}

DeviceConfig DeviceConfigFromFlags() {
  DeviceConfig config;
  config.device = absl::GetFlag(FLAGS_device);
  config.bytes = absl::GetFlag(FLAGS_device_bytes);
  config.index_memory = absl::GetFlag(FLAGS_device_index_memory);
  return config;
}

DecodeConfig DecodeConfigFromFlags() {
  DecodeConfig config;
  config.memory = absl::GetFlag(FLAGS_decode_memory);
  config.threads = absl::GetFlag(FLAGS_decode_threads);
  config.streams_max = absl::GetFlag(FLAGS_decode_streams_max);
  config.in_flight = absl::GetFlag(FLAGS_decode_in_flight_bytes);
  config.idle = absl::Milliseconds(absl::GetFlag(FLAGS_decode_idle_ms));
  config.stall = absl::Milliseconds(absl::GetFlag(FLAGS_decode_stall_ms));
  return config;
}

PullConfig PullConfigFromFlags() {
  PullConfig config;
  config.peer_file = absl::GetFlag(FLAGS_peer_file);
  config.security.tls.ca = absl::GetFlag(FLAGS_peer_tls_ca);
  config.security.tls.cert = absl::GetFlag(FLAGS_peer_tls_cert);
  config.security.tls.key = absl::GetFlag(FLAGS_peer_tls_key);
  config.security.token_file = absl::GetFlag(FLAGS_peer_token_file);
  config.tls_name = absl::GetFlag(FLAGS_peer_tls_name);
  config.bytes_per_second = absl::GetFlag(FLAGS_pull_bytes_per_second);
  config.threads = absl::GetFlag(FLAGS_pull_threads);
  return config;
}

}  // namespace

LocalConfig LocalConfigFromFlags() {
  LocalConfig config;
  config.socket = absl::GetFlag(FLAGS_local_socket);
  config.connections_max = absl::GetFlag(FLAGS_local_connections_max);
  config.staging_memory = absl::GetFlag(FLAGS_local_staging_memory);
  config.return_within = absl::Milliseconds(absl::GetFlag(FLAGS_local_return_ms));
  return config;
}

NodeConfig ConfigFromFlags() {
  const auto ms = [](int count) { return absl::Milliseconds(count); };
  NodeConfig config;
  config.listen = absl::GetFlag(FLAGS_listen);
  config.security = ServerSecurityFromFlags();
  config.metrics_listen = absl::GetFlag(FLAGS_metrics_listen);
  config.node_id = absl::GetFlag(FLAGS_node_id);
  config.quota_file = absl::GetFlag(FLAGS_quota_file);
  config.public_prefix_file = absl::GetFlag(FLAGS_public_prefix_file);
  config.worker_address = absl::GetFlag(FLAGS_worker_address);
  config.worker_kv_tokens = absl::GetFlag(FLAGS_worker_kv_tokens);
  config.labels = absl::GetFlag(FLAGS_labels);
  config.advertise = absl::GetFlag(FLAGS_advertise);
  config.memory_limit = absl::GetFlag(FLAGS_memory_limit);
  config.host_memory = absl::GetFlag(FLAGS_host_memory);
  config.index_memory = absl::GetFlag(FLAGS_index_memory);
  config.namespace_memory = absl::GetFlag(FLAGS_namespace_memory);
  config.request_memory = absl::GetFlag(FLAGS_request_memory);
  config.leased_memory = absl::GetFlag(FLAGS_leased_memory);
  config.reserved_memory = absl::GetFlag(FLAGS_reserved_memory);
  config.pin_memory = absl::GetFlag(FLAGS_pin_memory);
  config.connections_max = absl::GetFlag(FLAGS_connections_max);
  config.eviction_policy = absl::GetFlag(FLAGS_eviction_policy);
  config.disk = DiskConfigFromFlags();
  config.device = DeviceConfigFromFlags();
  config.decode = DecodeConfigFromFlags();
  config.pull = PullConfigFromFlags();
  config.local = LocalConfigFromFlags();
  config.in_flight_bytes = absl::GetFlag(FLAGS_in_flight_bytes);
  config.writers_waiting_max = absl::GetFlag(FLAGS_writers_waiting_max);
  config.admission_wait = ms(absl::GetFlag(FLAGS_admission_wait_ms));
  config.write_stall = ms(absl::GetFlag(FLAGS_write_stall_ms));
  config.gets_max = absl::GetFlag(FLAGS_gets_max);
  config.get_stall = ms(absl::GetFlag(FLAGS_get_stall_ms));
  config.executor_threads = absl::GetFlag(FLAGS_executor_threads);
  config.executor_queue_max = absl::GetFlag(FLAGS_executor_queue_max);
  config.lease_ttl = ms(absl::GetFlag(FLAGS_lease_ttl_ms));
  config.lease_ttl_max = ms(absl::GetFlag(FLAGS_lease_ttl_max_ms));
  config.token_ttl = ms(absl::GetFlag(FLAGS_token_ttl_ms));
  config.token_ttl_max = ms(absl::GetFlag(FLAGS_token_ttl_max_ms));
  config.token_life_max = ms(absl::GetFlag(FLAGS_token_life_max_ms));
  config.removed_remembered = absl::GetFlag(FLAGS_removed_remembered);
  config.feed_shards = absl::GetFlag(FLAGS_feed_shards);
  config.feed_queue_records = absl::GetFlag(FLAGS_feed_queue_records);
  config.heartbeat = ms(absl::GetFlag(FLAGS_heartbeat_ms));
  config.feed_stall = ms(absl::GetFlag(FLAGS_feed_stall_ms));
  config.drain_grace = ms(absl::GetFlag(FLAGS_drain_grace_ms));
  return config;
}

}  // namespace cairn::node
