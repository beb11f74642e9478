// BlockStore: what the movers of the disk tier ask and report.
#include <algorithm>
#include <utility>

#include "cache_node/store/block_store.h"
#include "cache_node/store/load_operations.h"
#include "cache_node/store/reclaim_operations.h"
#include "cache_node/store/run_steps.h"
#include "cache_node/store/spill_operations.h"
#include "cache_node/store/store_state.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

// Sequences that one process may give out: blocks that it may spill. A mark in the ledger says
// where each process began, so that a fence put before all files were read covers what is in them.
constexpr uint64_t kSequencesPerProcess = uint64_t{1} << 40;

}  // namespace

std::vector<SpillTask> BlockStore::TakeSpills(size_t blocks_max, uint64_t bytes_max) {
  std::vector<SpillTask> tasks;
  Section section(this);
  size_t steps = kStepsPerLock;
  uint64_t bytes = 0;
  while (tasks.size() < blocks_max && bytes < bytes_max) {
    std::optional<SpillOperations::Taken> taken = SpillOperations::Take(&*state_, &steps);
    if (!taken.has_value()) break;
    BlockEntry* entry = taken->entry;
    bytes += entry->block_bytes();
    state_->Pin(entry);
    SpillTask task;
    task.write = std::move(taken->task);
    if (entry->HasTokens()) {
      task.tokens.assign(entry->tokens.get(),
                         entry->tokens.get() + entry->map->layout().block_tokens);
    }
    task.pin = BlockPin(this, entry, state_->slots.Bytes(*entry));
    tasks.push_back(std::move(task));
  }
  if (steps == 0) state_->spills_queued = true;  // It stopped only to let others in.
  return tasks;
}

bool BlockStore::SpillsWait() const {
  absl::ReaderMutexLock lock(&mutex_);
  return state_->disk.SpillsWait();
}

std::vector<DiskPlace> BlockStore::PlaceWrites(absl::Span<const PlacedBlock> placed) {
  std::vector<DiskPlace> dead;
  size_t next = 0;
  RunSteps([&](StoreState* state, absl::Time) {
    for (size_t i = 0; i < kStepsPerLock && next < placed.size(); ++i, ++next) {
      if (!SpillOperations::Place(state, placed[next])) dead.push_back(placed[next].place);
    }
    return next == placed.size();
  });
  return dead;
}

void BlockStore::FinishWrites(uint64_t file, uint64_t file_bytes,
                              absl::Span<const PlacedBlock> placed) {
  std::optional<DiskFileIndex> index;
  size_t next = 0;
  RunSteps([&](StoreState* state, absl::Time) {
    DiskFiles& files = state->disk.index.files();
    if (!index.has_value()) {
      index = files.Add(file, file_bytes);
      files.MarkBusy(*index, true);
    }
    for (size_t i = 0; i < kStepsPerLock && next < placed.size(); ++i, ++next) {
      SpillOperations::Finish(state, *index, placed[next]);
    }
    if (next < placed.size()) return false;
    files.MarkBusy(*index, false);
    return true;
  });
}

void BlockStore::AbandonWrites(absl::Span<const uint64_t> ids) {
  size_t next = 0;
  RunSteps([&](StoreState* state, absl::Time) {
    for (size_t i = 0; i < kStepsPerLock && next < ids.size(); ++i, ++next) {
      SpillOperations::Abandon(state, ids[next]);
    }
    return next == ids.size();
  });
}

std::optional<LoadTask> BlockStore::TakeLoad() {
  Section section(this);
  return LoadOperations::Take(&*state_);
}

void BlockStore::FinishLoad(const LoadTask& task, const absl::Status& status,
                            const DiskRecordFields& fields) {
  {
    const absl::Time now = time_->Now();
    Section section(this);
    LoadOperations::Finish(&*state_, task, status, fields, now);
  }
  if (absl::IsNotFound(status)) {
    FileRemoval removal(task.place.file, /*reclaimed=*/false);
    RunSteps([&removal](StoreState* state, absl::Time) { return removal.Step(state); });
  }
  RunChores();
}

std::optional<ReclaimTask> BlockStore::TakeReclaim() {
  ReclaimOperation reclaim;
  RunSteps([&reclaim](StoreState* state, absl::Time) { return reclaim.Step(state); });
  return reclaim.TakeTask();
}

void BlockStore::FinishReclaim(uint64_t file) {
  FileRemoval removal(file, /*reclaimed=*/true);
  RunSteps([&removal](StoreState* state, absl::Time) { return removal.Step(state); });
  RunChores();
  counters_->reclaimed_files.fetch_add(1, std::memory_order_relaxed);
}

void BlockStore::AbandonReclaim(uint64_t file) {
  Section section(this);
  DiskFiles& files = state_->disk.index.files();
  const std::optional<DiskFileIndex> index = files.Find(file);
  CAIRN_CHECK(index.has_value());
  files.MarkBusy(*index, false);
}

void BlockStore::QuarantineMove(const MoveTask& move) {
  Section section(this);
  const DiskWrite* write = state_->disk.writes.Find(move.write.id);
  CAIRN_CHECK_MSG(write != nullptr && write->from == move.from, "a move is bad that is not");
  DiskIndex& index = state_->disk.index;
  const DiskHandle handle = index.Find(write->partition, move.write.block.key);
  if (handle == 0 || !(index.PlaceOf(handle) == move.from)) return;
  counters_->loads_damaged.fetch_add(1, std::memory_order_relaxed);
  counters_->quarantined_blocks.fetch_add(1, std::memory_order_relaxed);
  state_->RemoveFromDisk(handle, RemovalReason::kQuarantined);
}

DiskTier::Fence BlockStore::RecoverLedger(const DiskTier::Ledger& ledger) {
  Section section(this);
  CAIRN_CHECK(ledger_ != nullptr && !state_->disk.open);
  DiskState& disk = state_->disk;
  disk.sequence = std::max(disk.sequence, ledger.dead_up_to);
  disk.fences.RaiseAll(ledger.dead_up_to);
  for (const DiskTier::Fence& fence : ledger.fences) {
    disk.sequence = std::max(disk.sequence, fence.sequence);
    disk.fences.Raise(fence);
    if (fence.epoch > 0) state_->namespaces.RaiseEpoch(fence.fingerprint, fence.epoch);
  }
  for (const DiskTier::KnownNamespace& known : ledger.namespaces) {
    const absl::StatusOr<Fingerprint> fingerprint = FingerprintOf(known.fields);
    const absl::StatusOr<PayloadMap> map = PayloadMap::Make(known.fields.layout);
    if (!fingerprint.ok() || !map.ok() || map->block_bytes() > slot_bytes_max_) continue;
    const absl::StatusOr<NamespaceTable::Registration> registered =
        state_->namespaces.Register(known.tenant, known.name, *fingerprint, known.fields, *map);
    if (!registered.ok()) continue;
    state_->namespaces.MarkSaved({known.tenant, known.name}, *fingerprint,
                                 registered->record->epoch.load(std::memory_order_relaxed));
    if (!registered->created) continue;
    state_->feed.Record(FeedNamespace{.namespace_index = registered->record->index,
                                      .tenant = known.tenant,
                                      .name = known.name,
                                      .retired = false});
  }
  DiskTier::Fence mark;
  mark.sequence = disk.sequence + kSequencesPerProcess;
  return mark;
}

void BlockStore::OpenDisk(const DiskTier::Fence& mark) {
  Section section(this);
  DiskState& disk = state_->disk;
  CAIRN_CHECK(!disk.open && mark.sequence > disk.sequence);
  disk.sequence = mark.sequence;
  disk.open = true;
  state_->spills_queued = true;
}

void BlockStore::AddRecovered(const DiskTier::RecoveredFile& file) {
  RecoveryOperation recovery(&file);
  RunSteps([&recovery](StoreState* state, absl::Time) { return recovery.Step(state); });
  RunChores();
}

void BlockStore::EndRecovery() {
  Section section(this);
  if (!std::exchange(state_->disk.recovering, false)) return;
  state_->disk.fences.Forget();
  state_->feed.ResyncAll();
  state_->settled = true;
}

uint64_t BlockStore::OldestSequence() const {
  absl::ReaderMutexLock lock(&mutex_);
  const DiskState& disk = state_->disk;
  if (!disk.open || disk.recovering) return 0;
  return std::min({disk.sequence + 1, disk.index.files().OldestSequence(),
                   disk.writes.OldestSequence(), disk.fences.OldestHeld(), disk.oldest_leaving,
                   disk.oldest_lost});
}

std::vector<NamespaceTask> BlockStore::UnsavedNamespaces(size_t max) const {
  absl::ReaderMutexLock lock(&mutex_);
  std::vector<NamespaceTask> unsaved;
  const NamespaceTable& namespaces = state_->namespaces;
  for (const auto& [tenant, name] : namespaces.Unsaved(max)) {
    const NamespaceRecord& record = namespaces.BoundTo({tenant, name});
    unsaved.push_back({.known = {tenant, name, record.fields},
                       .epoch = record.epoch.load(std::memory_order_relaxed)});
  }
  return unsaved;
}

std::optional<DiskTier::Fence> BlockStore::NamespaceSaved(const NamespaceTask& task) {
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintOf(task.known.fields);
  CAIRN_CHECK_OK(fingerprint.status());
  absl::MutexLock lock(&mutex_);
  const NamespaceRecord* retired =
      state_->namespaces.MarkSaved({task.known.tenant, task.known.name}, *fingerprint, task.epoch);
  if (retired == nullptr) return std::nullopt;
  DiskTier::Fence fence;
  fence.fingerprint = *fingerprint;
  fence.sequence = retired->fence_sequence;
  fence.epoch = retired->epoch.load(std::memory_order_relaxed);
  return fence;
}

void BlockStore::SetDiskHealth(DiskTier::Health health) {
  Section section(this);
  DiskState& disk = state_->disk;
  if (disk.health == health) return;
  disk.health = health;
  state_->settled = true;
  if (disk.writes_now()) state_->spills_queued = true;
}

bool BlockStore::RetrySpills() {
  Section section(this);
  DiskState& disk = state_->disk;
  disk.spill_retries = disk.missed_spills.size();
  if (disk.spill_retries > 0) state_->spills_queued = true;
  return disk.spill_retries > 0;
}

size_t BlockStore::QueueHostBlocks() {
  Section section(this);
  DiskState& disk = state_->disk;
  const uint32_t segments = state_->slots.memory().segment_count();
  for (size_t steps = kStepsPerLock; disk.enabled && steps > 0; --steps) {
    if (disk.drain_segment == segments) {
      disk.drain_segment = 0;
      disk.drain_slot = 0;
      return 0;
    }
    const absl::Span<BlockEntry* const> entries = state_->slots.EntriesOf(disk.drain_segment);
    if (disk.drain_slot >= entries.size()) {
      ++disk.drain_segment;
      disk.drain_slot = 0;
      continue;
    }
    BlockEntry* entry = entries[disk.drain_slot];
    if (entry != nullptr && entry->life == BlockEntry::Life::kPresent &&
        state_->QueueSpill(entry) == StoreState::Queued::kFull) {
      break;
    }
    ++disk.drain_slot;
  }
  return disk.enabled ? segments - disk.drain_segment : 0;
}

}  // namespace cairn::node
