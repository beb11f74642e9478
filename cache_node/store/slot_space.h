// SlotSpace: which block is in which slot, the eviction policy of each slot class, and how recently
// each memory segment was used.
//
// Its answers are about who could make room; removing blocks is the store's (space_path.h). Not
// thread-safe: under the store's lock, except that a held slot's bytes are used without it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cache_node/store/block_entry.h"
#include "cache_node/store/eviction_policy.h"
#include "cache_node/tiers/host_memory.h"
#include "cache_node/tiers/slot_class.h"

namespace cairn::node {

// One slot class: its policy, and its entries by the number that the policy knows.
struct ClassSpace {
  SlotClass slot_class;
  std::unique_ptr<EvictionPolicy> policy;
  std::vector<BlockEntry*> entries;  // By handle; null where free.
  std::vector<BlockHandle> free_handles;
  uint64_t slots_held = 0;
  bool remaking = false;  // A memory segment is being made anew for it.
};

// By what number the policy of `space` knows the entry; kNoBlock: it does not, or `entry` is null.
BlockHandle HandleIn(const ClassSpace& space, const BlockEntry* entry);

class SlotSpace {
 public:
  // `stays_bytes_max`: of blocks that are to stay.
  SlotSpace(std::unique_ptr<HostMemory> memory, std::unique_ptr<EvictionPolicyFactory> policies,
            uint64_t stays_bytes_max);

  const HostMemory& memory() const { return *memory_; }
  HostMemory& memory() { return *memory_; }

  // The class's space, made where needed; good until DropIfUnused.
  ClassSpace* Of(const SlotClass& slot_class);
  // Null when it is not there.
  ClassSpace* Find(const SlotClass& slot_class);
  void DropIfUnused(const SlotClass& slot_class);

  std::optional<SlotRef> Allocate(ClassSpace* space) {
    return memory_->Allocate(space->slot_class);
  }
  // The entry takes an allocated slot and a handle; reserved, so held.
  void Bind(BlockEntry* entry, ClassSpace* space, SlotRef slot);
  // The entry leaves the index: its handle is free, its slot is still its own.
  void Unlist(BlockEntry* entry);
  // The slot is free again. After Unlist.
  void Free(BlockEntry* entry);
  absl::Span<uint8_t> Bytes(const BlockEntry& entry) const { return memory_->Bytes(entry.slot); }

  void BecamePresent(BlockEntry* entry);
  void Used(BlockEntry* entry, UseStamp stamp);
  // Tells the policy and the memory segment what has changed of holders, children and orphanage.
  void Refresh(BlockEntry* entry);
  void RefreshOrphan(BlockEntry* entry);
  void PriorityChanged(BlockEntry* entry);
  // The entry is to stay: whether that leaves enough memory segments for others to be made anew
  // from. What stays is in at most so many segments as its budget would fill.
  bool MayStay(const BlockEntry& entry) const;
  // After the entry's own mark has changed.
  void StayChanged(BlockEntry* entry);

  // Whom the class's policy would let go.
  struct Victim {
    BlockEntry* entry = nullptr;
    bool orphaned = false;
    UseStamp stamp = 0;
  };
  std::optional<Victim> VictimOf(ClassSpace* space) const;
  // Any class's victim, of another than `except` that `may_take` says yes to; looks at a bounded
  // number of classes.
  std::optional<Victim> VictimElsewhere(const ClassSpace* except,
                                        absl::FunctionRef<bool(const SlotClass&)> may_take);

  // The memory segment of another class that was used least recently, when nothing in it is held
  // and its newest use is before `before` (any, when nothing). One that the kernel refused comes
  // first, then an empty one. `refused`: the kernel did so just now, so those are passed over; and
  // once kRefusedMax are missing no other is risked. Those that are lent only where `lent_too`.
  // `may_take` is asked of those that hold blocks.
  std::optional<uint32_t> SegmentToRemake(
      const ClassSpace& space, std::optional<UseStamp> before, bool refused, bool lent_too,
      absl::FunctionRef<bool(const HostMemory::SegmentInfo&)> may_take) const;
  // A memory segment that its class, another, does not need: at least half of it is free, all its
  // blocks may go, and the class has free slots for two segments, so that it does not ask for this
  // one back at once. Without it, a class that shrank would keep what nobody else can use. None
  // that is lent.
  std::optional<uint32_t> SpareSegment(const ClassSpace& space) const;
  // Entries by slot; null where free.
  absl::Span<BlockEntry* const> EntriesOf(uint32_t segment) const;
  // Something that hangs on the segment's blocks is as new as this.
  void RaiseNewest(uint32_t segment, UseStamp stamp);

  // The segment was made anew: nothing in it was ever used.
  void Remade(uint32_t segment);

  size_t class_count() const { return classes_.size(); }
  // Whether the entry is where it thinks it is.
  absl::Status AuditEntry(const BlockEntry& entry) const;
  // Whether the counts by segment are those of `held` entries a segment.
  absl::Status AuditHeld(absl::Span<const uint32_t> held) const;

 private:
  struct SegmentUse {
    UseStamp newest = 0;
    // Entries that may not be evicted for their own sake: reserved, pinned or to stay.
    uint32_t held = 0;
    uint32_t staying = 0;
    std::vector<BlockEntry*> entries;
  };
  static constexpr size_t kClassesAskedMax = 4096;
  static constexpr size_t kClassesSeenMax = 64;
  static constexpr uint32_t kRefusedMax = 2;

  const std::unique_ptr<HostMemory> memory_;
  const std::unique_ptr<EvictionPolicyFactory> policies_;
  std::vector<SegmentUse> segments_;
  const uint32_t segments_staying_max_;
  uint32_t segments_staying_ = 0;  // With an entry that is to stay.
  absl::flat_hash_map<SlotClass, std::unique_ptr<ClassSpace>> classes_;
};

}  // namespace cairn::node
