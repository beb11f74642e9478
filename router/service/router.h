// Router: a whole router in one object: the core, its threads, and the servers in front of it.
//
// Start makes everything and serves, not ready before the nodes' snapshots are in; Drain says
// goodbye; the destructor stops at once. Torn down from the outside in: servers before threads
// before the core. Used by main and by tests in one process.
//
// The core, the addresses and the metrics may be used by any thread; Drain and the destructor
// belong to one. Start fails with INVALID_ARGUMENT naming each flag that is wrong, or
// FAILED_PRECONDITION when the memory does not suffice or an address is taken; nothing runs then.
// Nodes that are not there are no failure: they are tried again, for ever.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/clock.h"
#include "common/base/random_source.h"
#include "common/identity/block_hasher.h"
#include "common/metrics/call_metrics.h"
#include "common/metrics/metrics.h"
#include "common/rpc/caller_resolver.h"
#include "common/security/file_watch_metrics.h"
#include "common/server/line_log.h"
#include "common/server/metrics_server.h"
#include "common/server/periodic_thread.h"
#include "common/server/rpc_server.h"
#include "common/server/wake_event.h"
#include "router/core/router_core.h"
#include "router/decisions/decision_recorder.h"
#include "router/membership/member_source.h"
#include "router/replication/node_copies.h"
#include "router/replication/replication_metrics.h"
#include "router/replication/replicator.h"
#include "router/service/node_followers.h"
#include "router/service/router_calls.h"
#include "router/service/router_config.h"
#include "router/service/router_metrics.h"
#include "router/service/router_service.h"

namespace cairn::router {

class Router {
 public:
  // How often time passes in the core.
  static constexpr absl::Duration kTick = absl::Milliseconds(20);
  // How often what was decided is written. On a thread of its own: disks may be slow.
  static constexpr absl::Duration kRecordInterval = absl::Milliseconds(20);

  // Gets lines for people about feeds that begin and end; called on several threads.
  using Log = LineLog;

  // Validates, checks memory, reads what says who may call, listens, follows the nodes. `log` may
  // be null.
  static absl::StatusOr<std::unique_ptr<Router>> Start(const RouterConfig& config,
                                                       Log log = nullptr);
  ~Router();

  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  // As bound.
  std::vector<std::string> addresses() const;
  // 0 when no metrics are served.
  int metrics_port() const;
  RouterCore& core() { return *core_; }
  const Metrics& metrics() const { return metrics_; }

  // Says that it is not ready, takes no new calls and gives those under way the grace. Once.
  void Drain();

 private:
  Router(const RouterConfig& config, std::unique_ptr<ServerSecurity> security,
         std::unique_ptr<ClientSecurity> node_security, const Log& log);

  absl::Status Record();
  std::unique_ptr<NodeCopies> MakeCopies();
  absl::Status Listen();
  FeedFollower::Options FollowerOptions() const;
  void Follow();
  void Tick();

  const RouterConfig config_;
  const Log log_;
  const std::unique_ptr<ServerSecurity> security_;
  const std::unique_ptr<ClientSecurity> node_security_;
  SystemClock clock_;
  SecureRandom random_;
  Sha256BlockHasher hasher_;
  Metrics metrics_;
  CallMetrics call_metrics_;
  StoppableWait copy_wait_;
  const std::unique_ptr<DecisionRecorder> recorder_;  // Null: nothing is recorded.
  const std::unique_ptr<RouterCore> core_;
  NodeFollowers followers_;
  const std::unique_ptr<MemberSource> members_;  // Null: the nodes are those of the flag.
  const RoutePolicySet policies_;
  // These three are null where no copies are made.
  std::unique_ptr<NodeCopies> copies_;
  const std::unique_ptr<Replicator> replicator_;
  const std::unique_ptr<ReplicationMetrics> copy_metrics_;
  ChangingStarts changing_starts_;
  RouterCalls calls_;
  RouterService service_;
  std::optional<RouterMetrics> router_metrics_;
  FileWatchMetrics file_metrics_;
  std::unique_ptr<MetricsServer> metrics_server_;
  std::unique_ptr<RpcServer> server_;
  std::optional<PeriodicThread> decision_writer_;
  std::optional<PeriodicThread> ticker_;
  WakeEvent stop_members_;
  std::thread member_thread_;
  // The ticker's.
  bool said_ready_ = false;
  bool said_degraded_ = false;
};

}  // namespace cairn::router
