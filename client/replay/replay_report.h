// ReplayReport: what one replay did, beside what the best caches would have hit.
//
// Plain data, filled by whoever replays.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/replay/latency_recorder.h"

namespace cairn::replay {

struct LatencySummary {
  absl::Duration p50;
  absl::Duration p99;

  static LatencySummary Of(const LatencyRecorder& recorder);
};

struct ReplayReport {
  uint64_t requests = 0;         // Replayed, failed ones among them.
  uint64_t empty_requests = 0;   // Passed over: no prompt.
  uint64_t failed_requests = 0;  // Ended without their answer.
  uint64_t wrong_bytes = 0;      // Delivered, but not what was computed for that block.
  // Came with bytes that their digests betrayed: counted as misses, never used.
  uint64_t mismatched_segments = 0;
  uint64_t tokens_looked_up = 0;

  // Delivered, summed over tiers below; the oracles' for the same requests in the same order.
  uint64_t hit_blocks = 0;
  uint64_t hit_tokens = 0;
  uint64_t ideal_hit_blocks = 0;
  uint64_t ideal_hit_tokens = 0;
  uint64_t lru_hit_blocks = 0;
  uint64_t lru_hit_tokens = 0;
  uint64_t lru_capacity_blocks = 0;

  uint64_t hit_blocks_device = 0;
  uint64_t hit_blocks_host = 0;
  uint64_t hit_blocks_disk = 0;

  // Of prompts with a public region: all, those that used their own scope instead, and the blocks
  // above that were hit in public regions.
  uint64_t shared_requests = 0;
  uint64_t own_scope_requests = 0;
  uint64_t hit_blocks_public = 0;

  uint64_t stored_blocks = 0;
  // The most requests that computed one block, of those that were looked at (ComputedBlocks): 1
  // when requests that miss a prefix together leave it to one of them, and nothing was evicted.
  uint64_t stampede_computations = 0;
  uint64_t fallbacks = 0;          // Replicas passed over, because their nodes were gone.
  uint64_t uncached_requests = 0;  // Computed whole: no node was there.

  double busiest_over_mean = 0;  // BusiestOverMean of the tokens that each replica computed.

  LatencySummary route;
  LatencySummary lookup;
  LatencySummary get;
  LatencySummary put;
  absl::Duration elapsed;

  // Hit tokens over looked-up tokens; 0 when none were looked up.
  double hit_rate_tokens() const;
  double ideal_hit_rate_tokens() const;
  double lru_hit_rate_tokens() const;

  // For people: one line a value, aligned.
  std::string ToTable() const;

  // One flat JSON object. Counts are whole numbers, rates lie in [0, 1], latencies end in `_us`.
  std::string ToJson() const;

  // Whether a file at `path` can be written, before the replay that it is for. Makes one, and
  // leaves the content of one that is there. NOT_FOUND with the path and the system's reason.
  static absl::Status CheckPath(const std::string& path);
  // Replaces the file at `path` with ToJson(). NOT_FOUND when it cannot be opened, DATA_LOSS when
  // not all of it can be written; the status names the path and the system's reason.
  absl::Status WriteJson(const std::string& path) const;
};

// The largest over the mean, 1 when all are equal; 0 when there is nothing to compare.
double BusiestOverMean(absl::Span<const uint64_t> tokens_by_replica);

}  // namespace cairn::replay
