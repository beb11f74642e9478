#include "cache_node/tiers/host_memory.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

constexpr uint64_t kSlotAlignmentBytes = 64;

}  // namespace

// Slots [0, generations.size()) were given out at least once since the segment got its class; those
// of them that are not held are in `free`. Higher ones were never touched, so that a class of small
// slots costs nothing until they are used.
struct HostMemory::Segment {
  uint64_t bytes = 0;  // Also while no memory is behind it.
  std::unique_ptr<MemorySegment> memory;
  std::unique_ptr<GenerationPage> page;  // Once it was lent, as long as it is of this class.
  bool away = false;
  uint64_t id = 0;
  SlotClass slot_class;
  uint32_t slots = 0;
  uint32_t slots_used = 0;
  bool in_remake = false;
  std::vector<uint32_t> free;
  std::vector<uint64_t> generations;
  std::vector<bool> held;
  uint64_t generation_min = 0;  // Above every generation that a slot had before the last remake.
  uint64_t generation_max = 0;  // Highest so far.

  bool HasFreeSlot() const { return slots_used < slots; }
};

absl::StatusOr<std::unique_ptr<HostMemory>> HostMemory::Create(uint64_t pool_bytes,
                                                               MemoryPinner* pinner) {
  const uint64_t page_bytes = MemorySegment::PageBytes();
  const uint64_t bytes_min = kSegmentsAtLeast * page_bytes;
  if (pool_bytes < bytes_min) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a host pool of ", pool_bytes, " bytes is too small: give at least ", bytes_min, " bytes"));
  }
  const uint64_t pages = pool_bytes / page_bytes;
  const uint64_t count = std::max<uint64_t>(
      kSegmentsAtLeast, (pages * page_bytes + kSegmentBytesMax - 1) / kSegmentBytesMax);
  if (count > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a host pool of ", pool_bytes, " bytes has too many memory segments"));
  }
  std::vector<std::unique_ptr<MemorySegment>> segments;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t segment_pages = pages / count + (i < pages % count ? 1 : 0);
    absl::StatusOr<std::unique_ptr<MemorySegment>> segment =
        MakeSegment(segment_pages * page_bytes, pinner);
    if (!segment.ok()) {
      return absl::Status(segment.status().code(),
                          absl::StrCat("host pool of ", pool_bytes, " bytes, memory segment ",
                                       i + 1, " of ", count, ": ", segment.status().message()));
    }
    segments.push_back(*std::move(segment));
  }
  return std::unique_ptr<HostMemory>(new HostMemory(std::move(segments), pinner));
}

HostMemory::HostMemory(std::vector<std::unique_ptr<MemorySegment>> segments, MemoryPinner* pinner)
    : pinner_(pinner) {
  for (std::unique_ptr<MemorySegment>& memory : segments) {
    auto segment = std::make_unique<Segment>();
    segment->bytes = memory->bytes().size();
    segment->memory = std::move(memory);
    segment->id = next_id_++;
    pool_bytes_ += segment->bytes;
    segments_.push_back(std::move(segment));
  }
  // The last is taken first; the pool fills from its start.
  for (uint32_t i = segment_count(); i > 0; --i) fresh_.push_back(i - 1);
}

HostMemory::~HostMemory() = default;

uint64_t HostMemory::pool_bytes() const { return pool_bytes_; }

uint64_t HostMemory::slot_bytes_max() const { return segments_.back()->bytes; }

uint64_t HostMemory::SegmentBytes(uint32_t index) const {
  CAIRN_CHECK(index < segments_.size());
  return segments_[index]->bytes;
}

uint32_t HostMemory::segment_count() const { return static_cast<uint32_t>(segments_.size()); }

uint64_t HostMemory::used_bytes() const { return used_bytes_; }

std::optional<SlotRef> HostMemory::Allocate(const SlotClass& slot_class) {
  CAIRN_CHECK(slot_class.tenant != 0);
  CAIRN_CHECK(slot_class.slot_bytes > 0 && slot_class.slot_bytes % kSlotAlignmentBytes == 0);
  if (slot_class.slot_bytes > slot_bytes_max()) return std::nullopt;
  auto entry = with_free_slots_.find(slot_class);
  if (entry == with_free_slots_.end()) {
    if (fresh_.empty()) return std::nullopt;
    const uint32_t index = fresh_.back();
    fresh_.pop_back();
    AssignClass(index, slot_class);
    entry = with_free_slots_.emplace(slot_class, std::vector<uint32_t>{index}).first;
  }
  const uint32_t index = entry->second.back();
  Segment& segment = *segments_[index];
  CAIRN_CHECK(segment.HasFreeSlot() && !segment.in_remake && segment.slot_class == slot_class);

  uint32_t slot = 0;
  if (segment.free.empty()) {
    slot = static_cast<uint32_t>(segment.generations.size());
    segment.generations.push_back(segment.generation_min);
    segment.held.push_back(true);
  } else {
    slot = segment.free.back();
    segment.free.pop_back();
    CAIRN_CHECK(!segment.held[slot]);
    segment.held[slot] = true;
  }
  CAIRN_CHECK(slot < segment.slots);
  ++segment.slots_used;
  used_bytes_ += slot_class.slot_bytes;
  if (!segment.HasFreeSlot()) {
    entry->second.pop_back();
    if (entry->second.empty()) with_free_slots_.erase(entry);
  }
  return SlotRef{index, slot};
}

void HostMemory::Free(SlotRef slot) {
  Segment& segment = HeldSegment(slot);
  if (!segment.HasFreeSlot()) with_free_slots_[segment.slot_class].push_back(slot.segment);
  segment.held[slot.slot] = false;
  segment.free.push_back(slot.slot);
  Raise(&segment, slot.slot);
  CAIRN_CHECK(segment.slots_used > 0 && used_bytes_ >= segment.slot_class.slot_bytes);
  --segment.slots_used;
  used_bytes_ -= segment.slot_class.slot_bytes;
}

void HostMemory::Raise(Segment* segment, uint32_t slot) {
  const uint64_t generation = ++segment->generations[slot];
  segment->generation_max = std::max(segment->generation_max, generation);
  if (segment->page != nullptr) segment->page->Raise(slot, generation);
}

void HostMemory::Revoke(SlotRef slot) { Raise(&HeldSegment(slot), slot.slot); }

absl::Span<uint8_t> HostMemory::Bytes(SlotRef slot) const {
  const Segment& segment = HeldSegment(slot);
  const uint64_t slot_bytes = segment.slot_class.slot_bytes;
  return segment.memory->bytes().subspan(slot.slot * slot_bytes, slot_bytes);
}

uint64_t HostMemory::Generation(SlotRef slot) const {
  CAIRN_CHECK(slot.segment < segments_.size());
  const Segment& segment = *segments_[slot.segment];
  return slot.slot < segment.generations.size() ? segment.generations[slot.slot]
                                                : segment.generation_min;
}

HostMemory::SegmentInfo HostMemory::Info(uint32_t index) const {
  CAIRN_CHECK(index < segments_.size());
  const Segment& segment = *segments_[index];
  SegmentInfo info;
  info.index = index;
  info.id = segment.id;
  info.slot_class = segment.slot_class;
  info.slots = segment.slots;
  info.slots_used = segment.slots_used;
  info.in_remake = segment.in_remake;
  info.lent = loans_.IsLent(segment.id);
  info.away = segment.away;
  info.missing = segment.memory == nullptr && !segment.in_remake && !segment.away;
  return info;
}

std::unique_ptr<MemorySegment> HostMemory::TakeOut(uint32_t index) {
  CAIRN_CHECK(index < segments_.size());
  Segment& segment = *segments_[index];
  CAIRN_CHECK(!segment.in_remake && !segment.away && segment.slots_used == 0);
  if (segment.memory == nullptr) {
    pool_bytes_ += segment.bytes;
  } else if (segment.slots == 0) {
    CAIRN_CHECK(std::erase(fresh_, index) == 1);
  } else {
    auto entry = with_free_slots_.find(segment.slot_class);
    CAIRN_CHECK(entry != with_free_slots_.end() && std::erase(entry->second, index) == 1);
    if (entry->second.empty()) with_free_slots_.erase(entry);
  }
  segment.slot_class = {};
  segment.slots = 0;
  segment.free = {};
  segment.generations = {};
  segment.held = {};
  segment.generation_min = ++segment.generation_max;
  return std::move(segment.memory);
}

std::unique_ptr<MemorySegment> HostMemory::BeginRemake(uint32_t index) {
  CAIRN_CHECK(index < segments_.size() && !loans_.IsLent(segments_[index]->id));
  std::unique_ptr<MemorySegment> memory = TakeOut(index);
  segments_[index]->in_remake = true;
  segments_[index]->page = nullptr;
  return memory;
}

bool HostMemory::CanLend(uint32_t index, uint64_t id) const {
  if (index >= segments_.size()) return false;
  const Segment& segment = *segments_[index];
  return segment.id == id && segment.memory != nullptr && segment.slots > 0 &&
         segment.slot_class.slot_bytes >= kLentSlotBytesMin;
}

bool HostMemory::HasGenerations(uint32_t index) const {
  CAIRN_CHECK(index < segments_.size());
  return segments_[index]->page != nullptr;
}

void HostMemory::GiveGenerations(uint32_t index, std::unique_ptr<GenerationPage> page) {
  CAIRN_CHECK(index < segments_.size() && page != nullptr);
  Segment& segment = *segments_[index];
  CAIRN_CHECK(segment.slots > 0 && segment.page == nullptr &&
              page->memory().bytes().size() >= GenerationPage::BytesFor(segment.slots));
  segment.page = std::move(page);
  for (uint32_t slot = 0; slot < segment.slots; ++slot) {
    segment.page->Raise(slot, Generation({index, slot}));
  }
}

HostMemory::Loan HostMemory::Lend(uint32_t index, BorrowerId borrower, TenantIndex tenant) {
  CAIRN_CHECK(index < segments_.size());
  const Segment& segment = *segments_[index];
  CAIRN_CHECK(CanLend(index, segment.id) && segment.page != nullptr);
  loans_.Lend(segment.id, borrower, tenant);
  return {.slot_class = segment.slot_class,
          .slots = segment.slots,
          .memory = segment.memory.get(),
          .generations = &segment.page->memory()};
}

void HostMemory::Recall(uint32_t index) {
  CAIRN_CHECK(index < segments_.size() && loans_.IsLent(segments_[index]->id));
  Segment& segment = *segments_[index];
  std::unique_ptr<MemorySegment> memory = TakeOut(index);
  CAIRN_CHECK(memory != nullptr && pool_bytes_ >= segment.bytes);
  loans_.Recall(segment.id, index, std::move(memory), std::move(segment.page));
  segment.away = true;
  pool_bytes_ -= segment.bytes;
}

std::vector<SegmentLoans::Returned> HostMemory::Return(BorrowerId borrower,
                                                       absl::Span<const uint64_t> segments) {
  std::vector<SegmentLoans::Returned> returned = loans_.Return(borrower, segments);
  PutBack(returned);
  return returned;
}

std::vector<SegmentLoans::Returned> HostMemory::ReturnAll(BorrowerId borrower) {
  std::vector<SegmentLoans::Returned> returned = loans_.ReturnAll(borrower);
  PutBack(returned);
  return returned;
}

// Nobody maps their old memory any more: it may be made anew.
void HostMemory::PutBack(absl::Span<const SegmentLoans::Returned> returned) {
  for (const SegmentLoans::Returned& one : returned) {
    CAIRN_CHECK(one.index < segments_.size() && segments_[one.index]->away);
    segments_[one.index]->away = false;
  }
}

absl::StatusOr<std::unique_ptr<MemorySegment>> HostMemory::MakeSegment(uint64_t bytes,
                                                                       MemoryPinner* pinner) {
  absl::StatusOr<std::unique_ptr<MemorySegment>> made = MemorySegment::Make(bytes);
  if (made.ok() && pinner != nullptr) (*made)->PinBy(pinner);
  return made;
}

void HostMemory::FinishRemake(uint32_t index, std::unique_ptr<MemorySegment> memory) {
  CAIRN_CHECK(index < segments_.size());
  Segment& segment = *segments_[index];
  CAIRN_CHECK(segment.in_remake && segment.memory == nullptr);
  segment.in_remake = false;
  if (memory == nullptr) {
    CAIRN_CHECK(pool_bytes_ >= segment.bytes);
    pool_bytes_ -= segment.bytes;
    return;
  }
  CAIRN_CHECK(memory->bytes().size() == segment.bytes);
  segment.memory = std::move(memory);
  segment.id = next_id_++;
  fresh_.push_back(index);
}

void HostMemory::AssignClass(uint32_t index, const SlotClass& slot_class) {
  Segment& segment = *segments_[index];
  CAIRN_CHECK(segment.memory != nullptr && segment.slots == 0 && segment.generations.empty());
  const uint64_t slots = segment.bytes / slot_class.slot_bytes;
  CAIRN_CHECK(slots > 0 && slots <= std::numeric_limits<uint32_t>::max());
  segment.slot_class = slot_class;
  segment.slots = static_cast<uint32_t>(slots);
}

// The segment of a slot that somebody holds.
HostMemory::Segment& HostMemory::HeldSegment(SlotRef slot) const {
  CAIRN_CHECK(slot.segment < segments_.size());
  Segment& segment = *segments_[slot.segment];
  CAIRN_CHECK(slot.slot < segment.held.size() && segment.held[slot.slot]);
  return segment;
}

}  // namespace cairn::node
