// ReplayRunner: sends the requests of a trace through a cluster, as model workers would.
//
// Requests start in the trace's order, each when a worker is free and, with a rate, not before its
// time. Every request goes the whole way of a ModelWorker (client/cpp/model_worker.h) with an
// engine whose bytes follow from the keys. Beside it the oracles see the same requests in the same
// order. Not thread-safe; starts threads of its own and joins them.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/model_worker.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/node_clients.h"
#include "client/cpp/retry_wait.h"
#include "client/cpp/router_client.h"
#include "client/replay/replay_report.h"
#include "client/replay/trace.h"

namespace cairn::replay {

inline constexpr uint32_t kReplayWorkersMax = 1024;
// Blocks for traces that do not say which.
inline constexpr uint32_t kBlockTokensDefault = 16;

struct ReplayOptions {
  // Requests at once; 1 to kReplayWorkersMax.
  uint32_t workers = 16;
  // Follow the trace's timestamps, this many times faster; 0: as fast as the workers go.
  double rate = 0;
  // Of each replica, which computes one prompt at a time; 0: computing takes no time.
  double compute_tokens_per_second = 0;
  // Whose blocks they are.
  std::string tenant = "public";
  // So many tokens at the start of each longer prompt are a region of the tenant `public`, and only
  // the rest is `tenant`'s: whole blocks of the namespace. 0: none.
  uint32_t public_tokens = 0;
  // Of one block (MakeReplayNamespace).
  uint64_t block_bytes = 4096;
  // 0: as the trace has them, or kBlockTokensDefault.
  uint32_t block_tokens = 0;
  // Size of the LRU to compare with; 0: what all nodes together hold.
  uint64_t lru_blocks = 0;
  // Ends after so many; 0: with the trace.
  uint64_t requests_max = 0;
  // Between lines of progress.
  absl::Duration progress_interval = absl::Seconds(5);
  // Sees how each request ended; called by several workers at once. May be null.
  std::function<void(const WorkOutcome&)> observe;
  // The replicas and `report_first_token` are set by the runner.
  ModelWorkerOptions worker;
};

// INVALID_ARGUMENT naming the option that is out of its range.
absl::Status ValidateReplayOptions(const ReplayOptions& options);

// What the blocks of this trace are under these options.
absl::StatusOr<NamespaceHandle> NamespaceOfReplay(const ReplayOptions& options,
                                                  const TraceReader& trace);

// What a node's list of public prefixes is to hold, so that the request can be stored: none where
// its prompt has no public region.
absl::StatusOr<std::vector<BlockKey>> PublicEndsOf(const ReplayOptions& options,
                                                   const NamespaceHandle& name_space,
                                                   const TraceRequest& request);

// Where a replay goes: a router, or one node. Borrowed.
struct ReplayTarget {
  RouterClient* router = nullptr;
  // Without a router.
  std::string node_address;
  NodeClients* nodes = nullptr;
  // Clients that act for the tenant `public`; null: public regions are read and not written.
  NodeClients* public_nodes = nullptr;
};

class ReplayRunner {
 public:
  // Borrows all of them; `progress` may be null. REQUIRES: ValidateReplayOptions says OK.
  ReplayRunner(const ReplayOptions& options, const ReplayTarget& target, RetryWait* wait,
               std::ostream* progress);

  // Replays the trace to its end. An error when the cluster was not to be had, or with the trace's
  // first bad line; failed requests and wrong bytes are in the report, and why the first of them
  // failed is in first_failure().
  absl::StatusOr<ReplayReport> Run(TraceReader* trace);

  // OK when nothing failed. The first thing that went wrong with the cache is apart: it made a
  // miss, and nothing worse.
  const absl::Status& first_failure() const { return first_failure_; }
  const absl::Status& first_cache_failure() const { return first_cache_failure_; }

 private:
  struct Replay;

  void ReadTrace(TraceReader* trace, Replay* replay) const;
  void Work(Replay* replay) const;
  void RunThreads(TraceReader* trace, Replay* replay) const;
  void ShowProgress(Replay* replay) const;

  const ReplayOptions options_;
  const ReplayTarget target_;
  RetryWait* const wait_;
  std::ostream* const progress_;
  absl::Status first_failure_;
  absl::Status first_cache_failure_;
};

}  // namespace cairn::replay
