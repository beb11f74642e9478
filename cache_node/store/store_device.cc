// StoreState: blocks on the device, and their coming there and going.
#include "cache_node/store/store_state.h"
#include "common/base/check.h"

namespace cairn::node {

void StoreState::WantOnDevice(BlockEntry* entry) {
  CAIRN_CHECK(entry->life == BlockEntry::Life::kPresent);
  if (!device.serves() || entry->device != 0 || entry->uploading || entry->wanted_on_device) return;
  if (entry->block_bytes() > device.memory()->slot_bytes_max()) return;
  device.wanted.push_back({.block = {entry->partition, entry->key}});
  entry->wanted_on_device = true;
  uploads_queued = true;
  BoundWanted();
}

void StoreState::BoundWanted() {
  while (device.wanted.size() > device.options.wanted_blocks_max) {
    const ParentId oldest = device.wanted.front().block;
    device.wanted.pop_front();
    BlockEntry* forgotten = index.Find(oldest.partition, oldest.key);
    if (forgotten != nullptr) forgotten->wanted_on_device = false;
    counters->uploads_shed.fetch_add(1, std::memory_order_relaxed);
  }
}

void StoreState::AddOnDevice(DeviceBlock* block, BlockEntry* entry) {
  CAIRN_CHECK(entry->life == BlockEntry::Life::kPresent && entry->device == 0);
  CAIRN_CHECK(device.Find(entry->partition, entry->key) == 0);
  device.Enter(block, DescriptionOf(*entry), DiskScopeOf(*entry));
  entry->device = block->handle;
  const ParentId id{entry->partition, entry->key};
  expiries.Put(entry->retention.expires_unix_ms, id);
  counters->uploaded_blocks.fetch_add(1, std::memory_order_relaxed);
  counters->uploaded_bytes.fetch_add(entry->block_bytes(), std::memory_order_relaxed);
  Tell(id, RemovalReason::kNone);
}

void StoreState::TakeOffDevice(DiskHandle handle) { device.Leave(device.At(handle), &ledger); }

void StoreState::RemoveFromDevice(DiskHandle handle, RemovalReason reason) {
  const ParentId block{device.index.PartitionOf(handle), device.index.At(handle).key};
  const int64_t expires_unix_ms = device.index.At(handle).expires_unix_ms;
  BlockEntry* entry = index.Find(block.partition, block.key);
  if (entry != nullptr && entry->queue == &device.load_queue) LoadElsewhere(entry);
  entry = index.Find(block.partition, block.key);
  TakeOffDevice(handle);
  EndOf(block, expires_unix_ms);
  const bool on_disk = disk.enabled && disk.index.Find(block.partition, block.key) != 0;
  if (entry == nullptr) {
    families.BelowChanged(block, on_disk);
  } else {
    CAIRN_CHECK(entry->device == handle);
    entry->device = 0;
  }
  const bool in_host = entry != nullptr && entry->life == BlockEntry::Life::kPresent;
  if (!in_host && !on_disk) removed.Remember(block.partition, block.key, reason);
  Tell(block, reason);
}

void StoreState::LoadElsewhere(BlockEntry* entry) {
  CAIRN_CHECK(entry->life == BlockEntry::Life::kLoading);
  if (entry->disk == 0 || !disk.open) {
    counters->device_loads_failed.fetch_add(1, std::memory_order_relaxed);
    Remove(entry, RemovalReason::kNone);
    return;
  }
  if (entry->queue != nullptr) {
    CAIRN_CHECK(entry->queue == &device.load_queue);
    device.Unpin(device.At(entry->device), &ledger);
    entry->queue->Remove(entry);
  }
  entry->from_device = false;
  disk.load_queue.PushBack(entry);
  loads_queued = true;
  counters->loads.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace cairn::node
