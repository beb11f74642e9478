// UploadOperations: which blocks are copied to the device, and what becomes of them.
//
// Functions over the state, called under the store's lock; each does a bounded part.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "cache_node/store/device_task.h"
#include "cache_node/store/store_state.h"

namespace cairn::node {

struct UploadOperations {
  // The next block that is to be copied: its task, without a pin, and the entry, which the caller
  // pins before it unlocks. The one that was used last comes first, but after all before it in its
  // prompt. `steps` goes down with each block looked at; nothing when it reaches 0, when nothing
  // waits, or when as much is under way as may be.
  //
  // Where there is room any block is copied. Where there is none only one that was used since it
  // came to host memory, and only in place of blocks that are worth less.
  struct Taken {
    UploadTask task;
    BlockEntry* entry = nullptr;
  };
  static std::optional<Taken> Take(StoreState* state, size_t* steps);

  // OK: the bytes are there, and it can be found there unless it was removed meanwhile.
  static void Finish(StoreState* state, uint64_t id, const absl::Status& status);
};

}  // namespace cairn::node
