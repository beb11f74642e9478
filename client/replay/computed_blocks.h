// ComputedBlocks: how often one block was computed, by requests that might have shared it.
//
// Looks at the blocks at the depths 1, 2, 4, 8, ... of each prompt, so that its cost does not grow
// with prompts; and at the first so many blocks only, so that its memory does not grow with a
// trace. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "common/base/bytes16.h"

namespace cairn::replay {

class ComputedBlocks {
 public:
  static constexpr size_t kBlocksMax = size_t{1} << 16;

  // A request of this prompt computed all but its first `hit_blocks` blocks.
  void Add(absl::Span<const BlockKey> keys, uint64_t hit_blocks) {
    for (size_t depth = 1; depth <= keys.size(); depth *= 2) {
      if (depth <= hit_blocks) continue;
      const BlockKey& key = keys[depth - 1];
      if (times_.size() >= kBlocksMax && !times_.contains(key)) continue;
      most_ = std::max(most_, ++times_[key]);
    }
  }

  // The most times that one block was computed; 0: none was.
  uint64_t most() const { return most_; }

 private:
  absl::flat_hash_map<BlockKey, uint64_t> times_;
  uint64_t most_ = 0;
};

}  // namespace cairn::replay
