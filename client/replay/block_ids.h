// BlockIds: names the full blocks of prompts by compact ids, as runs.
//
// Two blocks of one namespace get the same id when their tokens are the same, whatever stands
// before them. Where the prompt has hash ids of this very block size they are taken as they are,
// run by run; else tokens are hashed (64 bits, for counting only: not a defence against chosen
// collisions) and new blocks get consecutive ids, so that new text is one run. Keeps one entry for
// each block that it hashed, up to kHashedBlocksMax. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "client/replay/id_run.h"
#include "client/replay/trace_prompt.h"

namespace cairn::replay {

class BlockIds {
 public:
  static constexpr uint64_t kHashedBlocksMax = uint64_t{1} << 25;

  // REQUIRES: block_tokens > 0.
  explicit BlockIds(uint32_t block_tokens);

  // Of all full blocks, from the first. RESOURCE_EXHAUSTED past kHashedBlocksMax.
  absl::StatusOr<std::vector<IdRun>> RunsOf(const TracePrompt& prompt);

 private:
  const uint32_t block_tokens_;
  absl::flat_hash_map<uint64_t, uint64_t> by_content_;
};

}  // namespace cairn::replay
