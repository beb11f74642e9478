// PurgeScan: finds all blocks that one writer wrote between two times, and all that follow them and
// were written by then, in batches. What is written later is not looked at, so it comes to an end.
//
// What was computed from a broken worker's blocks is as broken, whoever computed it. The scan goes
// over host memory and disk until a pass finds nothing new: blocks that it found are to be deleted
// before it goes on. Those that are just being written it removes itself. Under the store's lock.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "cache_node/store/block_walk.h"
#include "cache_node/store/store_state.h"

namespace cairn::node {

class PurgeScan {
 public:
  static constexpr size_t kBatchBlocks = 1024;

  PurgeScan(uint64_t writer, int64_t since_unix_ms, int64_t until_unix_ms)
      : writer_(writer), since_unix_ms_(since_unix_ms), until_unix_ms_(until_unix_ms) {}

  // A bounded part; true when there is a batch, or nothing is left.
  bool Step(StoreState* state);
  // Found since the last call; to be deleted now.
  std::vector<ParentId> TakeBatch();
  bool done() const { return done_; }
  // Removed by the scan itself.
  uint64_t reservations() const { return reservations_; }

 private:
  bool IsWanted(const Provenance& provenance, bool follows) const;
  void LookInHost(StoreState* state, BlockEntry* entry);
  void LookElsewhere(StoreState* state, const StoreState::Copy& copy);
  void Found(const ParentId& block);

  const uint64_t writer_;
  const int64_t since_unix_ms_;
  const int64_t until_unix_ms_;
  absl::flat_hash_set<ParentId> found_;  // In all.
  std::vector<ParentId> batch_;
  uint64_t reservations_ = 0;
  BlockWalk walk_;
  bool pass_found_ = false;
  bool done_ = false;
};

}  // namespace cairn::node
