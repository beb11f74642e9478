// StagingArea: staging memory of one connection, and its share of what all may have.
//
// StagingBudget bounds the sum over all connections (thread-safe). An area is made by the node,
// sealed against resizing, and written by the client whenever it likes: what is read from it is
// never read twice.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cache_node/store/block_store.h"
#include "cache_node/tiers/memory_segment.h"

namespace cairn::node {

class StagingBudget {
 public:
  explicit StagingBudget(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  uint64_t bytes_max() const { return bytes_max_; }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  bool TryTake(uint64_t bytes);
  void GiveBack(uint64_t bytes) { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  const uint64_t bytes_max_;
  std::atomic<uint64_t> bytes_{0};
};

class StagingArea {
 public:
  // Charged to the tenant under the borrower's name, rounded up to pages. RESOURCE_EXHAUSTED with a
  // retry delay when the budget or the tenant's quota has no room. Borrows both.
  static absl::StatusOr<std::unique_ptr<StagingArea>> Make(BlockStore* store, StagingBudget* budget,
                                                           absl::string_view tenant,
                                                           BorrowerId borrower, uint64_t bytes);
  ~StagingArea();

  StagingArea(const StagingArea&) = delete;
  StagingArea& operator=(const StagingArea&) = delete;

  // To be passed to the client.
  int fd() const { return memory_->fd(); }
  absl::Span<const uint8_t> bytes() const { return memory_->bytes(); }

 private:
  StagingArea(BlockStore* store, StagingBudget* budget, BorrowerId borrower, uint64_t bytes)
      : store_(store), budget_(budget), borrower_(borrower), taken_bytes_(bytes) {}

  BlockStore* const store_;
  StagingBudget* const budget_;
  const BorrowerId borrower_;
  const uint64_t taken_bytes_;
  std::unique_ptr<MemorySegment> memory_;
};

}  // namespace cairn::node
