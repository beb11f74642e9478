// CacheOracles: what the best caches would hit on the same requests in the same order.
//
// Two of them, exact to the block: an unlimited cache, and one LRU of N blocks that touches each
// prompt from its deepest block to its first, so that parents stay younger than children. A
// request's blocks are all there right after it; a hit is a leading full block. Of a prompt longer
// than the LRU its first N blocks are kept.
//
// Prompts are kept as a tree of runs of block ids, split only where prompts part or end: an
// interleaving of long conversations costs time and memory by runs, not by blocks. At most
// kRunsMax runs, of about 80 bytes each. Not thread-safe.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "client/replay/block_ids.h"
#include "client/replay/id_run.h"
#include "client/replay/trace_prompt.h"

namespace cairn::replay {

struct OracleHits {
  uint64_t ideal_blocks = 0;
  uint64_t lru_blocks = 0;

  friend bool operator==(const OracleHits&, const OracleHits&) = default;
};

class CacheOracles {
 public:
  static constexpr uint64_t kRunsMax = uint64_t{1} << 24;

  // `lru_blocks` is the size of the LRU; with 0 it hits nothing. REQUIRES: block_tokens > 0.
  CacheOracles(uint32_t block_tokens, uint64_t lru_blocks);

  // What each cache hits of the next request's prompt, which then is in both. RESOURCE_EXHAUSTED
  // when the trace has more distinct blocks or runs than the bounds; nothing is counted then.
  absl::StatusOr<OracleHits> Observe(const TracePrompt& prompt);

  // Sums over all prompts observed.
  uint64_t prompt_tokens() const { return prompt_tokens_; }
  uint64_t full_blocks() const { return full_blocks_; }
  uint64_t ideal_hit_blocks() const { return hits_.ideal_blocks; }
  uint64_t lru_hit_blocks() const { return hits_.lru_blocks; }
  uint64_t ideal_hit_tokens() const { return hits_.ideal_blocks * block_tokens_; }
  uint64_t lru_hit_tokens() const { return hits_.lru_blocks * block_tokens_; }

  // Distinct blocks: what a cache must hold so that nothing is ever lost.
  uint64_t distinct_blocks() const { return distinct_blocks_; }

  uint64_t lru_blocks() const { return lru_blocks_max_; }

 private:
  using RunIndex = uint32_t;
  static constexpr RunIndex kNone = UINT32_MAX;

  // A run of blocks below the last block of its parent. All blocks of a run were last asked for by
  // the same request. In the LRU's list while any is cached; then all above it are cached.
  struct Run {
    uint64_t first = 0;
    uint32_t count = 0;
    uint32_t cached = 0;  // Leading blocks that the LRU holds.
    RunIndex newer = kNone;
    RunIndex older = kNone;
  };

  RunIndex RootOf(uint64_t name_space);
  RunIndex NewRun(uint64_t first, uint64_t count);

  // Cuts a run after its first `count` blocks and returns the upper part. `run` stays the lower
  // one, so that what hangs below it stays there. REQUIRES: 0 < count < blocks of the run.
  RunIndex SplitAfter(RunIndex parent, RunIndex run, uint64_t count);

  // Finds or makes the path of `runs`; returns what each cache holds of it.
  OracleHits Walk(uint64_t name_space, const std::vector<IdRun>& runs);

  // Makes the first blocks of path_ the youngest of the LRU, which then holds no more than it may.
  void TouchPath();
  void DropOldest();

  void Link(RunIndex run, RunIndex newer, RunIndex older);
  void Unlink(RunIndex run);

  const uint32_t block_tokens_;
  const uint64_t lru_blocks_max_;
  BlockIds block_ids_;

  std::vector<Run> runs_;
  absl::flat_hash_map<uint64_t, RunIndex> roots_;  // By namespace; a root holds no block.
  absl::flat_hash_map<std::pair<RunIndex, uint64_t>, RunIndex> children_;  // By parent, first id.
  std::vector<RunIndex> path_;  // Of the request being observed: its root, then its runs.
  RunIndex newest_ = kNone;
  RunIndex oldest_ = kNone;
  uint64_t cached_blocks_ = 0;

  uint64_t prompt_tokens_ = 0;
  uint64_t full_blocks_ = 0;
  uint64_t distinct_blocks_ = 0;
  OracleHits hits_;
};

}  // namespace cairn::replay
