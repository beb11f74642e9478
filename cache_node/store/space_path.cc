#include "cache_node/store/space_path.h"

#include <optional>
#include <utility>

#include "common/base/check.h"

namespace cairn::node {
namespace {

constexpr size_t kEvictionsPerCall = 64;
constexpr size_t kDescentStepsMax = 4096;
constexpr int kSegmentsTriedMax = 4;

enum class Emptied { kYes, kNotYet, kHeld };

// The deepest holding child below `entry`, first child first; null when it is too deep.
BlockEntry* LeafBelow(BlockEntry* entry) {
  for (size_t i = 0; i < kDescentStepsMax; ++i) {
    if (entry->children == nullptr || entry->children->holding == 0) return entry;
    BlockEntry* child = entry->children->first;
    CAIRN_CHECK(child->partition == entry->partition && child->depth > entry->depth);
    entry = child;
  }
  return nullptr;
}

// Whether a tenant's blocks of so many bytes may make room for one of `asking`.
bool MayTakeFrom(const StoreState& state, TenantIndex asking, TenantIndex tenant, uint64_t bytes) {
  return tenant == asking || state.ledger.CanSpare(tenant, bytes);
}

// Whether the newcomer is worth that its class's victim leaves. What their writers wish comes
// first.
bool IsWorth(ClassSpace* space, const SlotSpace::Victim& victim, Newcomer newcomer) {
  if (newcomer.traits == nullptr || victim.orphaned) return true;
  if (newcomer.traits->priority > victim.entry->retention.priority) return true;
  const EvictionPolicy::Victim displaced{
      .block = victim.entry->handle, .orphaned = false, .stamp = victim.stamp};
  return space->policy->Admits(*newcomer.traits, newcomer.request, &displaced);
}

// Evicts `top` and what hangs on it, children first. When something may not go, or is not older
// than `before`, the segment is marked as new as that.
Emptied EvictWithChildren(StoreState* state, TenantIndex asking, uint32_t segment, BlockEntry* top,
                          std::optional<UseStamp> before, size_t* evictions_left) {
  BlockEntry* at = top;
  while (true) {
    BlockEntry* leaf = LeafBelow(at);
    if (leaf == nullptr || !leaf->MayGo() ||
        !MayTakeFrom(*state, asking, leaf->space->slot_class.tenant, leaf->block_bytes())) {
      state->slots.RaiseNewest(segment, state->stamp);
      return Emptied::kHeld;
    }
    if (before.has_value() && leaf->stamp >= *before) {
      state->slots.RaiseNewest(segment, leaf->stamp);
      return Emptied::kHeld;
    }
    if (*evictions_left == 0) return Emptied::kNotYet;
    --*evictions_left;
    const bool was_top = leaf == top;
    BlockEntry* parent = leaf->family != nullptr ? leaf->family->parent : nullptr;
    state->Evict(leaf);
    if (was_top) return Emptied::kYes;
    CAIRN_CHECK(parent != nullptr);
    at = parent;
  }
}

Emptied EmptySegment(StoreState* state, TenantIndex asking, uint32_t segment,
                     std::optional<UseStamp> before) {
  size_t evictions_left = kEvictionsPerCall;
  const size_t slots = state->slots.EntriesOf(segment).size();
  for (size_t i = 0; i < slots; ++i) {
    BlockEntry* entry = state->slots.EntriesOf(segment)[i];
    if (entry == nullptr) continue;
    const Emptied emptied =
        EvictWithChildren(state, asking, segment, entry, before, &evictions_left);
    if (emptied != Emptied::kYes) return emptied;
  }
  CAIRN_CHECK(state->slots.memory().Info(segment).slots_used == 0);
  return Emptied::kYes;
}

}  // namespace

SlotAnswer TakeSlot(StoreState* state, ClassSpace* space, Newcomer newcomer, uint32_t remakes,
                    uint32_t refused) {
  SlotAnswer answer;
  SlotSpace& slots = state->slots;
  if (std::optional<SlotRef> slot = slots.Allocate(space); slot.has_value()) {
    answer.kind = SlotAnswer::Kind::kSlot;
    answer.slot = *slot;
    return answer;
  }
  const TenantIndex asking = space->slot_class.tenant;
  const uint64_t slot_bytes = space->slot_class.slot_bytes;
  // What is kept for it is taken from others however new it is; and not from itself.
  const bool entitled = state->ledger.WithinKept(asking, slot_bytes);
  const auto may_take = [&](const HostMemory::SegmentInfo& info) {
    if (info.slot_class.tenant == asking) return !entitled;
    return state->ledger.CanSpare(info.slot_class.tenant,
                                  info.slots_used * info.slot_class.slot_bytes);
  };
  const bool may_remake = !space->remaking && remakes < kRemakesMax && refused < kRefusedRemakesMax;
  // Readers that have one take their time to give it back: one after the other.
  bool may_recall = slots.memory().loans().recalls() == 0;
  for (int i = 0; i < kSegmentsTriedMax && may_remake; ++i) {
    const std::optional<SlotSpace::Victim> own = slots.VictimOf(space);
    if (own.has_value() && (own->orphaned || refused > 0)) break;
    std::optional<UseStamp> before;
    if (own.has_value() && !entitled) before = own->stamp;
    std::optional<uint32_t> segment =
        slots.SegmentToRemake(*space, before, refused > 0, may_recall, may_take);
    if (!segment.has_value() && own.has_value()) {
      segment = slots.SpareSegment(*space);
      before = std::nullopt;
    }
    if (!segment.has_value()) break;
    const Emptied emptied = EmptySegment(state, asking, *segment, before);
    if (emptied == Emptied::kHeld) continue;
    if (emptied == Emptied::kNotYet) {
      answer.kind = SlotAnswer::Kind::kAgain;
      return answer;
    }
    if (slots.memory().Info(*segment).lent) {
      slots.memory().Recall(*segment);
      slots.Remade(*segment);
      state->recalled = true;
      may_recall = false;
      continue;
    }
    space->remaking = true;
    answer.kind = SlotAnswer::Kind::kRemake;
    answer.segment = *segment;
    answer.segment_bytes = slots.memory().SegmentBytes(*segment);
    answer.old = slots.memory().BeginRemake(*segment);
    return answer;
  }
  const std::optional<SlotSpace::Victim> own = slots.VictimOf(space);
  if (!own.has_value()) return answer;
  if (!IsWorth(space, *own, newcomer)) {
    answer.kind = SlotAnswer::Kind::kDeclined;
    return answer;
  }
  // The class must not be dropped with its last block: it is about to get another.
  ++space->slots_held;
  state->Evict(own->entry);
  --space->slots_held;
  const std::optional<SlotRef> slot = slots.Allocate(space);
  CAIRN_CHECK(slot.has_value());
  answer.kind = SlotAnswer::Kind::kSlot;
  answer.slot = *slot;
  return answer;
}

void PutRemade(StoreState* state, const SlotClass& slot_class, uint32_t segment,
               std::unique_ptr<MemorySegment> made) {
  state->slots.memory().FinishRemake(segment, std::move(made));
  state->slots.Remade(segment);
  ClassSpace* space = state->slots.Of(slot_class);
  CAIRN_CHECK(space->remaking);
  space->remaking = false;
  state->slots.DropIfUnused(slot_class);
  state->counters->segment_remakes.fetch_add(1, std::memory_order_relaxed);
}

QuotaRoom MakeQuotaRoom(StoreState* state, ClassSpace* space, Newcomer newcomer) {
  const SlotClass wanted = space->slot_class;
  const auto is_own = [&](const SlotClass& other) { return other.tenant == wanted.tenant; };
  ++space->slots_held;
  QuotaRoom room = QuotaRoom::kAgain;
  for (size_t i = 0; i <= kEvictionsPerCall && room == QuotaRoom::kAgain; ++i) {
    if (state->ledger.HasRoom(wanted.tenant, wanted.slot_bytes)) {
      room = QuotaRoom::kThere;
      break;
    }
    std::optional<SlotSpace::Victim> victim = state->slots.VictimOf(space);
    const bool declined = victim.has_value() && !IsWorth(space, *victim, newcomer);
    if (!victim.has_value()) victim = state->slots.VictimElsewhere(space, is_own);
    if (declined) {
      room = QuotaRoom::kDeclined;
    } else if (victim.has_value()) {
      state->Evict(victim->entry);
    } else {
      room = QuotaRoom::kOver;
    }
  }
  --space->slots_held;
  return room;
}

IndexRoom MakeIndexRoom(StoreState* state, ClassSpace* space, Newcomer newcomer, uint64_t bytes) {
  const TenantIndex asking = space->slot_class.tenant;
  const auto may_take = [&](const SlotClass& other) {
    return MayTakeFrom(*state, asking, other.tenant, other.slot_bytes);
  };
  ++space->slots_held;
  IndexRoom room = IndexRoom::kNone;
  for (size_t i = 0; i <= kEvictionsPerCall; ++i) {
    if (state->index.index_bytes() + bytes <= state->options.index_bytes_max) {
      room = IndexRoom::kThere;
      break;
    }
    std::optional<SlotSpace::Victim> victim = state->slots.VictimOf(space);
    if (victim.has_value() && !IsWorth(space, *victim, newcomer)) {
      room = IndexRoom::kDeclined;
      break;
    }
    if (!victim.has_value()) victim = state->slots.VictimElsewhere(space, may_take);
    if (!victim.has_value()) break;
    state->Evict(victim->entry);
  }
  --space->slots_held;
  return room;
}

}  // namespace cairn::node
