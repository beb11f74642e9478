// StoreState: blocks that are to stay in host memory until some time, as their writer or an admin
// wishes, whatever the eviction policy prefers.
//
// Quotas that are lowered end what is over them, those first that would end first: none that a
// block after it needs, as that ends no later, and of one time the deeper blocks come first.
//
// A block that stays keeps those before it, because children leave before parents. So it may stay
// only as long as the block before it does, which is charged to the budget as well; nothing is kept
// that nobody was charged for. Removal by will, an end (TTL) and a parent that is gone end it.
#include <algorithm>

#include "cache_node/store/store_state.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

bool HoldsParent(const BlockEntry& entry) {
  return entry.family != nullptr && entry.family->id.partition == entry.partition;
}

// Among those that stay until the same time.
uint32_t RankOf(const BlockEntry& entry) { return UINT32_MAX - entry.depth; }

}  // namespace

StayOutcome StoreState::Stay(BlockEntry* entry, int64_t until_unix_ms) {
  CAIRN_CHECK(until_unix_ms > 0);
  if (entry->life != BlockEntry::Life::kReserved && entry->life != BlockEntry::Life::kPresent) {
    return StayOutcome::kNotThere;
  }
  if (HoldsParent(*entry)) {
    const BlockEntry* parent = entry->family->parent;
    if (parent == nullptr || !parent->stays()) return StayOutcome::kParentMayGo;
    until_unix_ms = std::min(until_unix_ms, parent->stays_until_unix_ms);
  }
  if (entry->orphan) return StayOutcome::kParentMayGo;
  if (entry->stays_until_unix_ms >= until_unix_ms) return StayOutcome::kStays;
  const ParentId id{entry->partition, entry->key};
  if (entry->stays()) {
    if (ledger.StaysExcessOf(entry->space->slot_class.tenant) > 0) return StayOutcome::kBudget;
    stays.Erase(entry->stays_until_unix_ms, id, RankOf(*entry));
    entry->stays_until_unix_ms = until_unix_ms;
    stays.Put(until_unix_ms, id, RankOf(*entry));
    return StayOutcome::kStays;
  }
  const bool fits =
      index.index_bytes() + BlockSchedule::kBytesPerBlock <= options.index_bytes_max &&
      slots.MayStay(*entry) &&
      ledger.TryStay(entry->space->slot_class.tenant, entry->block_bytes());
  if (!fits) {
    counters->stays_refused.fetch_add(1, std::memory_order_relaxed);
    return StayOutcome::kBudget;
  }
  entry->stays_until_unix_ms = until_unix_ms;
  stays.Put(until_unix_ms, id, RankOf(*entry));
  index.AddBytes(entry, BlockSchedule::kBytesPerBlock);
  if (HoldsParent(*entry)) ++entry->family->staying;
  slots.StayChanged(entry);
  return StayOutcome::kStays;
}

StayOutcome StoreState::LetGo(BlockEntry* entry) {
  if (!entry->stays()) return StayOutcome::kMayGo;
  if (entry->children != nullptr && entry->children->staying > 0) return StayOutcome::kNeeded;
  EndStay(entry);
  return StayOutcome::kMayGo;
}

void StoreState::EndStay(BlockEntry* entry) {
  CAIRN_CHECK(entry != nullptr && entry->stays());
  stays.Erase(entry->stays_until_unix_ms, {entry->partition, entry->key}, RankOf(*entry));
  entry->stays_until_unix_ms = 0;
  index.RemoveBytes(entry, BlockSchedule::kBytesPerBlock);
  if (HoldsParent(*entry)) {
    CAIRN_CHECK(entry->family->staying > 0);
    --entry->family->staying;
  }
  ledger.EndStay(entry->space->slot_class.tenant, entry->block_bytes());
  slots.StayChanged(entry);
}

bool StoreState::StaysAsScheduled(const BlockEntry& entry) const {
  const ParentId id{entry.partition, entry.key};
  return stays.Has(entry.stays_until_unix_ms, id, RankOf(entry));
}

bool StoreState::StepStaysOver(size_t steps) {
  for (size_t i = 0; i < steps && stays_over_.has_value(); ++i) {
    const std::optional<ParentId> block = stays.Next(&*stays_over_);
    if (!block.has_value()) {
      stays_over_.reset();
      break;
    }
    BlockEntry* entry = index.Find(block->partition, block->key);
    CAIRN_CHECK(entry != nullptr && entry->stays());
    const TenantIndex tenant = entry->space->slot_class.tenant;
    if (ledger.StaysExcessOf(tenant) > 0 && LetGo(entry) == StayOutcome::kMayGo) {
      counters->stays_ended.fetch_add(1, std::memory_order_relaxed);
    }
  }
  return stays_over_.has_value();
}

}  // namespace cairn::node
