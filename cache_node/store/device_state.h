// DeviceState: what the store knows of its device's memory: which blocks have a copy there, in
// which slots, and which of these go first.
//
// Part of StoreState, which changes it together with entries, families and feed. Where a block lies
// and what follows from it is in a DiskIndex, whose files are the segments of the device's pool;
// all else is in one DeviceBlock a slot. A slot is held by the block in the index, by those who
// fill or read it, or both, and its bytes are charged until it is free. Not thread-safe: under the
// store's lock; const methods may run together.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <tuple>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cache_node/store/device_options.h"
#include "cache_node/store/disk_index.h"
#include "cache_node/store/entry_queue.h"
#include "cache_node/store/eviction_policy.h"
#include "cache_node/store/tenant_ledger.h"
#include "cache_node/tiers/device/device_memory.h"

namespace cairn::node {

// A slot of the device, and the block that is in it or on its way there.
struct DeviceBlock {
  DiskHandle handle = 0;  // 0: it is being filled, or left the index and is held.
  BlockKey key;
  PartitionIndex partition = 0;
  TenantIndex tenant = 0;
  const PayloadMap* map = nullptr;
  SlotRef slot;
  std::byte* address = nullptr;
  uint32_t depth = 0;
  uint8_t priority = 0;
  Provenance provenance;
  std::unique_ptr<uint32_t[]> tokens;  // block_tokens of them, or null.
  std::vector<uint64_t> digests;       // By segment; those of a part that is not there are all 0.
  UseStamp stamp = 0;
  uint32_t pins = 0;    // Of those who fill or read it.
  bool may_go = false;  // It is among those that make room.
};

class DeviceState {
 public:
  // All slots are of one owner: no memory of the device is given away whole.
  static constexpr TenantIndex kOwner = 1;

  // `memory` is borrowed; null: there is no device.
  DeviceState(const DeviceOptions& options, DeviceMemory* memory, uint32_t feed_shards,
              uint64_t host_pool_bytes);
  ~DeviceState();

  bool enabled() const { return memory_ != nullptr; }
  // Whether its blocks can be read, and others copied there.
  bool serves() const { return enabled() && !failed; }
  const DeviceMemory* memory() const { return memory_; }

  DiskHandle Find(PartitionIndex partition, const BlockKey& key) const {
    return enabled() ? index.Find(partition, key) : 0;
  }
  DeviceBlock* At(DiskHandle handle) const { return by_handle_.at(handle); }
  bool SameTokens(DiskHandle handle, absl::Span<const uint32_t> tokens) const;

  // Whether the block's description fits within the bound.
  bool HasIndexRoom(const DeviceBlock& block, const DiskScope& scope) const;
  // What all of it takes.
  uint64_t bytes() const { return index.bytes() + details_bytes_; }

  // A slot, held by nobody yet: null when none is free.
  DeviceBlock* Take(const PayloadMap& map, TenantLedger* ledger, TenantIndex tenant);
  // It is in the index from now on. The index has room.
  void Enter(DeviceBlock* block, const DiskBlock& described, const DiskScope& scope);
  // Leaves the index; the slot is free with its last pin.
  void Leave(DeviceBlock* block, TenantLedger* ledger);
  void Pin(DeviceBlock* block);
  void Unpin(DeviceBlock* block, TenantLedger* ledger);
  void Used(DeviceBlock* block, UseStamp stamp);

  // Of which priority and how recently used: what a newcomer must exceed.
  struct Worth {
    uint8_t priority = 0;
    UseStamp stamp = 0;
    friend bool operator<(const Worth& a, const Worth& b) {
      return std::tie(a.priority, a.stamp) < std::tie(b.priority, b.stamp);
    }
  };
  // The least worthy block of that size that may go, one deeper before one less deep; of another
  // size where `other_sizes`.
  DeviceBlock* Victim(uint64_t bytes, bool other_sizes) const;
  static Worth WorthOf(const DeviceBlock& block) {
    return {.priority = block.priority, .stamp = block.stamp};
  }

  // O(n).
  absl::Status Audit() const;

  const DeviceOptions options;
  const uint64_t uploading_bytes_max;
  bool failed = false;
  DiskIndex index;

  // Blocks to be copied there: the last comes first.
  struct Wanted {
    ParentId block;
    bool walked = false;  // All before it that lack a copy are in the queue, behind it.
  };
  std::deque<Wanted> wanted;
  struct Upload {
    BlockEntry* entry = nullptr;    // Pinned by the task.
    DeviceBlock* block = nullptr;   // Pinned.
    DeviceBlock* parent = nullptr;  // Pinned, where it is there already.
  };
  absl::flat_hash_map<uint64_t, Upload> uploads;  // By the task's id.
  uint64_t uploading_bytes = 0;

  // Entries that are kLoading from here and not taken; the block of each is pinned.
  EntryQueue load_queue;
  struct Load {
    BlockEntry* entry = nullptr;   // Claimed.
    DeviceBlock* block = nullptr;  // Pinned.
  };
  absl::flat_hash_map<uint64_t, Load> loads;
  uint64_t last_task = 0;

 private:
  // Priority, use, how far from the deepest, handle: the first goes first.
  using Place = std::tuple<uint8_t, UseStamp, uint32_t, DiskHandle>;

  static Place PlaceOf(const DeviceBlock& block);
  static uint64_t DetailsOf(const PayloadMap& map);
  void Refresh(DeviceBlock* block);
  void RefreshParentOf(const DeviceBlock& block, const std::optional<BlockKey>& parent);
  void FreeIfUnheld(DeviceBlock* block, TenantLedger* ledger);

  DeviceMemory* const memory_;
  absl::flat_hash_map<const DeviceBlock*, std::unique_ptr<DeviceBlock>> blocks_;  // One a slot.
  absl::flat_hash_map<DiskHandle, DeviceBlock*> by_handle_;
  absl::btree_map<uint64_t, absl::btree_set<Place>> may_go_;  // By slot size; none is empty.
  uint64_t details_bytes_ = 0;
};

}  // namespace cairn::node
