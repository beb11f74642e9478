#include "cache_node/store/removal_operations.h"

#include "common/base/check.h"

namespace cairn::node {
namespace {

void CountPinned(const StoreState& state, DiskHandle on_device, RemovedBlocks* removed) {
  if (on_device == 0) return;
  const DeviceBlock& block = *state.device.At(on_device);
  if (block.pins > 0) removed->pinned_bytes += block.map->block_bytes();
}

// Counts present blocks, and bytes that others than leases hold: leases are revoked with the
// blocks.
void RemoveCounted(StoreState* state, BlockEntry* entry, RemovalReason reason,
                   RemovedBlocks* removed) {
  if (entry->life == BlockEntry::Life::kPresent || entry->disk != 0 || entry->device != 0) {
    ++removed->blocks;
  }
  if (entry->pins > entry->lease_pins || entry->claims > 0) {
    removed->pinned_bytes += entry->block_bytes();
  }
  CountPinned(*state, entry->device, removed);
  state->Remove(entry, reason);
}

// One block of a tier's scope, wherever else it is. What was loaded from there is the same block;
// what a writer put into host memory meanwhile is not.
void RemoveOneOf(StoreState* state, const DiskIndex& tier, const DiskScopeRecord& scope,
                 RemovalReason reason, RemovedBlocks* removed) {
  const ParentId block{scope.partition, tier.At(scope.first).key};
  BlockEntry* entry = state->index.Find(block.partition, block.key);
  if (entry != nullptr && entry->loaded) return RemoveCounted(state, entry, reason, removed);
  CountPinned(*state, state->device.Find(block.partition, block.key), removed);
  CAIRN_CHECK(state->RemoveCopies(block, reason));
  ++removed->blocks;
}

}  // namespace

bool RetireSweep::Step(StoreState* state) {
  for (size_t i = 0; i < BlockStore::kStepsPerLock && !partitions_.empty(); ++i) {
    if (BlockEntry* entry = state->scopes.AnyOf(partitions_.back()); entry != nullptr) {
      RemoveCounted(state, entry, RemovalReason::kRetired, &removed_);
      continue;
    }
    bool any = false;
    for (const DiskIndex* tier : {&state->device.index, &state->disk.index}) {
      const DiskScopeRecord* scope = tier->scopes().AnyOf(partitions_.back());
      if (scope == nullptr) continue;
      RemoveOneOf(state, *tier, *scope, RemovalReason::kRetired, &removed_);
      any = true;
      break;
    }
    if (!any) partitions_.pop_back();
  }
  return partitions_.empty();
}

bool ClearSweep::Step(StoreState* state) {
  const ScopeList* list = state->scopes.Find(partition_, scope_digest_);
  if (!left_.has_value()) left_ = list == nullptr ? 0 : list->entries;
  size_t steps = BlockStore::kStepsPerLock;
  for (; steps > 0 && *left_ > 0; --steps) {
    list = state->scopes.Find(partition_, scope_digest_);
    if (list == nullptr) left_ = 0;
    if (*left_ == 0) break;
    --*left_;
    CAIRN_CHECK(list->first != nullptr);
    RemoveCounted(state, list->first, RemovalReason::kCleared, &removed_);
  }
  // What is left elsewhere is not in host memory, or came there after the sweep began: a new copy
  // shares the key, but the copy elsewhere, and what was loaded from it, are of before.
  for (; steps > 0; --steps) {
    bool any = false;
    for (const DiskIndex* tier : {&state->device.index, &state->disk.index}) {
      const DiskScopeRecord* scope = tier->scopes().Find(partition_, scope_digest_);
      if (scope == nullptr) continue;
      RemoveOneOf(state, *tier, *scope, RemovalReason::kCleared, &removed_);
      any = true;
      break;
    }
    if (!any) return *left_ == 0;
  }
  return false;
}

// Looks at a bounded number of keys that are not done; true at the end, and starts again.
bool DeleteSweep::Next(const std::function<void(size_t)>& look) {
  if (next_ == 0) left_ = 0;
  for (size_t i = 0; i < BlockStore::kStepsPerLock && next_ < keys_.size(); ++i, ++next_) {
    if (done_[next_]) continue;
    look(next_);
    if (!done_[next_]) ++left_;
  }
  if (next_ < keys_.size()) return false;
  next_ = 0;
  return true;
}

void DeleteSweep::PlacesOf(const StoreState& state, const BlockKey& key,
                           std::vector<DiskPlace>* places) const {
  if (const DiskHandle handle = state.disk.index.Find(partition_, key); handle != 0) {
    places->push_back(state.disk.index.PlaceOf(handle));
  }
  const DiskWrite* write = state.disk.writes.FindBlock({partition_, key});
  if (write != nullptr && write->place.has_value()) places->push_back(*write->place);
}

bool DeleteSweep::StepCollect(StoreState* state) {
  if (next_ == 0) places_.clear();
  return Next([&](size_t i) {
    PlacesOf(*state, keys_[i], &places_);
    const DiskHandle handle = state->disk.index.Find(partition_, keys_[i]);
    if (handle != 0) state->disk.index.MarkDying(handle, true);
  });
}

bool DeleteSweep::StepRemove(StoreState* state) {
  for (const DiskPlace& place : std::exchange(places_, {})) {
    marked_.insert({place.file, place.slot});
  }
  return Next([&](size_t i) {
    std::vector<DiskPlace> now;
    PlacesOf(*state, keys_[i], &now);
    for (const DiskPlace& place : now) {
      if (!marked_.contains({place.file, place.slot})) return;
    }
    done_[i] = true;
    BlockEntry* entry = state->index.Find(partition_, keys_[i]);
    const bool reserved = entry != nullptr && entry->life == BlockEntry::Life::kReserved;
    if (entry != nullptr && !reserved) {
      state->Remove(entry, RemovalReason::kDeleted);
      removed_[i] = true;
    } else if (state->RemoveCopies({partition_, keys_[i]}, RemovalReason::kDeleted)) {
      removed_[i] = true;
    }
  });
}

bool DeleteSweep::StepGiveUp(StoreState* state) {
  return Next([&](size_t i) {
    const DiskHandle handle = state->disk.index.Find(partition_, keys_[i]);
    if (handle != 0) state->disk.index.MarkDying(handle, false);
  });
}

}  // namespace cairn::node
