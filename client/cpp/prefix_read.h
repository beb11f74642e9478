// PrefixRead: the longest prefix of a prompt that one node holds, leased, fetched and verified.
//
// For one request at one node; part of ModelWorker. What it says is usable lies in the engine's
// memory with every digest checked against the key that was asked for. Prompts of any length: calls
// are cut to the contract's bounds. Leases that were not ended are ended on destruction, as unused.
// Not thread-safe. The client outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cpp/cache_node_client.h"
#include "client/cpp/call_budget.h"
#include "client/cpp/prefill_engine.h"

namespace cairn {

// Usable blocks by the tier that they were read from.
struct HitBlocks {
  uint64_t device = 0;
  uint64_t host = 0;
  uint64_t disk = 0;

  uint64_t total() const { return device + host + disk; }
};

struct PrefixReadOptions {
  // For blocks that another writer has in progress, or that are loading.
  absl::Duration wait_for_writers = absl::Seconds(1);
  // Of each lookup without that wait, of each get, and of the end of each lease.
  absl::Duration lookup_timeout = absl::Seconds(2);
  absl::Duration get_timeout = absl::Seconds(10);
  absl::Duration end_timeout = absl::Seconds(1);
  // Zero takes the node's default.
  absl::Duration lease_ttl = absl::ZeroDuration();
  // Send tokens, so that the node compares them with its own.
  bool by_tokens = false;
};

class PrefixRead {
 public:
  // Borrows all of them.
  PrefixRead(CacheNodeClient* node, const NamespaceHandle* name_space, const Prompt* prompt,
             const PrefixReadOptions& options);

  // Reads on from the last usable block, up to block `end`. May be called again, when there is
  // reason to think that more is there by now; all waits together stay within wait_for_writers. How
  // the first call ended that failed; what was read before it stays usable. A miss is no error.
  absl::Status Run(size_t end, PrefillEngine* engine, CallBudget* budget);

  // Ends the leases and says how much of them could be used. Best effort.
  void EndLeases(CallBudget* budget);

  // What of wait_for_writers is left.
  absl::Duration wait_left() const { return options_.wait_for_writers - lookup_time_; }
  // Leading blocks that are in place.
  size_t usable_blocks() const { return usable_blocks_; }
  const HitBlocks& hits() const { return hits_; }
  // False when the node answered that it does not know the namespace.
  bool namespace_known() const { return namespace_known_; }
  // Segments that came with bytes that are not the key's: never used.
  uint64_t mismatched_segments() const { return mismatched_segments_; }
  absl::Duration lookup_time() const { return lookup_time_; }
  absl::Duration get_time() const { return get_time_; }

 private:
  // Consecutive blocks of the prompt that one lookup covered.
  struct Lease {
    ReadLease lease;
    uint32_t usable_blocks = 0;
  };

  // The next `count` blocks; `*whole` says whether all of them are in place now.
  absl::Status ReadNext(size_t count, PrefillEngine* engine, CallBudget* budget, bool* whole);
  absl::Status Fetch(const PromptAnswer& answer, PrefillEngine* engine, CallBudget* budget,
                     Lease* lease);
  void CountHits(const PromptAnswer& answer, uint32_t first, uint32_t count);

  CacheNodeClient* node_;
  const NamespaceHandle* name_space_;
  const Prompt* prompt_;
  const PrefixReadOptions options_;
  const std::vector<PartLayers> parts_;
  std::vector<Lease> leases_;
  size_t usable_blocks_ = 0;
  HitBlocks hits_;
  bool namespace_known_ = true;
  uint64_t mismatched_segments_ = 0;
  absl::Duration lookup_time_;
  absl::Duration get_time_;
};

}  // namespace cairn
