#include "cache_node/store/removal_operations.h"

#include "common/base/check.h"

namespace cairn::node {
namespace {

// Counts present blocks, and bytes that others than leases hold: leases are revoked with the
// blocks.
void RemoveCounted(StoreState* state, BlockEntry* entry, RemovalReason reason,
                   RemovedBlocks* removed) {
  if (entry->life == BlockEntry::Life::kPresent) ++removed->blocks;
  if (entry->pins > entry->lease_pins || entry->claims > 0) {
    removed->pinned_bytes += entry->block_bytes();
  }
  state->Remove(entry, reason);
}

}  // namespace

bool RetireSweep::Step(StoreState* state) {
  for (size_t i = 0; i < BlockStore::kStepsPerLock && !partitions_.empty(); ++i) {
    BlockEntry* entry = state->scopes.AnyOf(partitions_.back());
    if (entry == nullptr) {
      partitions_.pop_back();
      continue;
    }
    RemoveCounted(state, entry, RemovalReason::kRetired, &removed_);
  }
  return partitions_.empty();
}

bool ClearSweep::Step(StoreState* state) {
  const ScopeList* list = state->scopes.Find(partition_, scope_digest_);
  if (!left_.has_value()) left_ = list == nullptr ? 0 : list->entries;
  for (size_t i = 0; i<BlockStore::kStepsPerLock&& * left_> 0; ++i) {
    list = state->scopes.Find(partition_, scope_digest_);
    if (list == nullptr) left_ = 0;
    if (*left_ == 0) break;
    --*left_;
    CAIRN_CHECK(list->first != nullptr);
    RemoveCounted(state, list->first, RemovalReason::kCleared, &removed_);
  }
  return *left_ == 0;
}

bool DeleteSweep::Step(StoreState* state) {
  for (size_t i = 0; i < BlockStore::kStepsPerLock && next_ < keys_.size(); ++i, ++next_) {
    BlockEntry* entry = state->index.Find(partition_, keys_[next_]);
    if (entry == nullptr || entry->life != BlockEntry::Life::kPresent) continue;
    state->Remove(entry, RemovalReason::kDeleted);
    removed_[next_] = true;
  }
  return next_ == keys_.size();
}

}  // namespace cairn::node
