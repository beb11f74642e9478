// ReplayTally: what one worker of a replay saw. Not thread-safe: merged at the end.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "client/cpp/model_worker.h"
#include "client/replay/latency_recorder.h"
#include "client/replay/replay_report.h"

namespace cairn::replay {

class ReplayTally {
 public:
  void Count(const WorkOutcome& outcome, uint64_t wrong_bytes);
  // Of one that was counted: its prompt begins with so many public blocks.
  void CountShared(const WorkOutcome& outcome, uint64_t public_blocks);
  // A request that did not get as far as a worker.
  void CountFailed(const absl::Status& status, uint64_t prompt_tokens);
  // A replica that may come to compute nothing.
  void AddReplica(const std::string& worker_address) { computed_tokens_[worker_address]; }

  void Merge(const ReplayTally& other);

  // Sets the fields of the report that workers know of.
  void Fill(ReplayReport* report) const;

  // Of the first request that failed, and the first thing that went wrong with the cache.
  const absl::Status& failure() const { return failure_; }
  const absl::Status& cache_failure() const { return cache_failure_; }

 private:
  uint64_t requests_ = 0;
  uint64_t failed_requests_ = 0;
  uint64_t wrong_bytes_ = 0;
  uint64_t mismatched_segments_ = 0;
  uint64_t tokens_looked_up_ = 0;
  uint64_t hit_tokens_ = 0;
  uint64_t fallbacks_ = 0;
  uint64_t uncached_requests_ = 0;
  uint64_t shared_requests_ = 0;
  uint64_t own_scope_requests_ = 0;
  uint64_t public_hits_ = 0;
  uint64_t blocks_stored_ = 0;
  HitBlocks hits_;
  absl::flat_hash_map<std::string, uint64_t> computed_tokens_;  // By worker address.
  LatencyRecorder route_;
  LatencyRecorder lookup_;
  LatencyRecorder get_;
  LatencyRecorder put_;
  absl::Status failure_;
  absl::Status cache_failure_;
};

}  // namespace cairn::replay
