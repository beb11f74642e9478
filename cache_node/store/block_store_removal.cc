// BlockStore: removal of blocks by key, of scopes and of namespaces. Where there is a disk tier,
// what is to be gone is durable before anything is said or changed.
#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "cache_node/store/block_store.h"
#include "cache_node/store/lease_operations.h"
#include "cache_node/store/public_sweep.h"
#include "cache_node/store/purge_scan.h"
#include "cache_node/store/removal_operations.h"
#include "cache_node/store/run_steps.h"
#include "cache_node/store/store_state.h"
#include "common/base/hex.h"
#include "common/identity/segment_digest.h"

namespace cairn::node {
namespace {

// Rounds of a delete: a block moves on disk at most every few seconds.
constexpr int kDeleteRoundsMax = 8;

absl::Status UnknownNamespace(const Fingerprint& fingerprint) {
  return absl::FailedPreconditionError(
      absl::StrCat("namespace ", ToHex(fingerprint.view()), " is not registered here"));
}

absl::Status NotOpen() {
  return absl::UnavailableError(
      "the disk tier is not open, so nothing on it can be removed for good: see why in this node's "
      "description, and repeat the call");
}

}  // namespace

absl::StatusOr<DiskTier::Fence> BlockStore::HoldFence(DiskTier::Fence fence) {
  Section section(this);
  const NamespaceRecord* record = state_->namespaces.FindLive(fence.fingerprint);
  if (record == nullptr) return UnknownNamespace(fence.fingerprint);
  if (!state_->disk.open) return NotOpen();
  fence.sequence = state_->disk.sequence;
  if (fence.tenant.empty()) fence.epoch = state_->namespaces.NextEpoch(*record);
  state_->disk.fences.Hold(fence);
  return fence;
}

void BlockStore::ReleaseFence(const DiskTier::Fence& fence) {
  Section section(this);
  state_->disk.fences.Release(fence);
  state_->spills_queued = true;
}

absl::StatusOr<RemovedBlocks> BlockStore::RetireNamespace(const Fingerprint& fingerprint) {
  {
    absl::ReaderMutexLock lock(&mutex_);
    const NamespaceRecord* record = state_->namespaces.Find(fingerprint);
    if (record == nullptr) return UnknownNamespace(fingerprint);
    if (record->retired) {
      return RemovedBlocks{.epoch = record->epoch.load(std::memory_order_relaxed)};
    }
  }
  DiskTier::Fence fence;
  fence.fingerprint = fingerprint;
  if (ledger_ == nullptr) return RetireFenced(fence);
  absl::StatusOr<DiskTier::Fence> held = HoldFence(fence);
  if (!held.ok()) return held.status();
  const absl::Cleanup release = [this, &held] { ReleaseFence(*held); };
  if (absl::Status durable = ledger_->PutFence(*held); !durable.ok()) return durable;
  return RetireFenced(*held);
}

absl::StatusOr<RemovedBlocks> BlockStore::RetireFenced(const DiskTier::Fence& fence) {
  std::vector<PartitionIndex> partitions;
  uint64_t epoch = 0;
  {
    Section section(this);
    NamespaceRecord* record = state_->namespaces.Find(fence.fingerprint);
    if (!record->retired) {
      if (ledger_ != nullptr && state_->namespaces.NextEpoch(*record) != fence.epoch) {
        return absl::AbortedError("the namespace was retired and registered anew meanwhile");
      }
      partitions = state_->namespaces.Retire(record);
      counters_->revocations.fetch_add(1, std::memory_order_release);
      record->fence_sequence = fence.sequence;
      for (const FeedNamespace& label : state_->namespaces.LabelsOf(*record)) {
        state_->feed.Record(label);
      }
    }
    if (state_->disk.recovering) state_->disk.fences.Raise(fence);
    epoch = record->epoch.load(std::memory_order_relaxed);
    state_->settled = true;
  }
  RetireSweep sweep(std::move(partitions));
  RunSteps([&sweep](StoreState* state, absl::Time) { return sweep.Step(state); });
  RunChores();
  RemovedBlocks removed = sweep.removed();
  removed.epoch = epoch;
  return removed;
}

absl::StatusOr<RemovedBlocks> BlockStore::ClearScope(absl::string_view tenant,
                                                     const Fingerprint& fingerprint,
                                                     const BlockKey& scope_digest) {
  DiskTier::Fence fence;
  fence.fingerprint = fingerprint;
  fence.tenant = std::string(tenant);
  fence.scope_digest = scope_digest;
  if (tenant.empty()) return ClearFenced(fence);
  if (ledger_ == nullptr) {
    {
      Section section(this);
      state_->disk.fences.Hold(fence);
    }
    const absl::Cleanup release = [this, &fence] { ReleaseFence(fence); };
    return ClearFenced(fence);
  }
  absl::StatusOr<DiskTier::Fence> held = HoldFence(fence);
  if (!held.ok()) return held.status();
  const absl::Cleanup release = [this, &held] { ReleaseFence(*held); };
  if (absl::Status durable = ledger_->PutFence(*held); !durable.ok()) return durable;
  return ClearFenced(*held);
}

absl::StatusOr<RemovedBlocks> BlockStore::ClearFenced(const DiskTier::Fence& fence) {
  PartitionIndex partition = 0;
  {
    Section section(this);
    const NamespaceRecord* record = state_->namespaces.FindLive(fence.fingerprint);
    if (record == nullptr) return UnknownNamespace(fence.fingerprint);
    const TenantIndex index = state_->ledger.Find(fence.tenant);
    if (index != 0) partition = state_->namespaces.FindPartition(*record, index);
    if (state_->disk.recovering) state_->disk.fences.Raise(fence);
    // Whoever is about to write what was there before can see that it is not wanted any more.
    counters_->revocations.fetch_add(1, std::memory_order_release);
  }
  if (partition == 0) return RemovedBlocks{};
  ClearSweep sweep(partition, fence.scope_digest);
  RunSteps([&sweep](StoreState* state, absl::Time) { return sweep.Step(state); });
  RunChores();
  return sweep.removed();
}

absl::StatusOr<std::vector<bool>> BlockStore::Delete(absl::string_view tenant,
                                                     const Fingerprint& fingerprint,
                                                     absl::Span<const BlockKey> keys) {
  absl::flat_hash_set<BlockKey> seen;
  for (const BlockKey& key : keys) {
    if (seen.insert(key).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("key ", ToHex(key.view()), " is in the call twice: send each once"));
  }
  if (absl::Status status = CanDelete(); !status.ok()) return status;
  PartitionIndex partition = 0;
  {
    absl::ReaderMutexLock lock(&mutex_);
    const NamespaceRecord* record = state_->namespaces.FindLive(fingerprint);
    const TenantIndex index = state_->ledger.Find(tenant);
    if (record != nullptr && index != 0) {
      partition = state_->namespaces.FindPartition(*record, index);
    }
  }
  if (partition == 0) return std::vector<bool>(keys.size());
  return DeleteIn(partition, keys);
}

absl::Status BlockStore::CanDelete() const {
  absl::ReaderMutexLock lock(&mutex_);
  if (state_->disk.enabled && !state_->disk.open) return NotOpen();
  if (!state_->disk.recovering) return absl::OkStatus();
  return absl::UnavailableError(
      "the blocks on disk are still being found again, this one may be among them: repeat the call "
      "in a moment");
}

bool BlockStore::DiskIsOpen() const {
  absl::ReaderMutexLock lock(&mutex_);
  return state_->disk.open;
}

absl::StatusOr<std::vector<bool>> BlockStore::DeleteIn(PartitionIndex partition,
                                                       absl::Span<const BlockKey> keys) {
  DeleteSweep sweep(partition, keys);
  for (int round = 0; round < kDeleteRoundsMax; ++round) {
    if (ledger_ != nullptr) {
      RunSteps([&sweep](StoreState* state, absl::Time) { return sweep.StepCollect(state); });
      absl::Status marked =
          sweep.places().empty() ? absl::OkStatus() : ledger_->MarkDead(sweep.places());
      if (!marked.ok()) {
        RunSteps([&sweep](StoreState* state, absl::Time) { return sweep.StepGiveUp(state); });
        return marked;
      }
    }
    RunSteps([&sweep](StoreState* state, absl::Time) { return sweep.StepRemove(state); });
    RunChores();
    if (sweep.complete()) return sweep.TakeRemoved();
  }
  RunSteps([&sweep](StoreState* state, absl::Time) { return sweep.StepGiveUp(state); });
  return absl::UnavailableError("the blocks move on disk faster than they can be removed: retry");
}

absl::StatusOr<uint64_t> BlockStore::DeleteAll(std::vector<ParentId> blocks) {
  absl::btree_map<PartitionIndex, std::vector<BlockKey>> found;
  for (const ParentId& block : blocks) found[block.partition].push_back(block.key);
  uint64_t removed = 0;
  for (auto& [partition, keys] : found) {
    // In host memory and on disk it was found twice.
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    const absl::StatusOr<std::vector<bool>> deleted = DeleteIn(partition, keys);
    if (!deleted.ok()) return deleted.status();
    removed += static_cast<uint64_t>(std::count(deleted->begin(), deleted->end(), true));
  }
  return removed;
}

absl::StatusOr<RemovedBlocks> BlockStore::PurgeWriter(uint64_t writer, int64_t since_unix_ms,
                                                      int64_t until_unix_ms) {
  if (absl::Status status = CanDelete(); !status.ok()) return status;
  counters_->revocations.fetch_add(1, std::memory_order_release);  // As ClearFenced.
  PurgeScan scan(writer, since_unix_ms, until_unix_ms);
  RemovedBlocks removed;
  while (!scan.done()) {
    RunSteps([&scan](StoreState* state, absl::Time) { return scan.Step(state); });
    RunChores();
    const absl::StatusOr<uint64_t> deleted = DeleteAll(scan.TakeBatch());
    if (!deleted.ok()) return deleted.status();
    removed.blocks += *deleted;
  }
  removed.blocks += scan.reservations();
  return removed;
}

absl::Status BlockStore::KeepPublic(const absl::flat_hash_set<BlockKey>& last_keys,
                                    uint64_t* removed_blocks) {
  absl::Status durable = CanDelete();
  if (!durable.ok() && DiskIsOpen()) return durable;
  PublicSweep sweep(last_keys, time_->Now());
  while (!sweep.done()) {
    RunSteps([&sweep](StoreState* state, absl::Time) { return sweep.Step(state); });
    RunChores();
    const std::vector<ParentId> batch = sweep.TakeBatch();
    if (durable.ok()) {
      const absl::StatusOr<uint64_t> deleted = DeleteAll(batch);
      durable = deleted.status();
      if (deleted.ok()) *removed_blocks += *deleted;
    }
    // What may not be read is not read, though the disk cannot be told: the list tells it again.
    if (!durable.ok()) *removed_blocks += Forget(batch);
  }
  *removed_blocks += sweep.reservations();
  return durable;
}

uint64_t BlockStore::Forget(absl::Span<const ParentId> blocks) {
  uint64_t forgotten = 0;
  size_t next = 0;
  RunSteps([&](StoreState* state, absl::Time) {
    for (size_t i = 0; i < kStepsPerLock && next < blocks.size(); ++i, ++next) {
      const ParentId& block = blocks[next];
      BlockEntry* entry = state->index.Find(block.partition, block.key);
      if (entry != nullptr && entry->life != BlockEntry::Life::kReserved) {
        state->Remove(entry, RemovalReason::kDeleted);
      } else if (!state->RemoveCopies(block, RemovalReason::kDeleted)) {
        continue;
      }
      ++forgotten;
    }
    return next == blocks.size();
  });
  RunChores();
  return forgotten;
}

absl::StatusOr<bool> BlockStore::ReportMismatch(absl::string_view tenant,
                                                const Fingerprint& fingerprint, const BlockKey& key,
                                                const SegmentId& segment) {
  BlockEntry* entry = nullptr;
  absl::Span<const uint8_t> bytes;
  uint64_t digest = 0;
  {
    const absl::Time now = time_->Now();
    Section section(this);
    const NamespaceRecord* record = state_->namespaces.FindLive(fingerprint);
    if (record == nullptr) return false;
    const std::optional<size_t> place = record->map.FindSegment(segment);
    if (!place.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("the layout has no segment of group ",
                                                     segment.group, ", slice ", segment.slice,
                                                     ", layer ", segment.layer));
    }
    counters_->reported_mismatches.fetch_add(1, std::memory_order_relaxed);
    BlockAnswer found;
    const absl::StatusOr<BlockEntry*> readable =
        FindReadable(*state_, tenant, fingerprint, std::nullopt, key, now, &found);
    if (!readable.ok() || *readable == nullptr || !(*readable)->SegmentPresent(*place))
      return false;
    entry = *readable;
    state_->Pin(entry);
    digest = entry->digests[*place];
    bytes = state_->slots.Bytes(*entry).subspan(record->map.SegmentOffset(*place),
                                                record->map.SegmentBytesAt(*place));
  }
  const bool bad = SegmentDigest(key, segment, bytes) != digest;
  // A copy on disk is checked whenever it is read, so that a ledger that fails does not keep the
  // block here.
  if (bad && ledger_ != nullptr) MarkCopiesDead(*entry);
  {
    Section section(this);
    if (bad && entry->life == BlockEntry::Life::kPresent) {
      counters_->quarantined_blocks.fetch_add(1, std::memory_order_relaxed);
      state_->Remove(entry, RemovalReason::kQuarantined);
    }
    state_->Unpin(entry);
  }
  RunChores();
  return bad;
}

void BlockStore::MarkCopiesDead(const BlockEntry& entry) {
  const BlockKey key = entry.key;
  DeleteSweep sweep(entry.partition, absl::MakeConstSpan(&key, 1));
  RunSteps([&sweep](StoreState* state, absl::Time) { return sweep.StepCollect(state); });
  if (sweep.places().empty()) return;
  const absl::Status marked = ledger_->MarkDead(sweep.places());
  if (!marked.ok()) counters_->marks_failed.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace cairn::node
