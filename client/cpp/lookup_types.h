// What a lookup asks and answers. Plain values, but for the lease.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "cairn/v1/block.pb.h"
#include "client/cpp/read_lease.h"

namespace cairn {

struct LookupOptions {
  // Readers of a lease on what is found; 0: no lease, nothing is pinned.
  uint32_t lease_readers = 0;
  // Which of them the returned ReadLease is.
  uint32_t reader = 0;
  // Zero takes the node's default.
  absl::Duration lease_ttl = absl::ZeroDuration();
  // Without a lease: count this lookup as a use of what is found.
  bool touch = false;
  // Load blocks that are only on disk into host memory, as far as there is room; a lease asks for
  // it by itself. Without `wait` it is a prefetch: they are PENDING in the answer.
  bool promote = false;
  // Longest wait for blocks that are being written or loaded, at most kWaitMsMax.
  absl::Duration wait = absl::ZeroDuration();
  // Send keys instead of tokens. The node then cannot compare tokens. Prompts with more than
  // kTokensPerCallMax tokens together are sent as keys anyway.
  bool by_keys = false;
  // Without `wait`; zero takes the client's control_timeout.
  absl::Duration timeout = absl::ZeroDuration();
};

// Consecutive blocks in one state.
struct BlockStateRun {
  uint32_t count = 0;
  v1::BlockState state = v1::BLOCK_STATE_UNSPECIFIED;
  // PENDING: since the oldest of the run was reserved or its load began.
  absl::Duration pending = absl::ZeroDuration();
};

struct PromptAnswer {
  uint32_t blocks_total = 0;
  // Consecutive blocks from the start that are present, tokens in those, and blocks leased.
  uint32_t blocks_present = 0;
  uint64_t tokens_present = 0;
  uint32_t blocks_leased = 0;
  std::vector<BlockStateRun> runs;
};

struct LookupAnswer {
  // False: the node does not know the namespace, and everything is a miss.
  bool namespace_known = false;
  // One a prompt, in order.
  std::vector<PromptAnswer> prompts;
  // Only when one was asked for and something was found.
  std::optional<ReadLease> lease;
};

struct LeaseState {
  uint32_t readers = 0;
  // Whose share ended, expired or was revoked.
  uint32_t readers_ended = 0;
  // By prompt: the minimum over ended readers; a share that expired counts 0.
  std::vector<uint32_t> usable_blocks;
  bool complete = false;
};

}  // namespace cairn
