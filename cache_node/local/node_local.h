// NodeLocal: everything of a node that serves its own host, in one object.
//
// Start listens; until then, and where there is no local socket, Open answers that there is none.
// Stop ends all connections; nothing else may be called beside it. Otherwise thread-safe. Borrows
// its parts.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "cache_node/local/local_config.h"
#include "cache_node/local/local_counters.h"
#include "cache_node/local/local_metrics.h"
#include "cache_node/local/local_server.h"
#include "cache_node/local/staging_area.h"
#include "cairn/v1/local.pb.h"
#include "common/metrics/metrics.h"
#include "common/server/line_log.h"

namespace cairn::node {

class NodeLocal {
 public:
  struct Parts {
    BlockStore* store = nullptr;
    TenantRates* rates = nullptr;
    const CallerResolver* callers = nullptr;
    const GuardedTime* time = nullptr;
    RandomSource* random = nullptr;
    Metrics* metrics = nullptr;
    LineLog log = nullptr;
  };

  NodeLocal(const LocalConfig& config, const Parts& parts);

  // A socket that was named and cannot be is an error; without a name the node does without it, and
  // says so.
  absl::Status Start();
  // Nobody else calls anything any more.
  void Stop() { server_ = nullptr; }

  absl::StatusOr<v1::OpenLocalResponse> Open(const Caller& caller);
  void WakeForRecalls();
  void Tick();
  void Drain();

  const LocalCounters& counters() const { return counters_; }

 private:
  const LocalConfig config_;
  const Parts parts_;
  LocalCounters counters_;
  StagingBudget staging_;
  const LocalMetrics metrics_;
  std::unique_ptr<LocalServer> server_;  // Null without a socket.
};

}  // namespace cairn::node
