#include "cache_node/store/reclaim_operations.h"

#include <algorithm>
#include <utility>

#include "cache_node/store/spill_operations.h"
#include "common/base/check.h"

namespace cairn::node {

ReclaimOperation::Worth ReclaimOperation::WorthOf(const StoreState& state,
                                                  DiskHandle handle) const {
  const DiskIndex& index = state.disk.index;
  const DiskNode& node = index.At(handle);
  const ParentId block{index.PartitionOf(handle), node.key};
  if (node.dying || state.disk.writes.FindBlock(block) != nullptr) return Worth::kNothing;
  if (node.has_parent) {
    const ParentId parent = state.ParentOf({.on_device = false, .handle = handle});
    if (index.Find(parent.partition, parent.key) == 0 &&
        state.index.Find(parent.partition, parent.key) == nullptr) {
      return Worth::kNothing;
    }
  }
  if (node.used) return Worth::kUse;
  return node.children > 0 || state.families.Holding(block) ? Worth::kChildren : Worth::kNothing;
}

void ReclaimOperation::Choose(StoreState* state, const Candidate& candidate) {
  DiskState& disk = state->disk;
  const DiskHandle handle = disk.index.files().At(*file_).slots[candidate.slot];
  // It may have left, or another may lie there, since it was looked at.
  if (handle == 0 || WorthOf(*state, handle) == Worth::kNothing) return;
  const uint64_t bytes = disk.index.PayloadBytesOf(handle);
  if (static_cast<double>(bytes) > disk.reinsert_bytes) return;
  const DiskScopeRecord& scope = disk.index.scopes().At(disk.index.At(handle).scope);
  if (disk.fences.Held(*scope.scope)) return;
  disk.reinsert_bytes -= static_cast<double>(bytes);
  const NamespaceRecord& record = *state->namespaces.PartitionAt(scope.partition).name_space;
  DiskWrite write;
  write.partition = scope.partition;
  write.from = disk.index.PlaceOf(handle);
  write.task.block = disk.index.BlockOf(handle, record.epoch.load(std::memory_order_relaxed));
  write.task.scope = scope.scope;
  write.task.map = &record.map;
  MoveTask move;
  move.from = *write.from;
  move.old_sequence = write.task.block.sequence;
  move.write = SpillOperations::Begin(state, std::move(write));
  moves_.push_back(std::move(move));
}

bool ReclaimOperation::Step(StoreState* state) {
  DiskFiles& files = state->disk.index.files();
  if (!file_.has_value()) {
    // Whoever takes one has dropped all that it took before.
    state->disk.oldest_leaving = UINT64_MAX;
    if (state->disk.open) file_ = files.Oldest();
    none_ = !file_.has_value();
    if (none_) return true;
    files.MarkBusy(*file_, true);
    number_ = files.At(*file_).number;
  }
  size_t steps = BlockStore::kStepsPerLock;
  const std::vector<DiskHandle>& slots = files.At(*file_).slots;
  for (; steps > 0 && next_slot_ < slots.size(); --steps, ++next_slot_) {
    if (slots[next_slot_] == 0) continue;
    const Worth worth = WorthOf(*state, slots[next_slot_]);
    if (worth != Worth::kNothing) candidates_.push_back({next_slot_, worth});
  }
  if (next_slot_ < slots.size()) return false;
  if (!std::exchange(looked_, true)) {
    std::stable_partition(candidates_.begin(), candidates_.end(),
                          [](const Candidate& c) { return c.worth == Worth::kUse; });
  }
  for (; steps > 0 && next_candidate_ < candidates_.size(); --steps, ++next_candidate_) {
    Choose(state, candidates_[next_candidate_]);
  }
  return next_candidate_ == candidates_.size();
}

std::optional<ReclaimTask> ReclaimOperation::TakeTask() {
  if (none_) return std::nullopt;
  return ReclaimTask{.file = number_, .moves = std::move(moves_)};
}

bool FileRemoval::Step(StoreState* state) {
  DiskFiles& files = state->disk.index.files();
  const std::optional<DiskFileIndex> file = files.Find(number_);
  if (!file.has_value() || (!reclaimed_ && files.At(*file).busy)) return true;
  for (size_t steps = BlockStore::kStepsPerLock; steps > 0; --steps, ++next_slot_) {
    if (next_slot_ >= files.At(*file).slots.size()) {
      DiskState& disk = state->disk;
      uint64_t& oldest = reclaimed_ ? disk.oldest_leaving : disk.oldest_lost;
      oldest = std::min(oldest, files.At(*file).oldest_sequence);
      files.Erase(*file);
      return true;
    }
    const DiskHandle handle = files.At(*file).slots[next_slot_];
    if (handle == 0) continue;
    state->RemoveFromDisk(handle, RemovalReason::kEvicted);
    state->counters->reclaimed_blocks.fetch_add(1, std::memory_order_relaxed);
  }
  return false;
}

RecoveryOperation::Home& RecoveryOperation::HomeOf(StoreState* state, uint32_t scope_index) {
  Home& home = homes_[scope_index];
  if (home.section == section_) return home;
  home = Home{};
  home.section = section_;
  const DiskScope& scope = found_.scopes[scope_index];
  NamespaceRecord* record = state->namespaces.FindLive(scope.fingerprint);
  const bool usable = record != nullptr && !scope.tenant.empty() &&
                      record->map.block_bytes() <= state->disk.options.block_bytes_max;
  const TenantIndex tenant = usable ? state->ledger.IndexOf(scope.tenant) : 0;
  if (tenant == 0) return home;
  home.partition = state->namespaces.PartitionOf(record, tenant);
  if (home.partition == 0) return home;
  home.known = true;
  home.fence = state->disk.fences.SequenceOf(scope);
  home.block_bytes = record->map.block_bytes();
  return home;
}

void RecoveryOperation::Add(StoreState* state, uint32_t slot) {
  DiskIndex& index = state->disk.index;
  const DiskTier::RecoveredFile::Entry& entry = found_.entries[slot];
  const auto ignore = [state] {
    state->counters->recovery_ignored.fetch_add(1, std::memory_order_relaxed);
  };
  index.files().NoteSequence(*file_, entry.block.sequence);
  if (entry.dead || entry.scope >= found_.scopes.size()) return ignore();
  Home& home = HomeOf(state, entry.scope);
  const DiskBlock& block = entry.block;
  if (!home.known || block.sequence <= home.fence || block.payload_bytes != home.block_bytes) {
    return ignore();
  }
  if (const DiskHandle known = index.Find(home.partition, block.key); known != 0) {
    // It was written twice, and the kill came before the older file left.
    // Or the older one ended, and it was written anew.
    if (index.At(known).sequence < block.sequence) {
      index.Move(known, *file_, slot, block.sequence);
      state->DescribeOnDisk(known, block);
    }
    return ignore();
  }
  if (!home.scope.has_value()) {
    home.scope = index.scopes().Of(home.partition, home.block_bytes, found_.scopes[entry.scope]);
  }
  if (state->AddOnDisk(*home.scope, *file_, slot, block) == 0) {
    index.scopes().DropIfUnused(*home.scope);
    home.scope.reset();
    return ignore();
  }
  state->counters->recovered_blocks.fetch_add(1, std::memory_order_relaxed);
}

bool RecoveryOperation::Step(StoreState* state) {
  DiskFiles& files = state->disk.index.files();
  ++section_;
  if (!file_.has_value()) {
    if (!state->disk.recovering || files.Find(found_.file).has_value()) return true;
    homes_.resize(found_.scopes.size());
    file_ = files.Add(found_.file, found_.bytes);
    files.MarkBusy(*file_, true);
  }
  for (size_t i = 0; i < BlockStore::kStepsPerLock && next_ < found_.entries.size(); ++i) {
    Add(state, next_++);
  }
  if (next_ < found_.entries.size()) return false;
  files.MarkBusy(*file_, false);
  return true;
}

}  // namespace cairn::node
