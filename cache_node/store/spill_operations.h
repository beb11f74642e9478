// SpillOperations: which blocks are written into files, and what becomes of them.
//
// Functions over the state, called under the store's lock; each does a bounded part.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "cache_node/store/store_state.h"

namespace cairn::node {

struct SpillOperations {
  // The next block that is to be written: its task, and the entry, which the caller pins before it
  // unlocks. A parent that could be written is taken before its child. `steps` goes down with each
  // block looked at; nothing when it reaches 0, when nothing waits, or when as much is being
  // written as may be.
  struct Taken {
    WriteTask task;
    BlockEntry* entry = nullptr;
  };
  static std::optional<Taken> Take(StoreState* state, size_t* steps);

  // Notes the place. False: the block was removed meanwhile, and must not be found there.
  static bool Place(StoreState* state, const PlacedBlock& placed);
  // The file has it: it can be found, unless it was removed meanwhile.
  static void Finish(StoreState* state, DiskFileIndex file, const PlacedBlock& placed);
  static void Abandon(StoreState* state, uint64_t id);

  // Counts it as being written.
  static const WriteTask& Begin(StoreState* state, DiskWrite write);
};

}  // namespace cairn::node
