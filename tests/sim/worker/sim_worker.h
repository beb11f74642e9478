// SimWorker: one life of a process that serves requests, a few at a time, one after the other.
//
// To end one, detach its host from the network first: what it holds at nodes is then left to the
// nodes. Not thread-safe.
#pragma once

#include <memory>

#include "absl/container/btree_map.h"
#include "tests/sim/worker/workload.h"

namespace cairn::sim {

class SimWorker {
 public:
  struct Options {
    HostId host = 0;
    size_t jobs = 2;
    absl::Duration think_most = absl::Milliseconds(300);
  };

  // Borrows all; takes requests from the workload until there are none.
  SimWorker(World* world, const Options& options, const Life& life, Fleet* fleet,
            Workload* workload);

  // One request beside those of the workload.
  void Serve(const SimPrompt* prompt, RequestJob::Done done);

  size_t jobs() const { return jobs_.size(); }
  // InfiniteFuture without a job.
  absl::Time oldest_job_began_at() const;

 private:
  void TakeNextSoon();
  void TakeNext();

  World* const world_;
  const Options options_;
  Fleet* const fleet_;
  Workload* const workload_;
  Dice dice_;
  uint64_t next_job_ = 0;
  absl::btree_map<uint64_t, std::unique_ptr<RequestJob>> jobs_;
};

}  // namespace cairn::sim
