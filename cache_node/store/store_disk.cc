// StoreState: blocks on disk, and their coming to host memory and going.
#include "cache_node/store/store_state.h"
#include "common/base/check.h"

namespace cairn::node {

ParentId StoreState::DiskParentOf(DiskHandle handle) const {
  const Partition& partition = namespaces.PartitionAt(disk.index.PartitionOf(handle));
  const TenantIndex everyone = ledger.Find(kPublicTenant);
  const PartitionIndex shared =
      everyone == 0 ? 0 : namespaces.FindPartition(*partition.name_space, everyone);
  return disk.index.ParentOf(handle, shared);
}

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
  if (!disk.shown()) return handle;
  const uint8_t host = entry == nullptr ? 0 : TiersOf(*entry);
  feed.Record(index.ShardOf(block.key), {.partition = partition,
                                         .key = block.key,
                                         .tier_mask = static_cast<uint8_t>(host | kDiskBit)});
  return handle;
}

void StoreState::TakeOffDisk(DiskHandle handle) {
  ledger.RemoveDisk(namespaces.PartitionAt(disk.index.PartitionOf(handle)).tenant,
                    disk.index.PayloadBytesOf(handle));
  disk.index.Remove(handle);
}

void StoreState::DescribeOnDisk(DiskHandle handle, const DiskBlock& block) {
  const ParentId id{disk.index.PartitionOf(handle), block.key};
  const BlockEntry* entry = index.Find(id.partition, id.key);
  const int64_t before = disk.index.At(handle).expires_unix_ms;
  if (entry == nullptr || entry->retention.expires_unix_ms != before) expiries.Erase(before, id);
  disk.index.Describe(handle, block);
  expiries.Put(block.expires_unix_ms, id);
}

void StoreState::RemoveFromDisk(DiskHandle handle, RemovalReason reason) {
  const ParentId block{disk.index.PartitionOf(handle), disk.index.At(handle).key};
  const int64_t expires_unix_ms = disk.index.At(handle).expires_unix_ms;
  TakeOffDisk(handle);
  BlockEntry* entry = index.Find(block.partition, block.key);
  if (entry == nullptr || entry->retention.expires_unix_ms != expires_unix_ms) {
    expiries.Erase(expires_unix_ms, block);
  }
  if (entry == nullptr) {
    families.BelowChanged(block, false);
  } else {
    CAIRN_CHECK(entry->disk == handle);
    entry->disk = 0;
  }
  const bool in_host = entry != nullptr && entry->life == BlockEntry::Life::kPresent;
  if (!in_host) removed.Remember(block.partition, block.key, reason);
  if (!disk.shown()) return;
  feed.Record(index.ShardOf(block.key), {.partition = block.partition,
                                         .key = block.key,
                                         .tier_mask = in_host ? kHostBit : uint8_t{0},
                                         .reason = in_host ? RemovalReason::kNone : reason});
}

bool StoreState::CanLoad(DiskHandle handle) const {
  const DiskNode& node = disk.index.At(handle);
  if (!families.Fits({disk.index.PartitionOf(handle), node.key}, node.depth)) return false;
  if (!node.has_parent) return true;
  const ParentId parent_id = DiskParentOf(handle);
  const BlockEntry* parent = index.Find(parent_id.partition, parent_id.key);
  if (parent != nullptr) return parent->depth + 1 == node.depth;
  return families.FitsUnder(parent_id, node.depth);
}

BlockEntry* StoreState::AddLoading(DiskHandle handle, ClassSpace* space, SlotRef slot, UseStamp use,
                                   absl::Time now) {
  const DiskNode& node = disk.index.At(handle);
  const DiskScopeRecord& scope = disk.index.scopes().At(node.scope);
  NewBlock block{.name_space = namespaces.PartitionAt(scope.partition).name_space,
                 .partition = scope.partition,
                 .key = node.key,
                 .scope_digest = scope.scope->scope_digest,
                 .adapter = scope.scope->adapter,
                 .salt = scope.scope->salt,
                 .tokens = {},
                 .depth = node.depth,
                 .retention = {.priority = node.priority, .expires_unix_ms = node.expires_unix_ms},
                 .provenance = disk.index.BlockOf(handle, 0).provenance,
                 .reserved_at = now};
  if (node.has_parent) block.parent = DiskParentOf(handle);
  // The record says whether there are tokens; until then there is room for them.
  const std::vector<uint32_t> blank(block.name_space->map.layout().block_tokens);
  auto made = std::make_unique<BlockEntry>(block.name_space->map, blank);
  made->index_bytes += block.adapter.size() + block.salt.size();
  made->life = BlockEntry::Life::kLoading;
  made->loaded = true;
  made->stamp = use;
  BlockEntry* entry = Enter(std::move(made), block, space, slot);
  CAIRN_CHECK(entry->disk == handle);
  disk.index.MarkUsed(handle);
  ++disk.loading;
  disk.load_queue.PushBack(entry);
  loads_queued = true;
  counters->loads.fetch_add(1, std::memory_order_relaxed);
  return entry;
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
  entry->from_disk = true;
  slots.BecamePresent(entry);
  index.CountPresent(*entry);
  ++namespaces.PartitionAt(entry->partition).blocks;
  removed.Forget(entry->partition, entry->key);
  disk.failed_loads.Forget({entry->partition, entry->key});
  feed.Record(index.ShardOf(entry->key),
              {.partition = entry->partition, .key = entry->key, .tier_mask = TiersOf(*entry)});
  counters->loaded_blocks.fetch_add(1, std::memory_order_relaxed);
  settled = true;
}

void StoreState::Used(BlockEntry* entry, UseStamp use) {
  slots.Used(entry, use);
  if (entry->life != BlockEntry::Life::kPresent) return;
  entry->from_disk = false;
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
