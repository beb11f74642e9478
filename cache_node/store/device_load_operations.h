// DeviceLoadOperations: blocks on their way from the device into their slots of host memory.
//
// Functions over the state, called under the store's lock.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "cache_node/store/device_task.h"
#include "cache_node/store/store_state.h"

namespace cairn::node {

struct DeviceLoadOperations {
  // The entry is claimed, and its copy pinned, until Finish.
  static std::optional<DeviceLoadTask> Take(StoreState* state);
  static void Finish(StoreState* state, const DeviceLoadTask& task, const absl::Status& status);
};

}  // namespace cairn::node
