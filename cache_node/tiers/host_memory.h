// HostMemory: the host tier's pool, cut into memory segments and those into slots.
//
// The pool is a list of memfd memory segments, at least 16 and of at most 256 MiB, whose sizes
// differ by one page at most, the larger first, so that no page of the pool is left over; mapped
// writable, touched, then sealed (SHRINK, GROW, FUTURE_WRITE, SEAL). Each belongs to one slot
// class, that is one tenant and one slot size; a slot holds one whole block. A segment that changes
// class is made anew, as a new memfd under an id never used again, so no tenant ever maps what was
// another's.
//
// Not thread-safe: the store calls it under its lock. Exceptions are said: MakeSegment, which does
// the slow work, is static and runs outside; and a slot's bytes may be read and written without the
// lock for as long as the slot is held, since a held slot's segment is never unmapped (Bytes
// itself, which finds them, is called under the lock).
//
// Allocate and Free are O(1) (amortized). A segment whose last slot is freed keeps its class until
// it is remade. A failed CHECK says that the caller freed a slot twice, or remade a segment in use.
//
// A segment can be lent to readers of this host (Lend), who map it. One that is lent is not made
// anew before all of them have given it back: Recall takes it out of use, and it is away until
// then, which counts against the pool like memory that is missing.
//
// It does not evict: it says what is free, and which segments could change class (Info).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cache_node/tiers/generation_page.h"
#include "cache_node/tiers/memory_segment.h"
#include "cache_node/tiers/segment_loans.h"
#include "cache_node/tiers/slot_class.h"

namespace cairn::node {

class HostMemory {
 public:
  static constexpr uint64_t kSegmentBytesMax = uint64_t{256} << 20;
  static constexpr uint32_t kSegmentsAtLeast = 16;
  // Segments of smaller slots are not lent: their pages of generations would be too large.
  static constexpr uint64_t kLentSlotBytesMin = 4096;

  struct SegmentInfo {
    uint32_t index = 0;    // Position in the pool, stable.
    uint64_t id = 0;       // Never used again by another mapping.
    SlotClass slot_class;  // tenant 0 and size 0: fresh, of no class yet.
    uint32_t slots = 0;    // 0 without a class.
    uint32_t slots_used = 0;
    bool in_remake = false;
    bool missing = false;  // Its last remake failed: no memory is behind it.
    bool lent = false;     // Somebody else maps it.
    bool away = false;     // Lent, and not given back yet: no memory is behind it here.
  };

  // Creates, touches and seals the whole pool. INVALID_ARGUMENT when `pool_bytes` is below
  // kSegmentsAtLeast pages; RESOURCE_EXHAUSTED when the kernel refuses. With a pinner, which
  // outlives it, all segments are pinned.
  static absl::StatusOr<std::unique_ptr<HostMemory>> Create(uint64_t pool_bytes,
                                                            MemoryPinner* pinner = nullptr);
  ~HostMemory();

  // Of all segments but those missing or away: what `pool_bytes` allowed, rounded down to whole
  // pages.
  uint64_t pool_bytes() const;
  // The largest slot that every segment has room for. Never changes.
  uint64_t slot_bytes_max() const;
  // Never changes, whatever is made of the segment.
  uint64_t SegmentBytes(uint32_t index) const;
  // For MakeSegment. Never changes.
  MemoryPinner* pinner() const { return pinner_; }

  // A free slot of the class, from a segment that already has it or from a fresh one. Nothing: the
  // caller evicts, or lets a segment change class. Never anything when a slot is larger than
  // slot_bytes_max. The slot's bytes are what its last holder left.
  std::optional<SlotRef> Allocate(const SlotClass& slot_class);
  // Raises the slot's generation: what was leased there is no longer there.
  void Free(SlotRef slot);

  absl::Span<uint8_t> Bytes(SlotRef slot) const;
  // Rises with each Free or Revoke of the slot and each remake of its segment; never repeats for
  // one SlotRef.
  uint64_t Generation(SlotRef slot) const;
  // Raises the generation of a slot that is held: what lies there is not to be read any more.
  void Revoke(SlotRef slot);

  uint32_t segment_count() const;
  SegmentInfo Info(uint32_t index) const;
  uint64_t used_bytes() const;  // Of slots held.

  // --- Readers of this host ---
  // Of a segment that has a class. The descriptors are valid, and the memory stays, until the
  // borrower gives it back.
  struct Loan {
    SlotClass slot_class;
    uint32_t slots = 0;
    const MemorySegment* memory = nullptr;
    const MemorySegment* generations = nullptr;
  };
  // Whether the segment at `index` can be lent, and is still the one with this id. Before its first
  // Lend it is given a page of GenerationPage::BytesFor its slots.
  bool CanLend(uint32_t index, uint64_t id) const;
  bool HasGenerations(uint32_t index) const;
  void GiveGenerations(uint32_t index, std::unique_ptr<GenerationPage> page);
  // REQUIRES: CanLend and HasGenerations.
  Loan Lend(uint32_t index, BorrowerId borrower, TenantIndex tenant);
  // Takes the segment out of use until its borrowers gave it back; then it is `missing`. REQUIRES:
  // it is lent, and has no slot in use.
  void Recall(uint32_t index);
  const SegmentLoans& loans() const { return loans_; }
  std::vector<SegmentRecall> TakeRecalls() { return loans_.TakeRecalls(); }
  // As of SegmentLoans. What they answer is to be destroyed outside the lock.
  std::vector<SegmentLoans::Returned> Return(BorrowerId borrower,
                                             absl::Span<const uint64_t> segments);
  std::vector<SegmentLoans::Returned> ReturnAll(BorrowerId borrower);
  bool Gone(BorrowerId borrower) { return loans_.Gone(borrower); }

  // Change of class, in three steps. The segment has no slot in use, and is not lent. From
  // BeginRemake to FinishRemake nothing is allocated from it.
  //   1. under the lock: takes the old mapping out;
  //   2. outside: the caller destroys it (unmaps) and calls MakeSegment with its SegmentBytes;
  //   3. under the lock: puts the new one in, fresh, and on failure puts in nothing: the pool
  //      shrinks by one segment, which Info shows as `missing`, until a later remake succeeds.
  std::unique_ptr<MemorySegment> BeginRemake(uint32_t index);
  static absl::StatusOr<std::unique_ptr<MemorySegment>> MakeSegment(uint64_t bytes,
                                                                    MemoryPinner* pinner = nullptr);
  void FinishRemake(uint32_t index, std::unique_ptr<MemorySegment> segment);

 private:
  struct Segment;
  HostMemory(std::vector<std::unique_ptr<MemorySegment>> segments, MemoryPinner* pinner);
  void AssignClass(uint32_t index, const SlotClass& slot_class);
  Segment& HeldSegment(SlotRef slot) const;
  static void Raise(Segment* segment, uint32_t slot);
  // The segment is of no class, and nothing is allocated from it.
  std::unique_ptr<MemorySegment> TakeOut(uint32_t index);
  void PutBack(absl::Span<const SegmentLoans::Returned> returned);

  MemoryPinner* const pinner_;
  uint64_t pool_bytes_ = 0;
  uint64_t next_id_ = 1;
  uint64_t used_bytes_ = 0;
  std::vector<std::unique_ptr<Segment>> segments_;
  SegmentLoans loans_;
  std::vector<uint32_t> fresh_;
  // Segments of a class that have a free slot; no entry is empty.
  absl::flat_hash_map<SlotClass, std::vector<uint32_t>> with_free_slots_;
};

}  // namespace cairn::node
