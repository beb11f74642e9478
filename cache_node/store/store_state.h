// StoreState: everything under the store's lock, and the few transitions that keep it consistent.
//
// Every change of an entry's life, holders or family goes through here, so that policy, feed,
// digests, charges and budgets follow. The operations of the paths (lookup_operation.h,
// reserve_operation.h, ...) are built of these. Not thread-safe: its users hold the store's lock;
// const methods may run together under a shared lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "cache_node/store/block_entry.h"
#include "cache_node/store/block_families.h"
#include "cache_node/store/block_index.h"
#include "cache_node/store/block_schedule.h"
#include "cache_node/store/block_store.h"
#include "cache_node/store/device_state.h"
#include "cache_node/store/disk_state.h"
#include "cache_node/store/feed_hub.h"
#include "cache_node/store/feed_tiers.h"
#include "cache_node/store/lease_table.h"
#include "cache_node/store/namespace_table.h"
#include "cache_node/store/removed_ring.h"
#include "cache_node/store/scope_lists.h"
#include "cache_node/store/slot_space.h"
#include "cache_node/store/store_counters.h"
#include "cache_node/store/tenant_ledger.h"
#include "cache_node/store/tier_working_set.h"
#include "cache_node/store/token_table.h"
#include "common/base/random_source.h"

namespace cairn::node {

struct StoreState {
  StoreState(const BlockStore::Options& options_in, RandomSource* random_in,
             StoreCounters* counters_in, std::unique_ptr<HostMemory> memory,
             std::unique_ptr<EvictionPolicyFactory> policies, bool with_disk,
             DeviceMemory* device_memory);
  ~StoreState();

  StoreState(const StoreState&) = delete;
  StoreState& operator=(const StoreState&) = delete;

  // --- Entries ---
  struct NewBlock {
    NamespaceRecord* name_space = nullptr;
    PartitionIndex partition = 0;
    BlockKey key;
    BlockKey scope_digest;
    absl::string_view adapter;
    absl::string_view salt;
    absl::Span<const uint32_t> tokens;
    uint32_t depth = 0;
    std::optional<ParentId> parent = std::nullopt;
    Retention retention = {};
    Provenance provenance = {};
    absl::Time reserved_at;
    Token* token = nullptr;
    uint32_t token_block = 0;
  };
  // A reserved entry in a slot that was allocated and whose bytes were counted as reserved.
  BlockEntry* AddReserved(const NewBlock& block, ClassSpace* space, SlotRef slot);
  // All parts of its required groups are committed: readable from now on.
  void Publish(BlockEntry* entry);
  // Takes it out of the index, for `reason` (kNone: it was never present). Its slot is free at
  // once, or when the last holder lets go. The entry may be destroyed.
  void Remove(BlockEntry* entry, RemovalReason reason);
  void Evict(BlockEntry* entry);

  // A request used it: tells the policy and the disk index, and may queue it to be spilled.
  void Used(BlockEntry* entry, UseStamp use);

  // --- Blocks on disk (store_disk.cc) ---
  // A mover's file has it now. 0 when the index is full.
  DiskHandle AddOnDisk(DiskScopeIndex scope, DiskFileIndex file, uint32_t slot,
                       const DiskBlock& block);
  // What is there is another block of the same key.
  void DescribeOnDisk(DiskHandle handle, const DiskBlock& block);
  // It cannot be found there any more. In host memory it stays.
  void RemoveFromDisk(DiskHandle handle, RemovalReason reason);
  // Its bytes and digests are in.
  void PublishLoaded(BlockEntry* entry);
  // To be written, if it is not on disk, being written or queued, and there is room.
  enum class Queued { kYes, kNotNeeded, kFull };
  Queued QueueSpill(BlockEntry* entry);
  // Whether a block of so many bytes would be queued to be written at its commit.
  bool TakesToDisk(uint64_t bytes) const;

  // --- Blocks on the device (store_device.cc) ---
  // A copy that a mover filled, of an entry that is present.
  void AddOnDevice(DeviceBlock* block, BlockEntry* entry);
  // It cannot be found there any more. In other tiers it stays.
  void RemoveFromDevice(DiskHandle handle, RemovalReason reason);
  // To be copied there, if it is not there, on its way or waiting.
  void WantOnDevice(BlockEntry* entry);
  // What waits longest, beyond the queue's bound, is not copied.
  void BoundWanted();
  // What waits for its bytes from the device gets them from disk, or fails.
  void LoadElsewhere(BlockEntry* entry);

  // --- Copies outside of host memory: on the device or on disk (store_copies.cc) ---
  struct Copy {
    bool on_device = false;
    DiskHandle handle = 0;  // 0: none.
    explicit operator bool() const { return handle != 0; }
  };
  const DiskIndex& IndexOf(const Copy& copy) const {
    return copy.on_device ? device.index : disk.index;
  }
  // Where the block has one: the device's first, whether or not it can be read now.
  Copy CopyOf(PartitionIndex partition, const BlockKey& key) const;
  // One that can be read.
  Copy ReadableCopyOf(PartitionIndex partition, const BlockKey& key, absl::Time now) const;
  // The parent of the block, as families know it.
  ParentId ParentOf(const Copy& copy) const;
  // All copies of a block that is not in the index of host memory. False: there was none.
  bool RemoveCopies(const ParentId& block, RemovalReason reason);
  // A request used it there.
  void UsedThere(const Copy& copy, UseStamp use);
  // Whether the block can be a loading entry: no block in the index has another depth in mind.
  bool CanLoad(const Copy& copy) const;
  // An entry in an allocated slot, whose bytes were counted as reserved, for such a block.
  BlockEntry* AddLoading(const Copy& copy, ClassSpace* space, SlotRef slot, UseStamp use,
                         absl::Time now);
  // What is kept beside an entry's bytes in another tier: its sequence is the caller's.
  DiskBlock DescriptionOf(const BlockEntry& entry) const;
  DiskScope DiskScopeOf(const BlockEntry& entry) const;

  void Pin(BlockEntry* entry);
  void Unpin(BlockEntry* entry);  // May destroy it.
  void Claim(BlockEntry* entry);
  void Unclaim(BlockEntry* entry);  // May destroy it.

  // As the feed says it.
  uint8_t TiersOf(const BlockEntry& entry) const;

  // --- Requests: what carries one stamp ---
  // A lookup that uses what it finds.
  UseStamp BeginLookup() { return ++stamp; }
  // Its prompt goes on with this block, which is nowhere: who reserves that does so for it.
  void ExpectReserve(uint64_t key, UseStamp request);
  // A reserve, by its first new block: of the last lookup that expects it, else a request by
  // itself.
  UseStamp BeginReserve(uint64_t key);

  // --- Leases ---
  // Pins a present or loading entry for the lease, once, and answers its place among the lease's
  // links. Nothing, and nothing is done, when the budget is spent.
  std::optional<uint32_t> AddToLease(Lease* lease, BlockEntry* entry);
  // It ends now: its blocks are given back by chores, with one use when `used`.
  void EndLease(Lease* lease, bool used, absl::Time now);
  void RevokeLease(Lease* lease, absl::Time now);
  // Gives back one block of a lease that is open, without a use.
  void DropFromLease(Lease* lease, LeaseLink* link);

  // --- Tokens ---
  // It ends now: blocks that are not present leave, by chores.
  void CloseToken(Token* token);

  // --- Chores: what one event makes necessary for many blocks, in steps ---
  bool HasChores() const;
  // At most `steps` of them.
  void RunChores(size_t steps, absl::Time now);
  // Expires what is due, at most `steps`; false when nothing is due any more.
  bool StepExpiry(size_t steps, absl::Time now);

  // --- Retention ---
  // What a block takes in the schedules, as a part of its index.
  static uint64_t ScheduleBytes(const Retention& retention) {
    return (retention.expires_unix_ms != 0 ? BlockSchedule::kBytesPerBlock : 0) +
           (retention.priority_until_unix_ms != 0 ? BlockSchedule::kBytesPerBlock : 0);
  }
  // Removes blocks whose time has come, and ends priorities; likewise.
  bool StepRetention(size_t steps, int64_t now_unix_ms);

  // --- Quotas ---
  // Those of the ledger have changed: tenants over them are to shrink.
  void QuotasChanged();
  // Ends stays that are over their tenant's, at most `steps`; false when all were looked at.
  bool StepStaysOver(size_t steps);
  // Evicts blocks of such tenants, at most `steps`; false when none can go.
  bool StepShrink(size_t steps);

  // --- Blocks that are to stay (store_stays.cc) ---
  // Until then, or longer where it was to stay already.
  StayOutcome Stay(BlockEntry* entry, int64_t until_unix_ms);
  // It may go, unless a block after it is to stay.
  StayOutcome LetGo(BlockEntry* entry);

  // O(n): whether everything agrees with everything.
  absl::Status Audit() const;

  const BlockStore::Options options;
  RandomSource* const random;
  StoreCounters* const counters;

  TenantLedger ledger;
  absl::flat_hash_map<BorrowerId, TenantLedger::Charge> staging;
  RemovedRing removed;
  NamespaceTable namespaces;
  BlockIndex index;
  DiskState disk;
  DeviceState device;
  FeedTiers feed_tiers;
  BlockFamilies families;
  ScopeLists scopes;
  SlotSpace slots;
  TokenTable tokens;
  LeaseTable leases;
  FeedHub feed;
  std::vector<TierWorkingSet> working_sets;  // Of host memory, and of the disk if there is one.
  BlockSchedule expiries;                    // Of blocks in host memory or on disk.
  BlockSchedule priorities;                  // Ends of those of blocks in host memory.
  BlockSchedule stays;                       // Ends of those of blocks in host memory.

  // Entries that left the index and are held.
  absl::flat_hash_map<const BlockEntry*, std::unique_ptr<BlockEntry>> gone;
  UseStamp stamp = 0;  // Of the last request.
  uint64_t pins = 0;   // Of readers and writers.
  uint64_t pinned_bytes = 0;
  // Since the lock was last taken:
  bool settled = false;              // a pending block or a lease changed,
  bool spills_queued = false;        // there is something for TakeSpills,
  bool loads_queued = false;         // or for TakeLoad,
  bool uploads_queued = false;       // or for TakeUploads,
  bool device_loads_queued = false;  // or for TakeDeviceLoads,
  bool recalled = false;             // or for TakeRecalls.

 private:
  // Lookups whose reserves are to come that are remembered: more than are at work at once.
  static constexpr size_t kReservesExpectedMax = 256;
  struct Expected {
    uint64_t key = 0;
    UseStamp request = 0;
  };

  void StepLeaseRelease(Lease* lease);
  void ReleaseLink(Lease* lease, LeaseLink* link);
  void StepTokenClose(Token* token);
  void StepRevoke(BlockEntry* entry, absl::Time now);
  void ExpireShares(Lease* lease, absl::Time now);
  void Held(BlockEntry* entry, bool was_held);
  void ReleaseIfFree(BlockEntry* entry);
  void Detach(BlockEntry* entry);
  bool StepFamilies();
  void EndLoading(BlockEntry* entry);
  BlockEntry* Enter(std::unique_ptr<BlockEntry> made, const NewBlock& block, ClassSpace* space,
                    SlotRef slot);
  void TakeOffDisk(DiskHandle handle);
  void TakeOffDevice(DiskHandle handle);
  void TakeOffCopies(BlockEntry* entry);
  // Something of the block left that had this end; others may have it too.
  void EndOf(const ParentId& block, int64_t expires_unix_ms);
  // Tells the feed where it is now.
  void Tell(const ParentId& block, RemovalReason reason);
  void Expire(const ParentId& block, int64_t now_unix_ms);
  void EndStay(BlockEntry* entry);
  bool StaysAsScheduled(const BlockEntry& entry) const;
  void EndPriority(const ParentId& block, int64_t now_unix_ms);
  absl::Status AuditIndexed(const BlockEntry& entry) const;
  absl::Status AuditDisk() const;
  absl::Status AuditDevice() const;
  absl::Status AuditLoads() const;

  std::deque<Expected> expected_;  // Oldest first.
  std::deque<Lease*> releasing_;
  std::deque<Token*> closing_;
  std::deque<TenantIndex> shrinking_;
  std::optional<BlockSchedule::Cursor> stays_over_;  // While some may be over a quota.
  std::deque<BlockEntry*> revoking_;                 // Each pinned while it is here.
};

}  // namespace cairn::node
