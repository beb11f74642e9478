#include "cache_node/store/spill_operations.h"

#include <utility>

#include "common/base/check.h"

namespace cairn::node {
namespace {

bool Waits(const BlockEntry& entry) {
  return entry.life == BlockEntry::Life::kPresent && entry.disk == 0 && !entry.spilling;
}

DiskWrite WriteOf(const StoreState& state, BlockEntry* entry, DiskScope scope) {
  DiskWrite write;
  write.partition = entry->partition;
  write.entry = entry;
  write.task.map = entry->map;
  write.task.block = state.DescriptionOf(*entry);
  const DiskScopeRecord* known =
      state.disk.index.scopes().Find(entry->partition, scope.scope_digest);
  write.task.scope =
      known != nullptr ? known->scope : std::make_shared<const DiskScope>(std::move(scope));
  return write;
}

// Whether a finished write may be found: nobody removed the block since it was taken.
bool StillWanted(const StoreState& state, const DiskWrite& write) {
  if (write.entry != nullptr) {
    return write.entry->life == BlockEntry::Life::kPresent && write.entry->Readable() &&
           write.entry->disk == 0;
  }
  const DiskHandle handle = state.disk.index.Find(write.partition, write.task.block.key);
  return handle != 0 && !state.disk.index.At(handle).dying &&
         state.disk.index.PlaceOf(handle) == *write.from;
}

void End(StoreState* state, const DiskWrite& write) {
  if (write.entry != nullptr) write.entry->spilling = false;
  state->disk.writes.Erase(write.task.id);
  state->spills_queued = true;  // What waited for room among those being written.
}

// The next that waits, after all others one whose write is to be tried again.
BlockEntry* NextToSpill(DiskState* disk) {
  if (disk->spill_queue.front() == nullptr && disk->spill_retries > 0) {
    BlockEntry* missed = disk->missed_spills.front();
    disk->spill_retries = missed == nullptr ? 0 : disk->spill_retries - 1;
    if (missed == nullptr) return nullptr;
    disk->missed_spills.Remove(missed);
    disk->spill_queue.PushBack(missed);
  }
  return disk->spill_queue.front();
}

}  // namespace

const WriteTask& SpillOperations::Begin(StoreState* state, DiskWrite write) {
  write.task.block.sequence = ++state->disk.sequence;
  if (write.entry != nullptr) write.entry->spilling = true;
  return state->disk.writes.Add(std::move(write));
}

std::optional<SpillOperations::Taken> SpillOperations::Take(StoreState* state, size_t* steps) {
  DiskState& disk = state->disk;
  if (!disk.writes_now()) return std::nullopt;
  const BlockEntry* refused = nullptr;  // Just now: those that follow it go without it.
  for (; *steps > 0; --*steps) {
    BlockEntry* entry = NextToSpill(&disk);
    if (entry == nullptr) return std::nullopt;
    BlockEntry* parent = entry->family == nullptr ? nullptr : entry->family->parent;
    if (parent != nullptr && parent != refused && Waits(*parent) && !parent->orphan &&
        disk.writes.FindBlock({parent->partition, parent->key}) == nullptr) {
      if (parent->queue != nullptr) parent->queue->Remove(parent);
      disk.spill_queue.PushFront(parent);
      continue;
    }
    const uint64_t being_written = disk.writes.spilling_bytes();
    if (being_written > 0 && being_written + entry->block_bytes() > disk.spilling_bytes_max) {
      return std::nullopt;
    }
    disk.spill_queue.Remove(entry);
    CAIRN_CHECK(Waits(*entry));
    // An orphan cannot be reached, and a block whose earlier self is still being written waits for
    // its next use.
    if (entry->orphan || disk.writes.FindBlock({entry->partition, entry->key}) != nullptr) continue;
    // What is being written comes on top of a quota: a bounded part of the pool.
    const bool over_quota =
        !state->ledger.HasDiskRoom(entry->space->slot_class.tenant, entry->block_bytes());
    if (over_quota || !disk.index.HasRoom()) {
      refused = entry;
      (over_quota ? state->counters->spills_over_quota : state->counters->spills_shed)
          .fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    DiskScope scope = state->DiskScopeOf(*entry);
    if (disk.fences.Held(scope)) {
      disk.spill_queue.PushBack(entry);
      continue;
    }
    return Taken{Begin(state, WriteOf(*state, entry, std::move(scope))), entry};
  }
  return std::nullopt;
}

bool SpillOperations::Place(StoreState* state, const PlacedBlock& placed) {
  DiskWrite* write = state->disk.writes.Find(placed.id);
  CAIRN_CHECK_MSG(write != nullptr && !write->place.has_value(), "a write is placed that is not");
  write->place = placed.place;
  return StillWanted(*state, *write);
}

void SpillOperations::Finish(StoreState* state, DiskFileIndex file, const PlacedBlock& placed) {
  const DiskWrite* found = state->disk.writes.Find(placed.id);
  CAIRN_CHECK_MSG(found != nullptr && found->place == placed.place, "a write ends that was not");
  const DiskWrite write = *found;
  const bool wanted = StillWanted(*state, write);
  state->disk.index.files().NoteSequence(file, write.task.block.sequence);
  End(state, write);
  if (!wanted) return;
  DiskState& disk = state->disk;
  const DiskBlock& block = write.task.block;
  StoreCounters* counters = state->counters;
  if (write.entry == nullptr) {
    disk.index.Move(disk.index.Find(write.partition, block.key), file, placed.place.slot,
                    block.sequence);
    counters->reinserted_blocks.fetch_add(1, std::memory_order_relaxed);
    counters->reinserted_bytes.fetch_add(block.payload_bytes, std::memory_order_relaxed);
    return;
  }
  const DiskScopeIndex scope =
      disk.index.scopes().Of(write.partition, block.payload_bytes, *write.task.scope);
  if (state->AddOnDisk(scope, file, placed.place.slot, block) == 0) {
    disk.index.scopes().DropIfUnused(scope);
    counters->spills_shed.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  disk.reinsert_bytes += static_cast<double>(block.payload_bytes) * disk.options.reinsert_share;
  counters->spilled_blocks.fetch_add(1, std::memory_order_relaxed);
  counters->spilled_bytes.fetch_add(block.payload_bytes, std::memory_order_relaxed);
}

void SpillOperations::Abandon(StoreState* state, uint64_t id) {
  const DiskWrite* found = state->disk.writes.Find(id);
  CAIRN_CHECK_MSG(found != nullptr, "a write is given up that is not");
  const DiskWrite write = *found;
  End(state, write);
  if (write.entry == nullptr) return;
  state->counters->spills_failed.fetch_add(1, std::memory_order_relaxed);
  if (Waits(*write.entry) && write.entry->queue == nullptr) {
    state->disk.missed_spills.PushBack(write.entry);
  }
}

}  // namespace cairn::node
