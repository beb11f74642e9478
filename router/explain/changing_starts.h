// ChangingStarts: whether prompts begin with a value that changes from one to the next.
//
// Of each scope it keeps the first blocks of a few prompts of which nothing was cached. A further
// such prompt that has their first tokens, then others, and then theirs again up to the block's end
// has a changing start. It keeps tokens, in memory alone, and compares within one scope of one
// tenant. Bounded: scopes that were seen longest ago are forgotten. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/base/bytes16.h"

namespace cairn::router {

class ChangingStarts {
 public:
  static constexpr size_t kScopesMax = 256;
  static constexpr size_t kBlocksPerScope = 16;
  // Longer blocks are not looked at.
  static constexpr size_t kBlockTokensMax = 4096;
  // Equal tokens behind the value: fewer may be chance.
  static constexpr uint32_t kEqualBehindMin = 3;
  // Prompts in a row, of those that had nothing cached, before it is said.
  static constexpr uint32_t kPromptsToSay = 16;

  // Where prompts change: what is said once, and again when it is another place.
  struct Finding {
    uint32_t position = 0;  // Of the first token that changes.
    uint32_t tokens = 0;    // How many do.
  };

  // A prompt of which no node had anything. `root`: the 16 bytes of its first region, which stand
  // for namespace, tenant and scope. `first_block`: its tokens. A finding is new.
  std::optional<Finding> Observe(const BlockKey& root, absl::Span<const uint32_t> first_block)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Prompts that had a changing start.
  uint64_t prompts() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Scope {
    std::list<BlockKey>::iterator place;  // In by_use_.
    std::deque<std::vector<uint32_t>> blocks;
    Finding last;
    uint32_t in_a_row = 0;
    std::optional<Finding> said;
  };

  Scope& Touch(const BlockKey& root) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  uint64_t prompts_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<BlockKey> by_use_ ABSL_GUARDED_BY(mutex_);  // The latest first.
  absl::flat_hash_map<BlockKey, Scope> scopes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::router
