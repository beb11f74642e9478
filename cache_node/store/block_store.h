// BlockStore: the blocks of one node, from reserve to removal. Knows no gRPC, no threads of its own
// and no wall clock: time, randomness, memory, hashing and eviction come through the constructor.
//
// What it keeps: a reader gets committed bytes or a miss; nothing half written is visible; a slot
// is not reused under a pin; only consecutive blocks count; all is bounded and every slot's bytes
// are charged to one tenant while it lives; tenants do not see each other (a partition is one
// namespace and tenant; a lookup sees the caller's and the public one).
//
// Thread-safe. One lock guards all state; no call holds it for more than a bounded number of steps
// (kStepsPerLock), so long calls let others in between; the exception is a feed's snapshot, which
// copies one shard's keys at once. Bytes are copied and hashed outside the
// lock. Blocking work that is said here (segment remake, hashing of a reported block) happens on
// the caller's thread, outside the lock.
//
// Miss reasons are states, not errors. ABORTED: token or lease unknown, expired or another
// tenant's, all alike. FAILED_PRECONDITION: namespace unknown (on writes) or bound otherwise.
// RESOURCE_EXHAUSTED: a bound, with a retry delay. INVALID_ARGUMENT: malformed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cache_node/store/block_pin.h"
#include "cache_node/store/block_record.h"
#include "cache_node/store/block_store_options.h"
#include "cache_node/store/device_pin.h"
#include "cache_node/store/device_task.h"
#include "cache_node/store/disk_task.h"
#include "cache_node/store/durable_ledger.h"
#include "cache_node/store/eviction_policy.h"
#include "cache_node/store/explain_types.h"
#include "cache_node/store/feed_hub.h"
#include "cache_node/store/in_place_types.h"
#include "cache_node/store/store_counters.h"
#include "cache_node/store/store_types.h"
#include "cache_node/store/tenant_quotas.h"
#include "cache_node/store/tier_working_set.h"
#include "cache_node/store/write_claim.h"
#include "cache_node/tiers/device/device_memory.h"
#include "cache_node/tiers/disk/disk_tier.h"
#include "cache_node/tiers/host_memory.h"
#include "common/base/guarded_time.h"
#include "common/base/random_source.h"
#include "common/identity/key_chain.h"

namespace cairn::node {

class LookupOperation;
struct StoreState;  // Everything under the lock; store_state.h.
struct ParentId;    // block_families.h.

// The tenant whose blocks everyone may read.
inline constexpr char kPublicTenant[] = "public";

class BlockStore {
 public:
  static constexpr size_t kStepsPerLock = 256;
  static constexpr size_t kNamespacesMax = 4096;

  using Options = BlockStoreOptions;

  // Called outside the lock; must be cheap and must not call the store.
  struct Signals {
    std::function<void()> settled = {};  // A pending block or a lease changed.
    std::function<void(std::vector<WatcherId>)> feed =
        {};                                   // These watchers have something to pull.
    std::function<void()> spills = {};        // TakeSpills has something that it had not.
    std::function<void()> loads = {};         // So has TakeLoad.
    std::function<void()> recalls = {};       // So has TakeRecalls,
    std::function<void()> uploads = {};       // or TakeUploads,
    std::function<void()> device_loads = {};  // or TakeDeviceLoads.
  };

  // Borrows time, random, counters, ledger and device, which must outlive it. Without a disk tier
  // `ledger` is null; with one, the store is recovering until EndRecovery. Without a device
  // `device` is null.
  BlockStore(const Options& options, const GuardedTime* time, RandomSource* random,
             StoreCounters* counters, std::unique_ptr<HostMemory> memory,
             std::unique_ptr<EvictionPolicyFactory> policies, Signals signals,
             DurableLedger* ledger = nullptr, DeviceMemory* device = nullptr);
  // No pin, claim or call may be left.
  ~BlockStore();

  // --- Namespaces ---
  absl::StatusOr<RegisteredNamespace> RegisterNamespace(absl::string_view tenant,
                                                        absl::string_view name,
                                                        const Namespace& fields);
  // Layout and key scheme of a registered fingerprint; null when unknown or retired. The map stays
  // valid for the store's life.
  const PayloadMap* FindPayloadMap(const Fingerprint& fingerprint) const;
  const Namespace* FindNamespace(const Fingerprint& fingerprint) const;
  // Another after a retirement; nothing while it is unknown or retired.
  std::optional<uint64_t> LiveEpoch(const Fingerprint& fingerprint) const;
  // Whether the tenant, or the public one, has a label for the namespace: to others it is unknown.
  bool IsKnownTo(absl::string_view tenant, const Fingerprint& fingerprint) const;
  // Fences (durably first, where there is a disk tier: the ledger's error, and nothing has
  // changed), then removes in steps; returns when all is removed.
  absl::StatusOr<RemovedBlocks> RetireNamespace(const Fingerprint& fingerprint);
  absl::StatusOr<RemovedBlocks> ClearScope(absl::string_view tenant, const Fingerprint& fingerprint,
                                           const BlockKey& scope_digest);

  // --- Reads ---
  LookupAnswer Lookup(absl::string_view tenant, const Fingerprint& fingerprint,
                      const LookupQuery& query);
  absl::StatusOr<LeaseStatus> GetLease(absl::string_view tenant, const LeaseId& lease) const;
  absl::StatusOr<absl::Duration> RenewLease(absl::string_view tenant, const LeaseId& lease,
                                            uint32_t reader, absl::Duration ttl);
  absl::StatusOr<LeaseStatus> EndLease(absl::string_view tenant, const LeaseId& lease,
                                       uint32_t reader, absl::Span<const uint32_t> usable_blocks);
  // A pin on one block: through a lease that holds it, or by key alone. The state says why not.
  struct PinAnswer {
    BlockPin pin;
    BlockState state = BlockState::kNeverSeen;
  };
  absl::StatusOr<PinAnswer> PinForRead(absl::string_view tenant, const Fingerprint& fingerprint,
                                       const std::optional<LeaseId>& lease, const BlockKey& key);

  // Pins of their own on consecutive blocks of one prompt of the lookup that made the lease, from
  // `first_block` on: at most `count_max`, as far as the lease covers them and they can be read.
  absl::StatusOr<std::vector<BlockPin>> LeasePins(absl::string_view tenant,
                                                  const Fingerprint& fingerprint,
                                                  const LeaseId& lease, uint32_t prompt,
                                                  uint32_t first_block, uint32_t count_max);

  // A pin on the copy of a block on the device, by key, as PinForRead's; kDevice with a pin.
  struct DevicePinAnswer {
    DevicePin pin;
    BlockState state = BlockState::kNeverSeen;
  };
  DevicePinAnswer PinOnDevice(absl::string_view tenant, const Fingerprint& fingerprint,
                              const BlockKey& key);

  // Of the tenant's own blocks: all that is known beside their bytes. Pins, uses and counts
  // nothing. Blocks whose tokens exceed `tokens_max` in all are kNotLeased; 0: without tokens.
  BlockRecords DescribeBlocks(absl::string_view tenant, const Fingerprint& fingerprint,
                              absl::Span<const BlockKey> keys, uint64_t tokens_max) const;

  // Why the first block that the prompt misses is not held (explain_operation.h). Takes as long as
  // a walk over all blocks.
  ExplainAnswer Explain(absl::string_view tenant, const Fingerprint& fingerprint,
                        const ExplainQuery& query) const;
  // In words, how the tenant's namespaces and public ones differ from these fields: label and first
  // difference, those that have most in common first, at most `max`. None that is equal.
  std::vector<std::pair<std::string, std::string>> NamespacesNear(absl::string_view tenant,
                                                                  const Namespace& fields,
                                                                  size_t max) const;

  // --- Readers of this host (cache_node/local) ---
  // Where blocks of the lease lie, as far as `digests_max` goes (in_place_operations.h). With
  // `hold` the share ends only by EndLease or CloseShare. At most kStepsPerLock keys.
  absl::StatusOr<InPlaceAnswer> ReadInPlace(absl::string_view tenant, const LeaseId& lease,
                                            uint32_t reader, absl::Span<const BlockKey> keys,
                                            size_t digests_max, bool hold);
  void CloseShare(absl::string_view tenant, const LeaseId& lease, uint32_t reader);
  // The memory segment of a block that ReadInPlace answered to this tenant. UNAVAILABLE: not now.
  absl::StatusOr<LentSegment> LendSegment(absl::string_view tenant, const InPlaceBlock& block,
                                          BorrowerId borrower);
  // As of SegmentLoans.
  void ReturnSegments(BorrowerId borrower, absl::Span<const uint64_t> segments);
  void ReturnAllSegments(BorrowerId borrower);
  bool BorrowerGone(BorrowerId borrower);
  std::vector<SegmentRecall> TakeRecalls();
  SegmentLoans::Counts Loans() const;
  // Staging memory of a borrower, one at a time, charged to its tenant. False: over its quota.
  bool ChargeStaging(absl::string_view tenant, BorrowerId borrower, uint64_t bytes);
  // Also where nothing was charged.
  void EndStaging(BorrowerId borrower);
  // Copies whole segments from memory that others may write meanwhile to where they go, and takes
  // in what landed; answers the digests of that. Of a claim without digests of its own these count;
  // else INVALID_ARGUMENT where one differs. `already_in`: the bytes are compared instead.
  absl::StatusOr<std::vector<uint64_t>> LandStaged(WriteClaim claim,
                                                   absl::Span<const uint8_t> bytes);

  // --- Writes ---
  absl::StatusOr<ReserveAnswer> Reserve(absl::string_view tenant, const Fingerprint& fingerprint,
                                        const ReserveQuery& query);
  // `writer` names a stream: a segment begun in pieces is continued by the same writer, in order.
  absl::StatusOr<WriteClaim> BeginWrite(absl::string_view tenant, const TokenId& token,
                                        uint64_t writer, const WritePiece& piece);
  // Hashes what landed at the destination (outside the lock) and takes it in; INVALID_ARGUMENT when
  // a digest differs, and the segments are free to be written again.
  absl::Status FinishWrite(WriteClaim claim);
  // The stream is over, and has no claim left: segments that it began and did not finish are given
  // back.
  void EndWriter(const TokenId& token, uint64_t writer);
  absl::StatusOr<CommitAnswer> Commit(absl::string_view tenant, const TokenId& token,
                                      absl::Span<const SegmentRun> runs);
  absl::Status Abort(absl::string_view tenant, const TokenId& token);

  // Blocks of the tenant's, by key, are to stay in host memory until then, or (0) no longer: what
  // came of it for each. A block stays with those before it, so keys come in a prompt's order.
  std::vector<StayOutcome> Stay(absl::string_view tenant, const Fingerprint& fingerprint,
                                absl::Span<const BlockKey> keys, int64_t until_unix_ms);

  // --- Removal ---
  // Hashes the node's own copy first; true: it was bad and the block is quarantined.
  absl::StatusOr<bool> ReportMismatch(absl::string_view tenant, const Fingerprint& fingerprint,
                                      const BlockKey& key, const SegmentId& segment);
  // All blocks that the writer (Provenance) wrote between the two times, of whatever tenant and
  // tier, and all that follow them and were written by then. Nothing of it can be read when it
  // returns. UNAVAILABLE: some may be left, repeat the call.
  absl::StatusOr<RemovedBlocks> PurgeWriter(uint64_t writer, int64_t since_unix_ms,
                                            int64_t until_unix_ms);
  absl::StatusOr<std::vector<bool>> Delete(absl::string_view tenant, const Fingerprint& fingerprint,
                                           absl::Span<const BlockKey> keys);
  // Of the public tenant's blocks only those with these keys, and all before them, stay, in
  // whatever tier; and what is reserved meanwhile. Adds to `removed_blocks` how many went. Unless
  // UNAVAILABLE because blocks on disk are still being found, which changes nothing, nothing else
  // of them can be read when it returns. Any other error: what went may be found on disk at a
  // restart. Repeat the call.
  absl::Status KeepPublic(const absl::flat_hash_set<BlockKey>& last_keys, uint64_t* removed_blocks);

  // --- Quotas ---
  // Replaces those before. A tenant that has more in host memory than its new quota loses it, the
  // least worth first, as Tick is called: a bounded number of blocks each time.
  void SetQuotas(TenantQuotas quotas);

  // --- Disk tier: what the movers of cache_node/spill ask and report ---
  // Blocks to be written, parents before children, each pinned; counted against
  // DiskOptions::spilling_bytes_max until they are reported. Nothing while the tier is not open or
  // takes no writes. Stops at the block that reaches `bytes_max`.
  std::vector<SpillTask> TakeSpills(size_t blocks_max, uint64_t bytes_max);
  // Whether some wait, though TakeSpills may answer none before others are reported.
  bool SpillsWait() const;
  // Where the blocks of a file lie, before the file is finished. Answers the places of those that
  // were removed meanwhile: they must be marked dead before it is.
  std::vector<DiskPlace> PlaceWrites(absl::Span<const PlacedBlock> placed);
  // The file is there: its blocks can be found, but for those removed meanwhile.
  void FinishWrites(uint64_t file, uint64_t file_bytes, absl::Span<const PlacedBlock> placed);
  // They could not be written. Spills wait for their blocks' next use, or RetrySpills.
  void AbandonWrites(absl::Span<const uint64_t> ids);

  // A block to be read, the longest waiting first.
  std::optional<LoadTask> TakeLoad();
  // OK: the bytes are in the task's slot, and verified. DATA_LOSS: the block is quarantined, and
  // its place to be marked dead. NOT_FOUND: its whole file is forgotten. Else: it stays on disk,
  // and is not loaded again before DiskOptions::load_retry_after.
  void FinishLoad(const LoadTask& task, const absl::Status& status, const DiskRecordFields& fields);

  // The file that is to make room, with those of its blocks that are worth their bytes again. Its
  // moves are reported as writes; then FinishReclaim makes the rest unreachable, and the file may
  // be dropped, before another one is taken. Nothing when there is no file to spare.
  std::optional<ReclaimTask> TakeReclaim();
  void FinishReclaim(uint64_t file);
  // The file stays.
  void AbandonReclaim(uint64_t file);
  // The record of a move is not the block's: it is quarantined. The move is still to be reported.
  void QuarantineMove(const MoveTask& move);
  // A record could not be marked dead; it is refused again when it is read.
  void NoteMarkFailed() { counters_->marks_failed.fetch_add(1, std::memory_order_relaxed); }

  // Start, in this order: the ledger, best before other calls; then OpenDisk with what it answered,
  // once that is durable as a fence; then the files, oldest first, and EndRecovery, while the store
  // serves.
  DiskTier::Fence RecoverLedger(const DiskTier::Ledger& ledger);
  void OpenDisk(const DiskTier::Fence& mark);
  void AddRecovered(const DiskTier::RecoveredFile& file);
  void EndRecovery();

  // No record on disk has a sequence below it, nor will have: such fences are not needed any more.
  // 0 while that is not known.
  uint64_t OldestSequence() const;

  // Labels that are not durable yet: to be put into the ledger, before blocks are. A fence in the
  // answer is to be put again, as the namespace was retired meanwhile.
  std::vector<NamespaceTask> UnsavedNamespaces(size_t max) const;
  std::optional<DiskTier::Fence> NamespaceSaved(const NamespaceTask& task);

  // Whether the tier reads and writes. While it fails, its blocks are kLoadFailed.
  void SetDiskHealth(DiskTier::Health health);
  // Blocks in host memory that were abandoned, or were to be written while the tier was out, are
  // to be written again: each once, behind all others. False when there is none.
  bool RetrySpills();
  // For a node that drains: queues blocks that are only in host memory, as the queue has room, a
  // bounded number a call. Answers how many memory segments are left; 0: all are queued or on disk.
  size_t QueueHostBlocks();

  // --- Device: what its movers ask and report ---
  // Blocks to be copied there, parents before children, each pinned; likewise.
  std::vector<UploadTask> TakeUploads(size_t blocks_max, uint64_t bytes_max);
  // In the order in which they were taken. OK: the bytes are there.
  void FinishUploads(absl::Span<const uint64_t> ids, const absl::Status& status);
  // Blocks to be copied back, the longest waiting first.
  std::vector<DeviceLoadTask> TakeDeviceLoads(size_t blocks_max, uint64_t bytes_max);
  // OK: the bytes are in the task's slot, and verified. DATA_LOSS: they are not the block's, and
  // that copy is quarantined. Else: it stays. Where the block is on disk too it is loaded from
  // there instead.
  void FinishDeviceLoad(const DeviceLoadTask& task, const absl::Status& status);
  // The device is out, for good: nothing of it is found any more when it returns.
  void FailDevice();

  // Ends what expired; called every few tens of milliseconds after GuardedTime::Tick.
  void Tick();

  // --- Retention ---
  // Removes what expires until `wall`, ends priorities and stays, a bounded number a call; as Tick.
  void EndRetention(absl::Time wall);

  // --- Feed ---
  WatcherId AddWatcher();
  void RemoveWatcher(WatcherId watcher);
  void ResyncWatcher(WatcherId watcher, const std::vector<uint32_t>& shards);
  void QueueHeartbeat(WatcherId watcher);
  FeedMessage NextFeedMessage(WatcherId watcher);
  // Namespace and tenant of a partition that a record named.
  struct PartitionName {
    Fingerprint fingerprint;
    std::string tenant;
  };
  PartitionName NameOf(PartitionIndex partition) const;
  // What keys depend on, of a namespace that a record named.
  KeyRules NamespaceOf(uint32_t namespace_index) const;

  // O(n): whether what the store counts agrees with what it holds; INTERNAL names what does not.
  absl::Status Audit() const;

  // --- Numbers ---
  StoreStatus Status() const;
  // Of the blocks that requests ask for lately, estimated: what LRUs would hold that are so many
  // times as large as each tier. All factors of host memory first.
  std::vector<HitRateAtCapacity> HitRates() const;
  std::vector<NamespaceStatus> Namespaces(absl::string_view tenant) const;
  std::vector<TenantStatus> Tenants() const;
  std::vector<ShardSums> Shards() const;

 private:
  friend class BlockPin;
  friend class DevicePin;
  friend class WriteClaim;

  // Holds the lock; after the unlock it says by the signals what has happened under it.
  class ABSL_SCOPED_LOCKABLE Section {
   public:
    explicit Section(BlockStore* store) ABSL_EXCLUSIVE_LOCK_FUNCTION(store->mutex_);
    ~Section() ABSL_UNLOCK_FUNCTION();
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

   private:
    BlockStore* const store_;
  };

  // Takes the fence's sequence and epoch, and lets nothing of its scope be spilled until
  // ReleaseFence.
  absl::StatusOr<DiskTier::Fence> HoldFence(DiskTier::Fence fence);
  void ReleaseFence(const DiskTier::Fence& fence);
  absl::StatusOr<RemovedBlocks> RetireFenced(const DiskTier::Fence& fence);
  absl::StatusOr<RemovedBlocks> ClearFenced(const DiskTier::Fence& fence);
  void MarkCopiesDead(const BlockEntry& entry);
  // OK: what is on disk can be removed for good.
  absl::Status CanDelete() const;
  bool DiskIsOpen() const;
  absl::StatusOr<std::vector<bool>> DeleteIn(PartitionIndex partition,
                                             absl::Span<const BlockKey> keys);
  // Answers how many were there.
  absl::StatusOr<uint64_t> DeleteAll(std::vector<ParentId> blocks);
  // Removes them without a word to the disk. Answers how many were there.
  uint64_t Forget(absl::Span<const ParentId> blocks);

  // Policies and working sets are told of a lookup that is a request: before it uses a block.
  void TellRequest(LookupOperation* lookup);
  void Unpin(BlockEntry* entry);
  void UnpinOnDevice(DeviceBlock* block);
  void DropClaim(WriteClaim& claim);
  void RunChores();  // Until there are none, in sections of their own.
  // `done = step(state, now)` under the lock, again and again until done.
  template <typename Step>
  void RunSteps(const Step& step);
  template <typename Operation, typename Step>
  void RunSeeking(Operation* operation, Step step);

  const Options options_;
  const GuardedTime* const time_;
  StoreCounters* const counters_;
  const Signals signals_;
  const uint64_t slot_bytes_max_;
  MemoryPinner* const pinner_;  // Of the host memory, or null.
  DurableLedger* const ledger_;
  mutable absl::Mutex mutex_;
  const std::unique_ptr<StoreState> state_ ABSL_PT_GUARDED_BY(mutex_);
};

}  // namespace cairn::node
