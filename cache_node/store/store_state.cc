#include "cache_node/store/store_state.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/check.h"

namespace cairn::node {
namespace {

uint64_t StaysBytesMax(const BlockStore::Options& options, const HostMemory& memory) {
  return options.stays_bytes_max != 0 ? options.stays_bytes_max : memory.pool_bytes() / 4;
}

}  // namespace

StoreState::StoreState(const BlockStore::Options& options_in, RandomSource* random_in,
                       StoreCounters* counters_in, std::unique_ptr<HostMemory> memory,
                       std::unique_ptr<EvictionPolicyFactory> policies, bool with_disk,
                       DeviceMemory* device_memory)
    : options(options_in),
      random(random_in),
      counters(counters_in),
      ledger(TenantLedger::Budgets{
          .leased_bytes_max = options_in.leased_bytes_max != 0 ? options_in.leased_bytes_max
                                                               : memory->pool_bytes() / 2,
          .reserved_bytes_max = options_in.reserved_bytes_max != 0 ? options_in.reserved_bytes_max
                                                                   : memory->pool_bytes() / 2,
          .stays_bytes_max = StaysBytesMax(options_in, *memory)}),
      removed(options_in.removed_memory_entries),
      namespaces({.namespaces_max = BlockStore::kNamespacesMax,
                  .bytes_max = options_in.namespace_bytes_max,
                  .track_unsaved = with_disk}),
      index(options_in.feed_shards),
      disk(options_in.disk, with_disk, options_in.feed_shards, memory->pool_bytes()),
      device(options_in.device, device_memory, options_in.feed_shards, memory->pool_bytes()),
      feed_tiers(&index, &disk, &device),
      slots(std::move(memory), std::move(policies), ledger.budgets().stays_bytes_max),
      tokens(options_in.tokens_max),
      leases(options_in.leases_max),
      feed(&feed_tiers, options_in.watcher_queue_records) {
  working_sets.push_back(MakeTierWorkingSet("host", slots.memory().pool_bytes()));
  if (with_disk && options.disk.bytes_max > 0) {
    working_sets.push_back(MakeTierWorkingSet("disk", options.disk.bytes_max));
  }
  if (device.enabled()) {
    working_sets.push_back(MakeTierWorkingSet("device", device.memory()->pool_bytes()));
  }
}

StoreState::~StoreState() {
  // Leases and tokens only hold what is in here; pins and claims of others would outlive their
  // slots.
  CAIRN_CHECK(revoking_.empty());
  index.ForEach([](const BlockEntry& entry) {
    CAIRN_CHECK_MSG(entry.pins == entry.lease_pins && entry.claims == 0,
                    "the store is destroyed under a pin or claim");
  });
  for (const auto& [key, entry] : gone) {
    CAIRN_CHECK_MSG(entry->pins == entry->lease_pins && entry->claims == 0,
                    "the store is destroyed under a pin or claim");
  }
}

// What reserved and loading entries have in common.
BlockEntry* StoreState::Enter(std::unique_ptr<BlockEntry> made, const NewBlock& block,
                              ClassSpace* space, SlotRef slot) {
  made->key = block.key;
  made->partition = block.partition;
  made->name_space = block.name_space;
  made->epoch = block.name_space->epoch.load(std::memory_order_relaxed);
  made->depth = block.depth;
  made->retention = block.retention;
  made->index_bytes += ScheduleBytes(block.retention);
  made->provenance = block.provenance;
  made->reserved_at = block.reserved_at;
  made->charge = ledger.Take(space->slot_class.tenant, made->block_bytes());
  if (disk.enabled) made->disk = disk.index.Find(block.partition, block.key);
  made->device = device.Find(block.partition, block.key);

  BlockEntry* entry = index.Insert(std::move(made));
  slots.Bind(entry, space, slot);
  if (block.parent.has_value()) {
    BlockEntry* parent = index.Find(block.parent->partition, block.parent->key);
    const bool below =
        parent == nullptr && CopyOf(block.parent->partition, block.parent->key).handle != 0;
    families.Join(entry, *block.parent, parent, below);
    if (parent != nullptr) slots.Refresh(parent);
  }
  families.ParentArrived(entry);
  const ParentId id{entry->partition, entry->key};
  expiries.Put(entry->retention.expires_unix_ms, id);
  priorities.Put(entry->retention.priority_until_unix_ms, id);
  scopes.Add(entry, block.scope_digest, block.adapter, block.salt);
  return entry;
}

BlockEntry* StoreState::AddReserved(const NewBlock& block, ClassSpace* space, SlotRef slot) {
  auto made = std::make_unique<BlockEntry>(block.name_space->map, block.tokens);
  made->index_bytes += block.adapter.size() + block.salt.size();
  made->stamp = block.token->stamp;
  made->token = block.token;
  made->token_block = block.token_block;
  BlockEntry* entry = Enter(std::move(made), block, space, slot);

  TokenBlock& place = block.token->blocks[block.token_block];
  CAIRN_CHECK(!place.reserved && place.entry == nullptr);
  place = TokenBlock{.reserved = true, .present = false, .entry = entry};
  ++block.token->reserved;
  tokens.Counted(block.token);
  counters->reserved_blocks.fetch_add(1, std::memory_order_relaxed);
  return entry;
}

void StoreState::Publish(BlockEntry* entry) {
  CAIRN_CHECK(entry->life == BlockEntry::Life::kReserved && entry->required_parts_missing == 0);
  Token* token = entry->token;
  CAIRN_CHECK(token != nullptr && token->blocks[entry->token_block].entry == entry);
  entry->life = BlockEntry::Life::kPresent;
  token->blocks[entry->token_block].present = true;
  ++token->present;
  tokens.Counted(token);
  ledger.EndReserve(token->tenant, entry->block_bytes());
  slots.BecamePresent(entry);
  index.CountPresent(*entry);
  ++namespaces.PartitionAt(entry->partition).blocks;
  removed.Forget(entry->partition, entry->key);
  feed.Record(index.ShardOf(entry->key),
              {.partition = entry->partition, .key = entry->key, .tier_mask = TiersOf(*entry)});
  counters->committed_blocks.fetch_add(1, std::memory_order_relaxed);
  settled = true;
  if (disk.enabled && entry->block_bytes() > disk.options.block_bytes_max) {
    counters->spills_too_large.fetch_add(1, std::memory_order_relaxed);
  }
  if (device.serves() && entry->block_bytes() > device.memory()->slot_bytes_max()) {
    counters->uploads_too_large.fetch_add(1, std::memory_order_relaxed);
  }
  if (disk.options.admission == SpillAdmission::kAlways && QueueSpill(entry) == Queued::kFull) {
    counters->spills_shed.fetch_add(1, std::memory_order_relaxed);
  }
  WantOnDevice(entry);
}

void StoreState::ExpectReserve(uint64_t key, UseStamp request) {
  if (expected_.size() >= kReservesExpectedMax) expected_.pop_front();
  expected_.push_back({.key = key, .request = request});
}

UseStamp StoreState::BeginReserve(uint64_t key) {
  // The last: an older one's reserve may never come, and its stamp would put the block among those
  // that leave first.
  const auto lookup = std::find_if(expected_.rbegin(), expected_.rend(),
                                   [key](const Expected& one) { return one.key == key; });
  if (lookup == expected_.rend()) return ++stamp;
  const UseStamp request = lookup->request;
  expected_.erase(std::next(lookup).base());
  return request;
}

uint8_t StoreState::TiersOf(const BlockEntry& entry) const {
  const bool host = entry.life == BlockEntry::Life::kPresent;
  const bool on_disk = entry.disk != 0 && disk.shown();
  return static_cast<uint8_t>((host ? kHostBit : 0) | (on_disk ? kDiskBit : 0) |
                              (entry.device != 0 ? kDeviceBit : 0));
}

// Its token, queue and load forget an entry that leaves the index.
void StoreState::Detach(BlockEntry* entry) {
  if (entry->queue == &device.load_queue) device.Unpin(device.At(entry->device), &ledger);
  if (entry->queue != nullptr) entry->queue->Remove(entry);
  if (entry->life == BlockEntry::Life::kLoading) EndLoading(entry);
  Token* token = entry->token;
  if (token == nullptr) return;
  TokenBlock& place = token->blocks[entry->token_block];
  CAIRN_CHECK(place.entry == entry && place.reserved);
  if (entry->life == BlockEntry::Life::kReserved) {
    ledger.EndReserve(token->tenant, entry->block_bytes());
    ++token->gone;
    tokens.Counted(token);
  }
  place.entry = nullptr;
  entry->token = nullptr;
}

void StoreState::Remove(BlockEntry* entry, RemovalReason reason) {
  CAIRN_CHECK(entry->life != BlockEntry::Life::kGone);
  const bool was_present = entry->life == BlockEntry::Life::kPresent;
  CAIRN_CHECK(was_present || reason != RemovalReason::kEvicted);
  const bool by_will = reason != RemovalReason::kEvicted && reason != RemovalReason::kNone;
  const ParentId id{entry->partition, entry->key};
  const bool could_be_read = was_present || (by_will && (entry->disk != 0 || entry->device != 0));
  if (reason == RemovalReason::kEvicted && disk.QueuedToSpill(*entry)) {
    counters->spills_late.fetch_add(1, std::memory_order_relaxed);
  }
  if (entry->stays()) EndStay(entry);
  Detach(entry);
  if (by_will) TakeOffCopies(entry);
  const bool stays_below = entry->disk != 0 || entry->device != 0;
  slots.Unlist(entry);
  if (was_present) {
    index.UncountPresent(*entry);
    Partition& partition = namespaces.PartitionAt(entry->partition);
    CAIRN_CHECK(partition.blocks > 0);
    --partition.blocks;
  }
  BlockEntry* parent = families.Leave(entry);
  families.ParentLeft(entry, stays_below);
  scopes.Remove(entry);
  std::unique_ptr<BlockEntry> owned = index.Take(entry);
  entry->life = BlockEntry::Life::kGone;
  priorities.Erase(entry->retention.priority_until_unix_ms, id);
  EndOf(id, entry->retention.expires_unix_ms);
  if (parent != nullptr) slots.Refresh(parent);
  if (could_be_read) {
    if (!stays_below) removed.Remember(entry->partition, entry->key, reason);
    const uint8_t tiers = TiersOf(*entry);
    feed.Record(index.ShardOf(entry->key), {.partition = entry->partition,
                                            .key = entry->key,
                                            .tier_mask = tiers,
                                            .reason = tiers != 0 ? RemovalReason::kNone : reason});
  }
  if (reason != RemovalReason::kEvicted) entry->revoked.store(true, std::memory_order_release);
  if (by_will && entry->held()) counters->revocations.fetch_add(1, std::memory_order_release);
  // Who reads it in place sees that it is not to be used any more.
  if (by_will) slots.memory().Revoke(entry->slot);
  settled = true;
  slots.Refresh(entry);
  gone.emplace(entry, std::move(owned));
  // A load that failed cuts the leases that wait for it (LookupOperation); they are not revoked.
  if (entry->leases != nullptr && by_will) {
    Pin(entry);
    revoking_.push_back(entry);
  }
  ReleaseIfFree(entry);
}

void StoreState::TakeOffCopies(BlockEntry* entry) {
  const ParentId id{entry->partition, entry->key};
  if (entry->disk != 0) {
    const int64_t expires_unix_ms = disk.index.At(entry->disk).expires_unix_ms;
    TakeOffDisk(std::exchange(entry->disk, 0));
    EndOf(id, expires_unix_ms);
  }
  if (entry->device != 0) {
    const int64_t expires_unix_ms = device.index.At(entry->device).expires_unix_ms;
    TakeOffDevice(std::exchange(entry->device, 0));
    EndOf(id, expires_unix_ms);
  }
}

void StoreState::EndOf(const ParentId& block, int64_t expires_unix_ms) {
  const BlockEntry* entry = index.Find(block.partition, block.key);
  if (entry != nullptr && entry->retention.expires_unix_ms == expires_unix_ms) return;
  const auto ends_then = [expires_unix_ms](const DiskIndex& tier, DiskHandle handle) {
    return handle != 0 && tier.At(handle).expires_unix_ms == expires_unix_ms;
  };
  const DiskHandle on_disk = disk.enabled ? disk.index.Find(block.partition, block.key) : 0;
  if (ends_then(disk.index, on_disk)) return;
  if (ends_then(device.index, device.Find(block.partition, block.key))) return;
  expiries.Erase(expires_unix_ms, block);
}

void StoreState::Evict(BlockEntry* entry) {
  CAIRN_CHECK(entry->MayGo());
  if (entry->device != 0) counters->device_demoted_blocks.fetch_add(1, std::memory_order_relaxed);
  if (entry->disk != 0) counters->demoted_blocks.fetch_add(1, std::memory_order_relaxed);
  if (entry->disk == 0 && entry->device == 0) {
    counters->evicted_blocks.fetch_add(1, std::memory_order_relaxed);
  }
  Remove(entry, RemovalReason::kEvicted);
}

void StoreState::ReleaseIfFree(BlockEntry* entry) {
  if (entry->life != BlockEntry::Life::kGone || entry->held()) return;
  CAIRN_CHECK(entry->leases == nullptr && entry->family == nullptr && entry->children == nullptr);
  slots.Free(entry);
  CAIRN_CHECK(gone.erase(entry) == 1);
}

void StoreState::Held(BlockEntry* entry, bool was_held) {
  if (entry->held() == was_held) return;
  if (entry->held()) {
    pinned_bytes += entry->block_bytes();
  } else {
    CAIRN_CHECK(pinned_bytes >= entry->block_bytes());
    pinned_bytes -= entry->block_bytes();
  }
  slots.Refresh(entry);
  ReleaseIfFree(entry);
}

void StoreState::Pin(BlockEntry* entry) {
  const bool was_held = entry->held();
  ++entry->pins;
  ++pins;
  Held(entry, was_held);
}

void StoreState::Unpin(BlockEntry* entry) {
  CAIRN_CHECK(entry->pins > entry->lease_pins && pins > 0);
  --entry->pins;
  --pins;
  Held(entry, true);
}

void StoreState::Claim(BlockEntry* entry) {
  const bool was_held = entry->held();
  ++entry->claims;
  ++pins;
  Held(entry, was_held);
}

void StoreState::Unclaim(BlockEntry* entry) {
  CAIRN_CHECK(entry->claims > 0 && pins > 0);
  --entry->claims;
  --pins;
  Held(entry, true);
}

}  // namespace cairn::node
