// LoadOperations: blocks on their way from disk into their slots.
//
// Functions over the state, called under the store's lock.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cache_node/store/store_state.h"

namespace cairn::node {

struct LoadOperations {
  // The entry is claimed until Finish.
  static std::optional<LoadTask> Take(StoreState* state);
  static void Finish(StoreState* state, const LoadTask& task, const absl::Status& status,
                     const DiskRecordFields& fields, absl::Time now);
  // What a mover has verified is in the slot.
  static void TakeIn(BlockEntry* entry, const DiskRecordFields& fields);
};

}  // namespace cairn::node
