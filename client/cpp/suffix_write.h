// SuffixWrite: stores consecutive blocks of a prompt at one node, reserved before they are
// computed.
//
// For one request at one node; part of ModelWorker. Reserving first tells other workers that the
// blocks are on their way, and this one which blocks others are about to write. Blocks that are
// present already, or in another writer's hands, are left alone; what the node has no room for is
// not stored. Calls are cut to the contract's bounds. What was reserved and not written is given up
// on destruction. Not thread-safe. The client outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cairn/v1/write.pb.h"
#include "client/cpp/cache_node_client.h"
#include "client/cpp/call_budget.h"
#include "client/cpp/prefill_engine.h"

namespace cairn {

struct SuffixWriteOptions {
  // Of each call.
  absl::Duration reserve_timeout = absl::Seconds(2);
  absl::Duration write_timeout = absl::Seconds(10);
  absl::Duration commit_timeout = absl::Seconds(2);
  // Life of a reservation while its blocks are computed; zero takes the node's default.
  absl::Duration token_ttl = absl::ZeroDuration();
  // Blocks under one token.
  size_t blocks_per_reserve_max = 4096;
  KeepWish keep = {};
};

class SuffixWrite {
 public:
  // Borrows all of them; the prompt has regions.
  SuffixWrite(CacheNodeClient* node, const NamespaceHandle* name_space, const Prompt* prompt,
              const SuffixWriteOptions& options);

  // Registers the namespace first: the node said that it does not know it. Before Reserve.
  absl::Status Register(CallBudget* budget);

  // Reserves what it can of blocks [begin, end). To be called once. How the first call ended that
  // failed; no room is no error (see stopped_by).
  absl::Status Reserve(size_t begin, size_t end, CallBudget* budget);

  // The first block that is ours to write, or that nobody will; else `end`. Those from `begin` to
  // here are others'.
  size_t first_reserved() const { return first_reserved_; }

  // Writes and commits what was reserved. ABORTED when a reservation expired meanwhile.
  absl::Status Write(PrefillEngine* engine, CallBudget* budget);

  uint64_t blocks_written() const { return blocks_written_; }
  // Present already, or in another writer's hands.
  uint64_t blocks_of_others() const { return blocks_of_others_; }
  // Why the rest was not reserved.
  std::optional<v1::ReserveOutcome> stopped_by() const { return stopped_by_; }
  // Of all calls above.
  absl::Duration time() const { return time_; }

 private:
  struct Reserved {
    size_t first_block = 0;
    WriteSession session;
  };

  absl::StatusOr<WriteSession> Ask(size_t begin, size_t count, CallBudget* budget);
  // Takes in the answers; how many blocks are present, ours or in progress.
  size_t Settle(size_t begin, const WriteSession& session);
  absl::Status WriteAndCommit(PrefillEngine* engine, CallBudget* budget, Reserved* reserved);

  CacheNodeClient* node_;
  const NamespaceHandle* name_space_;
  const Prompt* prompt_;
  const SuffixWriteOptions options_;
  bool registered_ = false;
  std::vector<Reserved> reserved_;
  size_t first_reserved_ = 0;
  uint64_t blocks_written_ = 0;
  uint64_t blocks_of_others_ = 0;
  std::optional<v1::ReserveOutcome> stopped_by_;
  absl::Duration time_;
};

}  // namespace cairn
