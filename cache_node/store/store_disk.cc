// StoreState: blocks on disk, and their coming to host memory and going.
#include "cache_node/store/store_state.h"
#include "common/base/check.h"

namespace cairn::node {

DiskHandle StoreState::AddOnDisk(DiskScopeIndex scope, DiskFileIndex file, uint32_t slot,
                                 const DiskBlock& block) {
  const PartitionIndex partition = disk.index.scopes().At(scope).partition;
  const DiskHandle handle = disk.index.Insert(scope, file, slot, block);
  if (handle == 0) return 0;
  ledger.AddDisk(namespaces.PartitionAt(partition).tenant, block.payload_bytes);
  expiries.Put(block.expires_unix_ms, {partition, block.key});
  BlockEntry* entry = index.Find(partition, block.key);
  if (entry == nullptr) {
    families.BelowChanged({partition, block.key}, true);
    removed.Forget(partition, block.key);
  } else {
    entry->disk = handle;
    if (disk.QueuedToSpill(*entry)) entry->queue->Remove(entry);
  }
  if (disk.shown()) Tell({partition, block.key}, RemovalReason::kNone);
  return handle;
}

void StoreState::TakeOffDisk(DiskHandle handle) {
  ledger.RemoveDisk(namespaces.PartitionAt(disk.index.PartitionOf(handle)).tenant,
                    disk.index.PayloadBytesOf(handle));
  disk.index.Remove(handle);
}

void StoreState::DescribeOnDisk(DiskHandle handle, const DiskBlock& block) {
  const ParentId id{disk.index.PartitionOf(handle), block.key};
  const int64_t before = disk.index.At(handle).expires_unix_ms;
  disk.index.Describe(handle, block);
  EndOf(id, before);
  expiries.Put(block.expires_unix_ms, id);
}

void StoreState::RemoveFromDisk(DiskHandle handle, RemovalReason reason) {
  const ParentId block{disk.index.PartitionOf(handle), disk.index.At(handle).key};
  const int64_t expires_unix_ms = disk.index.At(handle).expires_unix_ms;
  TakeOffDisk(handle);
  EndOf(block, expires_unix_ms);
  BlockEntry* entry = index.Find(block.partition, block.key);
  const bool on_device = device.Find(block.partition, block.key) != 0;
  if (entry == nullptr) {
    families.BelowChanged(block, on_device);
  } else {
    CAIRN_CHECK(entry->disk == handle);
    entry->disk = 0;
  }
  const bool in_host = entry != nullptr && entry->life == BlockEntry::Life::kPresent;
  if (!in_host && !on_device) removed.Remember(block.partition, block.key, reason);
  if (disk.shown()) Tell(block, reason);
}

// It is not loading any more, whatever it is from now on.
void StoreState::EndLoading(BlockEntry* entry) {
  CAIRN_CHECK(entry->life == BlockEntry::Life::kLoading && disk.loading > 0);
  --disk.loading;
  ledger.EndReserve(entry->space->slot_class.tenant, entry->block_bytes());
}

void StoreState::PublishLoaded(BlockEntry* entry) {
  EndLoading(entry);
  CAIRN_CHECK(entry->required_parts_missing == 0 && entry->queue == nullptr);
  entry->life = BlockEntry::Life::kPresent;
  entry->from_disk = !entry->from_device;
  slots.BecamePresent(entry);
  index.CountPresent(*entry);
  ++namespaces.PartitionAt(entry->partition).blocks;
  removed.Forget(entry->partition, entry->key);
  disk.failed_loads.Forget({entry->partition, entry->key});
  feed.Record(index.ShardOf(entry->key),
              {.partition = entry->partition, .key = entry->key, .tier_mask = TiersOf(*entry)});
  (entry->from_device ? counters->device_loaded_blocks : counters->loaded_blocks)
      .fetch_add(1, std::memory_order_relaxed);
  settled = true;
}

void StoreState::Used(BlockEntry* entry, UseStamp use) {
  slots.Used(entry, use);
  if (entry->life != BlockEntry::Life::kPresent) return;
  entry->from_disk = false;
  entry->from_device = false;
  entry->used = true;
  if (entry->device != 0) {
    device.Used(device.At(entry->device), use);
  } else {
    WantOnDevice(entry);
  }
  if (!disk.enabled) return;
  if (entry->disk != 0) {
    disk.index.MarkUsed(entry->disk);
  } else if (QueueSpill(entry) == Queued::kFull) {
    counters->spills_shed.fetch_add(1, std::memory_order_relaxed);
  }
}

bool StoreState::TakesToDisk(uint64_t bytes) const {
  return disk.writes_now() && disk.options.admission == SpillAdmission::kAlways &&
         bytes <= disk.options.block_bytes_max &&
         disk.spill_queue.size() < disk.options.spill_queue_blocks_max &&
         disk.spill_queue.bytes() + bytes <= disk.options.spill_queue_bytes_max;
}

StoreState::Queued StoreState::QueueSpill(BlockEntry* entry) {
  CAIRN_CHECK(entry->life == BlockEntry::Life::kPresent);
  const bool missed = entry->queue == &disk.missed_spills;
  if (!disk.enabled || entry->disk != 0 || entry->spilling ||
      (entry->queue != nullptr && !missed) || entry->block_bytes() > disk.options.block_bytes_max) {
    return Queued::kNotNeeded;
  }
  if (!disk.reads()) {
    if (!missed) disk.missed_spills.PushBack(entry);
    return Queued::kFull;
  }
  if (disk.spill_queue.size() >= disk.options.spill_queue_blocks_max ||
      disk.spill_queue.bytes() + entry->block_bytes() > disk.options.spill_queue_bytes_max) {
    return Queued::kFull;
  }
  if (missed) disk.missed_spills.Remove(entry);
  disk.spill_queue.PushBack(entry);
  spills_queued = true;
  return Queued::kYes;
}

}  // namespace cairn::node
