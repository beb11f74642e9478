// BlockStore: readers of this host, who map memory segments.
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_node/store/block_store.h"
#include "cache_node/store/in_place_operations.h"
#include "cache_node/store/run_steps.h"
#include "cache_node/store/store_state.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

// Of the pool, that may be away because one tenant's clients have it, before it is lent no more.
constexpr uint64_t kAwayShare = 4;

absl::Status NotLent(uint64_t id) {
  return absl::UnavailableError(absl::StrCat("memory segment ", id, " cannot be lent now"));
}

}  // namespace

LentSegment& LentSegment::operator=(LentSegment&& other) noexcept {
  std::swap(id, other.id);
  std::swap(bytes, other.bytes);
  std::swap(slot_bytes, other.slot_bytes);
  std::swap(slots, other.slots);
  std::swap(memory_fd, other.memory_fd);
  std::swap(generations_fd, other.generations_fd);
  return *this;
}

LentSegment::~LentSegment() {
  if (memory_fd >= 0) close(memory_fd);
  if (generations_fd >= 0) close(generations_fd);
}

absl::StatusOr<InPlaceAnswer> BlockStore::ReadInPlace(absl::string_view tenant,
                                                      const LeaseId& lease, uint32_t reader,
                                                      absl::Span<const BlockKey> keys,
                                                      size_t digests_max, bool hold) {
  if (keys.size() > kStepsPerLock) {
    return absl::InvalidArgumentError(
        absl::StrCat(keys.size(), " blocks to read in place, at most ", kStepsPerLock, " at once"));
  }
  const absl::Time now = time_->Now();
  Section section(this);
  return ReadShareInPlace(&*state_, tenant, lease, reader, keys, digests_max, hold, now);
}

void BlockStore::CloseShare(absl::string_view tenant, const LeaseId& lease, uint32_t reader) {
  {
    const absl::Time now = time_->Now();
    Section section(this);
    cairn::node::CloseShare(&*state_, tenant, lease, reader, now);
  }
  RunChores();
}

absl::StatusOr<LentSegment> BlockStore::LendSegment(absl::string_view tenant,
                                                    const InPlaceBlock& block,
                                                    BorrowerId borrower) {
  std::unique_ptr<GenerationPage> page;
  uint64_t page_bytes = 0;
  HostMemory::Loan loan;
  while (loan.memory == nullptr) {
    if (page_bytes > 0) {
      // Made outside the lock, for the slots that the segment had then.
      absl::StatusOr<std::unique_ptr<MemorySegment>> made = MemorySegment::Make(page_bytes);
      if (!made.ok()) return made.status();
      page = std::make_unique<GenerationPage>(*std::move(made));
    }
    Section section(this);
    HostMemory& memory = state_->slots.memory();
    // Memory that its clients do not give back is everybody's pool: it gets no more of it.
    const TenantIndex borrowing = state_->ledger.IndexOf(tenant);
    if (memory.loans().AwayFor(borrowing) > memory.pool_bytes() / kAwayShare) {
      return NotLent(block.segment_id);
    }
    if (!memory.CanLend(block.segment_index, block.segment_id)) return NotLent(block.segment_id);
    const HostMemory::SegmentInfo info = memory.Info(block.segment_index);
    // Its blocks were found by this tenant, so they are its own, or public.
    CAIRN_CHECK(info.slot_class.tenant == borrowing ||
                info.slot_class.tenant == state_->ledger.Find(kPublicTenant));
    if (!memory.HasGenerations(block.segment_index)) {
      page_bytes = GenerationPage::BytesFor(info.slots);
      if (page == nullptr || page->memory().bytes().size() != page_bytes) continue;
      memory.GiveGenerations(block.segment_index, std::move(page));
    }
    loan = memory.Lend(block.segment_index, borrower, borrowing);
  }
  LentSegment lent;
  lent.id = block.segment_id;
  lent.bytes = loan.memory->bytes().size();
  lent.slot_bytes = loan.slot_class.slot_bytes;
  lent.slots = loan.slots;
  // The memory stays as long as the borrower has it.
  lent.memory_fd = loan.memory->OpenForReading();
  lent.generations_fd = loan.generations->OpenForReading();
  if (lent.memory_fd >= 0 && lent.generations_fd >= 0) return lent;
  ReturnSegments(borrower, {&block.segment_id, 1});
  return NotLent(block.segment_id);
}

void BlockStore::ReturnSegments(BorrowerId borrower, absl::Span<const uint64_t> segments) {
  std::vector<SegmentLoans::Returned> returned;  // Unmapped after the lock.
  Section section(this);
  returned = state_->slots.memory().Return(borrower, segments);
}

void BlockStore::ReturnAllSegments(BorrowerId borrower) {
  std::vector<SegmentLoans::Returned> returned;
  Section section(this);
  returned = state_->slots.memory().ReturnAll(borrower);
}

bool BlockStore::BorrowerGone(BorrowerId borrower) {
  Section section(this);
  return state_->slots.memory().Gone(borrower);
}

std::vector<SegmentRecall> BlockStore::TakeRecalls() {
  Section section(this);
  return state_->slots.memory().TakeRecalls();
}

SegmentLoans::Counts BlockStore::Loans() const {
  absl::ReaderMutexLock lock(&mutex_);
  return static_cast<const StoreState&>(*state_).slots.memory().loans().counts();
}

}  // namespace cairn::node
