#include "cache_node/local/staging_area.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/local/local_limits.h"
#include "common/rpc/retry_status.h"

namespace cairn::node {
namespace {

constexpr absl::Duration kRetryAfter = absl::Milliseconds(200);

absl::Status NoRoom(uint64_t bytes, absl::string_view why) {
  return WithRetryAfter(
      absl::ResourceExhaustedError(absl::StrCat("staging memory of ", bytes, " bytes: ", why)),
      kRetryAfter);
}

}  // namespace

bool StagingBudget::TryTake(uint64_t bytes) {
  uint64_t now = bytes_.load(std::memory_order_relaxed);
  do {
    if (now > bytes_max_ || bytes > bytes_max_ - now) return false;
  } while (!bytes_.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed));
  return true;
}

absl::StatusOr<std::unique_ptr<StagingArea>> StagingArea::Make(BlockStore* store,
                                                               StagingBudget* budget,
                                                               absl::string_view tenant,
                                                               BorrowerId borrower,
                                                               uint64_t bytes) {
  if (bytes == 0 || bytes > kLocalStagingBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("staging memory of ", bytes, " bytes; give 1 to ", kLocalStagingBytesMax));
  }
  const uint64_t page_bytes = MemorySegment::PageBytes();
  const uint64_t whole_pages = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  if (!budget->TryTake(whole_pages)) {
    return NoRoom(bytes, absl::StrCat("all connections together have ", budget->bytes(), " of ",
                                      budget->bytes_max(), " (--local-staging-memory)"));
  }
  // Gives back what it took from here on.
  auto area = std::unique_ptr<StagingArea>(new StagingArea(store, budget, borrower, whole_pages));
  if (!store->ChargeStaging(tenant, borrower, whole_pages)) {
    return NoRoom(bytes, "more than the tenant may have");
  }
  absl::StatusOr<std::unique_ptr<MemorySegment>> memory =
      MemorySegment::Make(whole_pages, MemorySegment::Writers::kAnyHolder);
  if (!memory.ok()) return memory.status();
  area->memory_ = *std::move(memory);
  return area;
}

StagingArea::~StagingArea() {
  // The client may keep it mapped; that is no memory of the node's any more.
  if (memory_ != nullptr) memory_->FreePages();
  memory_ = nullptr;
  store_->EndStaging(borrower_);
  budget_->GiveBack(taken_bytes_);
}

}  // namespace cairn::node
