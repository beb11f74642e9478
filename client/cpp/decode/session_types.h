// What a DecodeSession is asked and says. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cpp/decode/decode_stream.h"
#include "client/cpp/decode/decode_types.h"

namespace cairn {

class CacheNodeClient;
class DecodeClient;

// Two clients of one node; borrowed. `cache` is needed for leases only.
struct DecodeNode {
  DecodeClient* decode = nullptr;
  CacheNodeClient* cache = nullptr;
};

// How a node holds a part of a prefix for the session.
enum class PartForm {
  kSequence,  // Pinned by a sequence of its memory for decode.
  kLease,     // Leased: nothing can be appended, and the node holds the prompt from its start.
};

// Blocks [first_block, first_block + blocks) of a prompt, and who is asked for them.
struct PartWish {
  uint32_t first_block = 0;
  // 0 in the last part: all that the node holds from there, which may be none.
  uint32_t blocks = 0;
  // In this order: the next one is asked when one is lost. None: the caller attends over them.
  std::vector<DecodeNode> holders;
  PartForm form = PartForm::kSequence;
  // Above 0 in the last part only: what comes after the prompt's blocks is appended there. With no
  // such part the caller attends over it.
  uint64_t reserve_tokens = 0;
};

// New positions of one sequence. Rows are of the parameters' dtype, and like the outputs they stay
// where they are until the step was received.
struct SessionRows {
  uint64_t sequence = 0;  // The caller's number.
  uint64_t position = 0;  // Of the first row.
  uint64_t rows = 0;
  const void* queries = nullptr;  // [rows][query_heads][key_dim]
  // [rows][kv_heads][dim] of the slices: appended where a node takes the tail; null: nothing is.
  const void* keys = nullptr;
  const void* values = nullptr;
  absl::Span<const uint32_t> tokens;  // One a row, or none: nothing is sealed then.
  float* output = nullptr;            // [rows][query_heads][output_dim]
  float* log_sum_exp = nullptr;       // [rows][query_heads]
  // They may be there already, and others behind them: a node that lost nothing leaves them as they
  // are. Otherwise these rows end the sequence.
  bool again = false;
};

// What the caller attended over itself, for the rows at `index` of the step: exactly the range that
// OwnTokens says, with output as in SessionRows.
struct OwnRows {
  size_t index = 0;
  TokenRange tokens;
  const float* output = nullptr;
  const float* log_sum_exp = nullptr;
};

// Tokens that no holder has any more: the worker computes them again.
struct LostTokens {
  uint64_t sequence = 0;
  TokenRange tokens;
  // True: run them through the session once more, a node takes them. False: they are the caller's
  // to hold from now on, and so is what follows when they end the sequence (TakeOver).
  bool again = false;
};

struct SessionOptions {
  DecodeStreamOptions stream;
  // Longest wait of an opening for blocks that are loading.
  absl::Duration open_wait = absl::ZeroDuration();
  // Of sequences; zero takes the node's default.
  absl::Duration idle = absl::ZeroDuration();
  // How often a busy node is asked in all, before the next holder is.
  uint32_t attempts_max = 5;
};

struct SessionCounters {
  uint64_t parts_opened = 0;
  uint64_t steps = 0;
  uint64_t requests = 0;
  // One after the other: requests to several nodes at once count once.
  uint64_t round_trips = 0;
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  uint64_t rows = 0;  // Of queries, over all parts.
  uint64_t retries = 0;
  uint64_t reconnects = 0;
  uint64_t parts_moved = 0;  // To another holder, or opened anew.
  uint64_t bad_answers = 0;
  uint64_t lost_tokens = 0;
  uint64_t recomputed_tokens = 0;  // Positions that came a second time.
};

}  // namespace cairn
