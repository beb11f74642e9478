// StoreState: blocks outside of host memory, whatever the tier, and their way into it.
#include "cache_node/store/store_state.h"
#include "common/base/check.h"

namespace cairn::node {

StoreState::Copy StoreState::CopyOf(PartitionIndex partition, const BlockKey& key) const {
  const DiskHandle on_device = device.Find(partition, key);
  if (on_device != 0) return {.on_device = true, .handle = on_device};
  return {.on_device = false, .handle = disk.enabled ? disk.index.Find(partition, key) : 0};
}

StoreState::Copy StoreState::ReadableCopyOf(PartitionIndex partition, const BlockKey& key,
                                            absl::Time now) const {
  const DiskHandle on_device = device.serves() ? device.Find(partition, key) : 0;
  if (on_device != 0) return {.on_device = true, .handle = on_device};
  const DiskHandle on_disk = disk.reads() ? disk.index.Find(partition, key) : 0;
  if (on_disk == 0 || disk.failed_loads.Contains({partition, key}, now)) return {};
  return {.on_device = false, .handle = on_disk};
}

ParentId StoreState::ParentOf(const Copy& copy) const {
  const DiskIndex& tier = IndexOf(copy);
  const Partition& partition = namespaces.PartitionAt(tier.PartitionOf(copy.handle));
  const TenantIndex everyone = ledger.Find(kPublicTenant);
  const PartitionIndex shared =
      everyone == 0 ? 0 : namespaces.FindPartition(*partition.name_space, everyone);
  return tier.ParentOf(copy.handle, shared);
}

bool StoreState::RemoveCopies(const ParentId& block, RemovalReason reason) {
  const DiskHandle on_device = device.Find(block.partition, block.key);
  if (on_device != 0) RemoveFromDevice(on_device, reason);
  const DiskHandle on_disk = disk.enabled ? disk.index.Find(block.partition, block.key) : 0;
  if (on_disk != 0) RemoveFromDisk(on_disk, reason);
  return on_device != 0 || on_disk != 0;
}

void StoreState::UsedThere(const Copy& copy, UseStamp use) {
  if (copy.on_device) {
    device.Used(device.At(copy.handle), use);
  } else {
    disk.index.MarkUsed(copy.handle);
  }
}

void StoreState::Tell(const ParentId& block, RemovalReason reason) {
  uint8_t tiers = 0;
  if (const BlockEntry* entry = index.Find(block.partition, block.key); entry != nullptr) {
    tiers = TiersOf(*entry);
  } else {
    if (device.Find(block.partition, block.key) != 0) tiers |= kDeviceBit;
    if (disk.shown() && disk.index.Find(block.partition, block.key) != 0) tiers |= kDiskBit;
  }
  feed.Record(index.ShardOf(block.key), {.partition = block.partition,
                                         .key = block.key,
                                         .tier_mask = tiers,
                                         .reason = tiers != 0 ? RemovalReason::kNone : reason});
}

bool StoreState::CanLoad(const Copy& copy) const {
  const DiskIndex& tier = IndexOf(copy);
  const DiskNode& node = tier.At(copy.handle);
  if (!families.Fits({tier.PartitionOf(copy.handle), node.key}, node.depth)) return false;
  if (!node.has_parent) return true;
  const ParentId parent_id = ParentOf(copy);
  const BlockEntry* parent = index.Find(parent_id.partition, parent_id.key);
  if (parent != nullptr) return parent->depth + 1 == node.depth;
  return families.FitsUnder(parent_id, node.depth);
}

BlockEntry* StoreState::AddLoading(const Copy& copy, ClassSpace* space, SlotRef slot, UseStamp use,
                                   absl::Time now) {
  const DiskIndex& tier = IndexOf(copy);
  const DiskNode& node = tier.At(copy.handle);
  const DiskScopeRecord& scope = tier.scopes().At(node.scope);
  NewBlock block{.name_space = namespaces.PartitionAt(scope.partition).name_space,
                 .partition = scope.partition,
                 .key = node.key,
                 .scope_digest = scope.scope->scope_digest,
                 .adapter = scope.scope->adapter,
                 .salt = scope.scope->salt,
                 .tokens = {},
                 .depth = node.depth,
                 .retention = {.priority = node.priority, .expires_unix_ms = node.expires_unix_ms},
                 .provenance = tier.BlockOf(copy.handle, 0).provenance,
                 .reserved_at = now};
  if (node.has_parent) block.parent = ParentOf(copy);
  // The copy says whether there are tokens; until then there is room for them.
  const std::vector<uint32_t> blank(block.name_space->map.layout().block_tokens);
  auto made = std::make_unique<BlockEntry>(block.name_space->map, blank);
  made->index_bytes += block.adapter.size() + block.salt.size();
  made->life = BlockEntry::Life::kLoading;
  made->loaded = true;
  made->from_device = copy.on_device;
  made->stamp = use;
  BlockEntry* entry = Enter(std::move(made), block, space, slot);
  CAIRN_CHECK((copy.on_device ? entry->device : entry->disk) == copy.handle);
  UsedThere(copy, use);
  ++disk.loading;
  if (copy.on_device) {
    device.Pin(device.At(copy.handle));
    device.load_queue.PushBack(entry);
    device_loads_queued = true;
  } else {
    disk.load_queue.PushBack(entry);
    loads_queued = true;
  }
  (copy.on_device ? counters->device_loads : counters->loads)
      .fetch_add(1, std::memory_order_relaxed);
  return entry;
}

DiskScope StoreState::DiskScopeOf(const BlockEntry& entry) const {
  const Partition& partition = namespaces.PartitionAt(entry.partition);
  return {.fingerprint = partition.name_space->fingerprint,
          .tenant = ledger.NameOf(partition.tenant),
          .adapter = entry.scope->adapter,
          .salt = entry.scope->salt,
          .scope_digest = entry.scope->scope_digest};
}

DiskBlock StoreState::DescriptionOf(const BlockEntry& entry) const {
  DiskBlock block;
  block.key = entry.key;
  if (entry.family != nullptr) {
    block.parent = entry.family->id.key;
    block.parent_shared = entry.family->id.partition != entry.partition;
  }
  block.depth = entry.depth;
  block.epoch = entry.epoch;
  block.expires_unix_ms = entry.retention.expires_unix_ms;
  // One that ends is not kept: elsewhere it would not.
  block.priority =
      entry.retention.priority_until_unix_ms == 0 ? entry.retention.priority : kPriorityDefault;
  block.payload_bytes = entry.block_bytes();
  block.provenance = entry.provenance;
  return block;
}

}  // namespace cairn::node
