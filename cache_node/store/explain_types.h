// What ExplainOperation is asked and answers. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cache_node/store/block_record.h"
#include "cache_node/store/store_types.h"
#include "common/base/bytes16.h"

namespace cairn::node {

// A prompt, as far as a miss of it can be explained.
struct ExplainQuery {
  // A region begins at this block, under this scope (scope_digest.h).
  struct Region {
    size_t first_block = 0;
    BlockKey scope_digest;
    bool is_public = false;  // Of the tenant `public`; else of the caller's own.
  };
  std::vector<BlockKey> keys;    // Of its full blocks.
  std::vector<uint32_t> tokens;  // Of those blocks, or empty: nothing can be compared.
  std::vector<Region> regions;   // In order; empty for a prompt by keys.
};

struct ExplainAnswer {
  // The block that stands where the first missing one would, with most of its tokens: from the
  // start first, then at the end.
  struct Nearest {
    BlockKey key;
    std::vector<uint32_t> tokens;
    uint32_t common_tokens = 0;  // From its start,
    uint32_t common_at_end = 0;  // and of the others, equal ones up to its end.
  };

  bool namespace_known = false;
  uint32_t block_tokens = 0;
  uint32_t present = 0;                       // Consecutive blocks from the start.
  BlockState state = BlockState::kNeverSeen;  // Of the next one, where there is one.
  std::optional<absl::Duration> removed_ago;
  std::optional<Nearest> nearest;
  uint32_t candidates = 0;
  std::optional<BlockScope> other_scope;  // Has a first block with the same tokens.
  uint64_t looked_at = 0;
  bool partial = false;  // There was more to look at.
};

}  // namespace cairn::node
