#include "cache_node/store/public_sweep.h"

#include <utility>

#include "common/base/check.h"

namespace cairn::node {

bool PublicSweep::IsPublic(const StoreState& state, PartitionIndex partition) const {
  const TenantIndex everyone = state.ledger.Find(kPublicTenant);
  return everyone != 0 && state.namespaces.PartitionAt(partition).tenant == everyone;
}

bool PublicSweep::IsNew(const StoreState& state, const ParentId& block) const {
  const BlockEntry* entry = state.index.Find(block.partition, block.key);
  return entry != nullptr && !entry->loaded && entry->reserved_at > began_;
}

std::optional<ParentId> PublicSweep::PublicAt(const StoreState& state) const {
  std::optional<ParentId> block;
  if (const BlockEntry* entry = walk_.entry(); entry != nullptr) {
    block = ParentId{entry->partition, entry->key};
  } else if (const StoreState::Copy& copy = walk_.copy()) {
    const DiskIndex& tier = state.IndexOf(copy);
    block = ParentId{tier.PartitionOf(copy.handle), tier.At(copy.handle).key};
  }
  if (!block.has_value() || !IsPublic(state, block->partition)) return std::nullopt;
  return block;
}

std::optional<ParentId> PublicSweep::ParentOf(const StoreState& state,
                                              const ParentId& block) const {
  const Partition& partition = state.namespaces.PartitionAt(block.partition);
  if (partition.name_space->fields.key_scheme != KeyScheme::kCairn) return std::nullopt;
  std::optional<ParentId> parent;
  if (const BlockEntry* entry = state.index.Find(block.partition, block.key); entry != nullptr) {
    if (entry->family != nullptr) parent = entry->family->id;
  } else if (const StoreState::Copy copy = state.CopyOf(block.partition, block.key)) {
    if (state.IndexOf(copy).At(copy.handle).has_parent) parent = state.ParentOf(copy);
  }
  if (!parent.has_value() || !IsPublic(state, parent->partition)) return std::nullopt;
  return parent;
}

void PublicSweep::Climb(const StoreState& state) {
  const ParentId block = *std::exchange(climb_, std::nullopt);
  if (kept_.insert(block).second) climb_ = ParentOf(state, block);
}

void PublicSweep::Look(StoreState* state) {
  const std::optional<ParentId> block = PublicAt(*state);
  if (!block.has_value()) return;
  // Also one that came when the walk was past it, for the older blocks before it.
  if (last_keys_.contains(block->key) && !kept_.contains(*block)) climb_ = block;
  if (!all_kept_ || climb_.has_value() || kept_.contains(*block)) return;
  if (IsNew(*state, *block)) return;
  pass_found_ = true;
  BlockEntry* const entry = walk_.entry();
  if (entry == nullptr || entry->life != BlockEntry::Life::kReserved) {
    batch_.push_back(*block);
    return;
  }
  ++reservations_;
  state->Remove(entry, RemovalReason::kDeleted);
}

bool PublicSweep::Step(StoreState* state) {
  CAIRN_CHECK(!done_);
  for (size_t i = 0; i < BlockStore::kStepsPerLock; ++i) {
    if (batch_.size() >= kBatchBlocks) return true;
    if (climb_.has_value()) {
      Climb(*state);
    } else if (walk_.Next(*state)) {
      Look(state);
    } else if (!std::exchange(all_kept_, true)) {
      walk_.Restart();
    } else {
      // Blocks move between the tiers: once more, until nothing is found.
      done_ = !std::exchange(pass_found_, false);
      walk_.Restart();
      return true;
    }
  }
  return false;
}

std::vector<ParentId> PublicSweep::TakeBatch() { return std::exchange(batch_, {}); }

}  // namespace cairn::node
