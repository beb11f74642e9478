// RequestJob: what a model worker does with the cache for one request: ModelWorker of the product
// as a state machine.
//
//   route -> lease, get and verify -> reserve -> compute -> write, commit -> end leases -> report
//
// The cache never fails it: whatever goes wrong is a miss, a node that is gone hands it to the next
// replica of the list. `done` is called once, from an event, unless this is destroyed before; it
// may destroy this.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "cairn/v1/router.pb.h"
#include "tests/sim/worker/prefix_fetch.h"
#include "tests/sim/worker/request_context.h"
#include "tests/sim/worker/suffix_store.h"

namespace cairn::sim {

// Where a job finds others, and how busy the workers are. Shared by all jobs.
struct Fleet {
  HostId router = 0;
  absl::btree_map<std::string, HostId> node_by_address;
  // What a model worker computes.
  double tokens_per_second = 2000;
  // When each model worker has computed what was given to it.
  absl::btree_map<std::string, absl::Time> computes_until;
};

class RequestJob {
 public:
  struct Outcome {
    size_t blocks = 0;
    size_t hit_blocks = 0;
    // By the router, when it was asked: of the first replica.
    uint64_t matched_tokens = 0;
    bool routed = false;
    bool cached = false;  // A node took it.
    uint32_t fallbacks = 0;
    absl::Status stored;
  };
  using Done = std::function<void(const Outcome&)>;

  RequestJob(const ClientSide& side, Fleet* fleet, const SimPrompt* prompt, Done done);

  RequestJob(const RequestJob&) = delete;
  RequestJob& operator=(const RequestJob&) = delete;

  absl::Time began_at() const { return began_at_; }

 private:
  void Route();
  void TakeRoute(const absl::StatusOr<std::string>& answer);
  // Reads at the first replica, from `next_replica_` on, whose node answers.
  void ReadNext();
  void TakeRead(const absl::Status& status);
  void Reserve();
  void TakeReserve(const absl::Status& status);
  void Compute();
  void Store();
  void TakeStore(const absl::Status& status);
  void EndLeases();
  void Report(v1::OutcomePhase phase, std::function<void()> then);
  void End();

  size_t block_count() const { return context_.prompt->prompt().block_count(); }
  Scheduler& scheduler() const { return context_.side.world->scheduler; }

  RequestContext context_;
  Fleet* const fleet_;
  const absl::Time began_at_;
  v1::RouteResponse route_;
  bool booked_ = false;
  int next_replica_ = 0;
  int replica_ = -1;  // That took it; -1: none.
  std::unique_ptr<UnaryCall> call_;
  std::unique_ptr<PrefixFetch> fetch_;
  std::unique_ptr<SuffixStore> store_;
  absl::Duration computed_for_;
  bool stored_again_ = false;
  Alive alive_;
  Outcome outcome_;
  Done done_;
};

}  // namespace cairn::sim
