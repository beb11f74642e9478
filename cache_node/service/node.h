// Node: a whole cache node in one object: the store, its threads, and the servers in front of it.
//
// Start makes everything and serves; Drain says goodbye in order; the destructor stops at once.
// Everything is torn down from the outside in: servers before threads before the store, and the
// store only after gRPC has let go of the last pinned bytes; if it does not within 10 s of the
// servers' end, the process aborts rather than free memory under it. Drain may be called beside
// running calls, from one thread. Used by main and by tests in one process.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cache_node/local/node_local.h"
#include "cache_node/pull/node_pulls.h"
#include "cache_node/service/cache_node_service.h"
#include "cache_node/service/counted_pin.h"
#include "cache_node/service/disk_bells.h"
#include "cache_node/service/disk_metrics.h"
#include "cache_node/service/disk_threads.h"
#include "cache_node/service/feed_messages.h"
#include "cache_node/service/feed_router.h"
#include "cache_node/service/feed_waker.h"
#include "cache_node/service/generic_service.h"
#include "cache_node/service/get_slots.h"
#include "cache_node/service/in_flight_bytes.h"
#include "cache_node/service/node_calls.h"
#include "cache_node/service/node_config.h"
#include "cache_node/service/node_decode.h"
#include "cache_node/service/node_device.h"
#include "cache_node/service/node_facts.h"
#include "cache_node/service/node_metrics.h"
#include "cache_node/service/public_watch.h"
#include "cache_node/service/request_memory.h"
#include "cache_node/service/rpc_metrics.h"
#include "cache_node/service/settled_waiter.h"
#include "cache_node/service/waiting_calls.h"
#include "cache_node/spill/tier_ledger.h"
#include "cache_node/store/block_store.h"
#include "cache_node/tenants/tenant_limits.h"
#include "cache_node/tenants/tenant_rates.h"
#include "cache_node/tiers/disk/disk_tier.h"
#include "common/base/clock.h"
#include "common/base/guarded_time.h"
#include "common/base/random_source.h"
#include "common/identity/block_hasher.h"
#include "common/metrics/metrics.h"
#include "common/security/audit_trail.h"
#include "common/security/file_watch.h"
#include "common/security/file_watch_metrics.h"
#include "common/security/server_security.h"
#include "common/server/executor.h"
#include "common/server/line_log.h"
#include "common/server/metrics_server.h"
#include "common/server/periodic_thread.h"
#include "common/server/rpc_server.h"
#include "common/server/wake_event.h"

namespace cairn::node {

class Node {
 public:
  // How often time passes in the store and the queues.
  static constexpr absl::Duration kTick = absl::Milliseconds(20);
  // Time guards advance by at most this much a tick (GuardedTime).
  static constexpr absl::Duration kTickAdvanceMax = absl::Milliseconds(500);
  // After the grace, calls have this long to hear their status.
  static constexpr absl::Duration kCutGrace = absl::Milliseconds(500);

  // Gets lines for people, audit lines (audit.h) among them; called on several threads.
  using Log = LineLog;

  // Validates, checks memory, reads what says who may call, opens disk tier and device, takes the
  // pool, listens. `disk`, where it is given, is used in place of the tier in config.disk.dir, and
  // borrowed. `log` may be null.
  static absl::StatusOr<std::unique_ptr<Node>> Start(const NodeConfig& config,
                                                     DiskTier* disk = nullptr, Log log = nullptr);
  ~Node();

  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // As bound.
  std::vector<std::string> addresses() const;
  // 0 when no metrics are served.
  int metrics_port() const;
  BlockStore& store() { return *store_; }
  const Metrics& metrics() const { return metrics_; }
  const StoreCounters& counters() const { return counters_; }

  // Says that it drains, in health and feed, and refuses new reserves and leases; gives open
  // leases, tokens and streams the grace to end, and blocks that are only in memory to be written
  // to disk; then ends the feed and cuts what is left. Once.
  void Drain();

 private:
  // The tier of a node: its own, or a borrowed one; none without a disk tier.
  struct Disk {
    std::unique_ptr<DiskTier> own;
    DiskTier* tier = nullptr;
  };

  // What Start opened. The memory is pinned by the device.
  struct Opened {
    Disk disk;
    std::unique_ptr<NodeDevice> device;  // Null without one.
    std::unique_ptr<HostMemory> memory;
    std::unique_ptr<ServerSecurity> security;
    std::unique_ptr<TenantQuotaFile> quotas;            // Null where tenants have no limits.
    std::unique_ptr<PublicPrefixFile> public_prefixes;  // Null where none are listed.
    NodePulls::Opened pulls;
    Log log;
  };

  Node(const NodeConfig& config, ByteSize limit, Opened opened);

  void LimitTenants(std::unique_ptr<TenantQuotaFile> quotas);

  BlockStore::Signals StoreSignals();
  NodePulls::Parts PullParts();
  NodeLocal::Parts LocalParts();
  NodeDecode::Parts DecodeParts();
  void MakeDiskThreads();

  absl::Status Listen();
  void Tick();
  bool IsIdle() const;
  CacheNodeService::Parts ServiceParts();
  GenericService::Parts GenericParts();
  // Until gRPC has destroyed the slices that hold pins.
  void AwaitPinsReleased();

  const NodeConfig config_;
  const std::unique_ptr<ServerSecurity> security_;
  const Log log_;
  SystemClock clock_;
  SecureRandom random_;
  Sha256BlockHasher hasher_;
  Metrics metrics_;
  RpcMetrics rpc_metrics_;
  StoreCounters counters_;
  GuardedTime time_;
  const Disk disk_;
  const std::unique_ptr<TierLedger> ledger_;  // These two are null without a disk tier.
  const std::unique_ptr<DiskBells> disk_bells_;
  const std::unique_ptr<NodeDevice> device_;  // Null without a device.
  PinCount get_pins_;
  FeedRouter router_;
  FeedWaker waker_;
  WaitingCalls waiting_;
  SettledWaiter waiter_;
  const std::unique_ptr<BlockStore> store_;
  InFlightBytes in_flight_;
  TenantRates rates_;
  NodeMetrics node_metrics_;
  std::optional<DiskMetrics> disk_metrics_;
  RequestMemory request_memory_;
  AuditTrail audit_;
  CallbackMetric audit_left_out_;
  std::optional<TenantLimits> tenant_limits_;  // These two are null where tenants have none.
  std::unique_ptr<FileWatch> quota_watch_;
  // Null where callers are not told apart, and no prefixes listed: `public` is all that there is.
  std::unique_ptr<PublicWatch> public_watch_;
  std::optional<FileWatchMetrics> file_metrics_;
  NodeFacts facts_;
  FeedMessages feed_messages_;
  GetSlots get_slots_;
  NodePulls pulls_;
  NodeLocal local_;
  NodeCalls calls_;
  Executor executor_;
  Executor removals_;
  const std::unique_ptr<NodeDecode> decode_;
  CacheNodeService service_;
  GenericService generic_;
  uint64_t rights_seen_ = 0;  // The ticker's.
  WakeEvent idle_;            // Set by the tick when there is nothing to wait for in a drain.
  std::optional<PeriodicThread> ticker_;
  std::optional<PeriodicThread> heartbeat_;
  std::optional<DiskThreads> disk_threads_;
  std::unique_ptr<MetricsServer> metrics_server_;
  std::unique_ptr<RpcServer> server_;
};

}  // namespace cairn::node
