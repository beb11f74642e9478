#include "cache_node/store/device_load_operations.h"

#include <utility>

#include "cache_node/store/load_operations.h"
#include "common/base/check.h"

namespace cairn::node {

std::optional<DeviceLoadTask> DeviceLoadOperations::Take(StoreState* state) {
  DeviceState& device = state->device;
  BlockEntry* entry = device.load_queue.front();
  if (entry == nullptr) return std::nullopt;
  DeviceBlock* block = device.At(entry->device);
  device.load_queue.Remove(entry);  // Its pin of the copy is the task's from here on.
  state->Claim(entry);
  DeviceLoadTask task;
  task.id = ++device.last_task;
  task.key = entry->key;
  task.map = entry->map;
  task.digests = block->digests;
  task.address = block->address;
  task.destination = state->slots.Bytes(*entry);
  device.loads.emplace(task.id, DeviceState::Load{.entry = entry, .block = block});
  return task;
}

void DeviceLoadOperations::Finish(StoreState* state, const DeviceLoadTask& task,
                                  const absl::Status& status) {
  DeviceState& device = state->device;
  auto found = device.loads.find(task.id);
  CAIRN_CHECK_MSG(found != device.loads.end(), "a load ends that was not taken");
  const DeviceState::Load load = found->second;
  device.loads.erase(found);
  BlockEntry* entry = load.entry;
  const bool loading = entry->life == BlockEntry::Life::kLoading;
  if (!loading || !entry->Readable()) {
    if (loading) state->Remove(entry, RemovalReason::kNone);
  } else if (status.ok()) {
    DiskRecordFields fields;
    fields.block.provenance = load.block->provenance;
    fields.digests = load.block->digests;
    if (load.block->tokens != nullptr) {
      const uint32_t* tokens = load.block->tokens.get();
      fields.tokens.assign(tokens, tokens + entry->map->layout().block_tokens);
    }
    LoadOperations::TakeIn(entry, fields);
    state->PublishLoaded(entry);
  } else {
    const bool damaged = absl::IsDataLoss(status);
    if (damaged) {
      state->counters->device_loads_damaged.fetch_add(1, std::memory_order_relaxed);
      state->counters->quarantined_blocks.fetch_add(1, std::memory_order_relaxed);
    }
    if (damaged && load.block->handle != 0) {
      state->RemoveFromDevice(load.block->handle, RemovalReason::kQuarantined);
    }
    state->LoadElsewhere(entry);
    state->settled = true;
  }
  device.Unpin(load.block, &state->ledger);
  state->Unclaim(entry);
}

}  // namespace cairn::node
