#include "cache_node/store/slot_space.h"

#include <algorithm>

#include "cache_node/store/block_families.h"
#include "cache_node/store/token_table.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

bool CountsAsHeld(const BlockEntry& entry) {
  return entry.life != BlockEntry::Life::kPresent || entry.held() || entry.stays();
}

EvictionPolicy::BlockTraits TraitsOf(const BlockEntry& entry) {
  const Token* token = entry.token;
  return {
      .key = PolicyKey(entry.key),
      .depth = entry.depth,
      .tokens = entry.map->layout().block_tokens,
      .bytes = entry.block_bytes(),
      .priority = entry.retention.priority,
      .prompt_blocks = token != nullptr ? token->prompt_blocks : 0,
      .prompt_hits = token != nullptr ? token->prompt_hits : 0,
      .parent = entry.family != nullptr ? HandleIn(*entry.space, entry.family->parent) : kNoBlock};
}

// At least one: else nothing small could stay in a pool of large segments.
uint32_t SegmentsFilledBy(uint64_t bytes, const HostMemory& memory) {
  const uint64_t segment_bytes = std::max<uint64_t>(1, memory.slot_bytes_max());
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(bytes / segment_bytes, 1, memory.segment_count()));
}

}  // namespace

BlockHandle HandleIn(const ClassSpace& space, const BlockEntry* entry) {
  const bool known =
      entry != nullptr && entry->space == &space && entry->life == BlockEntry::Life::kPresent;
  return known ? entry->handle : kNoBlock;
}

SlotSpace::SlotSpace(std::unique_ptr<HostMemory> memory,
                     std::unique_ptr<EvictionPolicyFactory> policies, uint64_t stays_bytes_max)
    : memory_(std::move(memory)),
      policies_(std::move(policies)),
      segments_(memory_->segment_count()),
      segments_staying_max_(SegmentsFilledBy(stays_bytes_max, *memory_)) {}

ClassSpace* SlotSpace::Of(const SlotClass& slot_class) {
  std::unique_ptr<ClassSpace>& space = classes_[slot_class];
  if (space == nullptr) {
    space = std::make_unique<ClassSpace>();
    space->slot_class = slot_class;
    space->policy = policies_->Make();
  }
  return space.get();
}

ClassSpace* SlotSpace::Find(const SlotClass& slot_class) {
  const auto it = classes_.find(slot_class);
  return it == classes_.end() ? nullptr : it->second.get();
}

void SlotSpace::DropIfUnused(const SlotClass& slot_class) {
  auto it = classes_.find(slot_class);
  if (it == classes_.end() || it->second->slots_held > 0 || it->second->remaking) return;
  classes_.erase(it);
}

void SlotSpace::Bind(BlockEntry* entry, ClassSpace* space, SlotRef slot) {
  CAIRN_CHECK(entry->space == nullptr && entry->life != BlockEntry::Life::kPresent &&
              entry->life != BlockEntry::Life::kGone);
  entry->space = space;
  entry->slot = slot;
  ++space->slots_held;
  if (space->free_handles.empty()) {
    entry->handle = static_cast<BlockHandle>(space->entries.size());
    space->entries.push_back(entry);
  } else {
    entry->handle = space->free_handles.back();
    space->free_handles.pop_back();
    CAIRN_CHECK(space->entries[entry->handle] == nullptr);
    space->entries[entry->handle] = entry;
  }
  SegmentUse& use = segments_[slot.segment];
  if (use.entries.size() <= slot.slot) use.entries.resize(slot.slot + 1, nullptr);
  CAIRN_CHECK(use.entries[slot.slot] == nullptr);
  use.entries[slot.slot] = entry;
  use.newest = std::max(use.newest, entry->stamp);
  ++use.held;
  entry->counts_as_held = true;
}

void SlotSpace::Unlist(BlockEntry* entry) {
  ClassSpace* space = entry->space;
  CAIRN_CHECK(space != nullptr && space->entries[entry->handle] == entry);
  if (entry->life == BlockEntry::Life::kPresent) space->policy->Removed(entry->handle);
  space->entries[entry->handle] = nullptr;
  space->free_handles.push_back(entry->handle);
}

void SlotSpace::Free(BlockEntry* entry) {
  CAIRN_CHECK(entry->life == BlockEntry::Life::kGone && !entry->held());
  SegmentUse& use = segments_[entry->slot.segment];
  CAIRN_CHECK(use.entries[entry->slot.slot] == entry);
  use.entries[entry->slot.slot] = nullptr;
  if (entry->counts_as_held) {
    CAIRN_CHECK(use.held > 0);
    --use.held;
  }
  memory_->Free(entry->slot);
  ClassSpace* space = entry->space;
  entry->space = nullptr;
  CAIRN_CHECK(space->slots_held > 0);
  --space->slots_held;
  DropIfUnused(SlotClass(space->slot_class));
}

void SlotSpace::BecamePresent(BlockEntry* entry) {
  CAIRN_CHECK(entry->life == BlockEntry::Life::kPresent);
  entry->space->policy->Inserted(entry->handle, TraitsOf(*entry), entry->stamp);
  if (entry->orphan) entry->space->policy->Orphaned(entry->handle, true);
  Refresh(entry);
}

void SlotSpace::Used(BlockEntry* entry, UseStamp stamp) {
  if (entry->life != BlockEntry::Life::kPresent) return;
  entry->stamp = std::max(entry->stamp, stamp);
  entry->space->policy->Used(entry->handle, stamp);
  RaiseNewest(entry->slot.segment, stamp);
}

void SlotSpace::PriorityChanged(BlockEntry* entry) {
  if (entry->life != BlockEntry::Life::kPresent) return;
  entry->space->policy->PriorityChanged(entry->handle, entry->retention.priority);
}

bool SlotSpace::MayStay(const BlockEntry& entry) const {
  return segments_[entry.slot.segment].staying > 0 || segments_staying_ < segments_staying_max_;
}

void SlotSpace::StayChanged(BlockEntry* entry) {
  SegmentUse& use = segments_[entry->slot.segment];
  if (entry->stays()) {
    if (use.staying++ == 0) ++segments_staying_;
  } else {
    CAIRN_CHECK(use.staying > 0);
    if (--use.staying == 0) --segments_staying_;
  }
  Refresh(entry);
}

void SlotSpace::Refresh(BlockEntry* entry) {
  SegmentUse& use = segments_[entry->slot.segment];
  const bool held = CountsAsHeld(*entry);
  if (held != entry->counts_as_held) {
    entry->counts_as_held = held;
    if (held) {
      ++use.held;
    } else {
      CAIRN_CHECK(use.held > 0);
      --use.held;
    }
  }
  if (entry->life != BlockEntry::Life::kPresent) return;
  if (entry->MayGo()) {
    entry->space->policy->MayGo(entry->handle);
  } else {
    entry->space->policy->MustStay(entry->handle);
  }
}

void SlotSpace::RefreshOrphan(BlockEntry* entry) {
  if (entry->life != BlockEntry::Life::kPresent) return;
  entry->space->policy->Orphaned(entry->handle, entry->orphan);
}

std::optional<SlotSpace::Victim> SlotSpace::VictimOf(ClassSpace* space) const {
  const std::optional<EvictionPolicy::Victim> victim = space->policy->NextVictim();
  if (!victim.has_value()) return std::nullopt;
  CAIRN_CHECK(victim->block < space->entries.size());
  BlockEntry* entry = space->entries[victim->block];
  CAIRN_CHECK_MSG(entry != nullptr && entry->MayGo(), "a policy named a block that may not go");
  return Victim{entry, victim->orphaned, victim->stamp};
}

std::optional<SlotSpace::Victim> SlotSpace::VictimElsewhere(
    const ClassSpace* except, absl::FunctionRef<bool(const SlotClass&)> may_take) {
  size_t asked = 0;
  size_t seen = 0;
  for (auto& [slot_class, space] : classes_) {
    if (++asked > kClassesAskedMax || seen == kClassesSeenMax) break;
    if (space.get() == except || !may_take(slot_class)) continue;
    ++seen;
    if (std::optional<Victim> victim = VictimOf(space.get())) return victim;
  }
  return std::nullopt;
}

std::optional<uint32_t> SlotSpace::SegmentToRemake(
    const ClassSpace& space, std::optional<UseStamp> before, bool refused, bool lent_too,
    absl::FunctionRef<bool(const HostMemory::SegmentInfo&)> may_take) const {
  std::optional<uint32_t> best;
  std::optional<uint32_t> empty;
  UseStamp best_newest = 0;
  uint32_t missing = 0;
  for (uint32_t i = 0; i < memory_->segment_count(); ++i) {
    const HostMemory::SegmentInfo info = memory_->Info(i);
    if (info.in_remake || info.away || info.slot_class == space.slot_class) continue;
    if (info.lent && !lent_too) continue;
    if (info.missing) {
      if (!refused) return i;
      if (++missing >= kRefusedMax) return std::nullopt;
      continue;
    }
    if (info.slots_used == 0) {
      empty = i;
      continue;
    }
    const SegmentUse& use = segments_[i];
    if (use.held > 0 || (before.has_value() && use.newest >= *before)) continue;
    if (best.has_value() && use.newest >= best_newest) continue;
    if (!may_take(info)) continue;
    best = i;
    best_newest = use.newest;
  }
  return empty.has_value() ? empty : best;
}

std::optional<uint32_t> SlotSpace::SpareSegment(const ClassSpace& space) const {
  // A pool that is nearly full has nothing to spare.
  if (memory_->used_bytes() > memory_->pool_bytes() / 8 * 7) return std::nullopt;
  struct Sparsest {
    uint32_t segment = 0;
    uint32_t used = 0;
    uint32_t slots = 0;
    uint32_t free = 0;  // Of the class.
  };
  absl::flat_hash_map<SlotClass, Sparsest> by_class;
  for (uint32_t i = 0; i < memory_->segment_count(); ++i) {
    const HostMemory::SegmentInfo info = memory_->Info(i);
    if (info.in_remake || info.missing || info.lent || info.slots == 0) continue;
    if (info.slot_class == space.slot_class) continue;
    Sparsest& sparsest = by_class[info.slot_class];
    sparsest.free += info.slots - info.slots_used;
    if (segments_[i].held > 0 || (sparsest.slots > 0 && info.slots_used >= sparsest.used)) continue;
    sparsest.segment = i;
    sparsest.used = info.slots_used;
    sparsest.slots = info.slots;
  }
  std::optional<uint32_t> best;
  uint32_t best_free = 0;
  for (const auto& [slot_class, sparsest] : by_class) {
    const bool spare = sparsest.slots > 0 && sparsest.used <= sparsest.slots / 2 &&
                       sparsest.free >= 2 * sparsest.slots;
    const bool better = !best.has_value() || sparsest.free > best_free ||
                        (sparsest.free == best_free && sparsest.segment < *best);
    if (!spare || !better) continue;
    const std::vector<BlockEntry*>& entries = segments_[sparsest.segment].entries;
    const bool all_may_go =
        std::all_of(entries.begin(), entries.end(),
                    [](const BlockEntry* entry) { return entry == nullptr || entry->MayGo(); });
    if (!all_may_go) continue;
    best = sparsest.segment;
    best_free = sparsest.free;
  }
  return best;
}

absl::Span<BlockEntry* const> SlotSpace::EntriesOf(uint32_t segment) const {
  return segments_[segment].entries;
}

void SlotSpace::RaiseNewest(uint32_t segment, UseStamp stamp) {
  UseStamp& newest = segments_[segment].newest;
  newest = std::max(newest, stamp);
}

void SlotSpace::Remade(uint32_t segment) {
  SegmentUse& use = segments_[segment];
  CAIRN_CHECK(use.held == 0 && use.staying == 0);
  for (const BlockEntry* entry : use.entries) CAIRN_CHECK(entry == nullptr);
  use = SegmentUse{};
}

absl::Status SlotSpace::AuditEntry(const BlockEntry& entry) const {
  const SegmentUse& use = segments_[entry.slot.segment];
  if (entry.slot.slot >= use.entries.size() || use.entries[entry.slot.slot] != &entry) {
    return absl::InternalError("an entry is not in its slot");
  }
  if (entry.counts_as_held != CountsAsHeld(entry)) {
    return absl::InternalError("an entry is not counted as it is: held or not");
  }
  if (entry.life != BlockEntry::Life::kGone && entry.space->entries[entry.handle] != &entry) {
    return absl::InternalError("a handle names another entry");
  }
  if (use.newest < entry.stamp) {
    return absl::InternalError("a memory segment is older than a block in it");
  }
  return absl::OkStatus();
}

absl::Status SlotSpace::AuditHeld(absl::Span<const uint32_t> held) const {
  CAIRN_CHECK(held.size() == segments_.size());
  for (size_t i = 0; i < segments_.size(); ++i) {
    if (segments_[i].held != held[i]) {
      return absl::InternalError("a memory segment miscounts the blocks that are held");
    }
  }
  return absl::OkStatus();
}

}  // namespace cairn::node
