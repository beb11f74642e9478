#include "cache_node/tiers/segment_loans.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace cairn::node {

uint32_t SegmentLoans::recalls() const {
  uint32_t count = 0;
  for (const auto& [segment, loan] : loans_) {
    if (loan.memory != nullptr && loan.present > 0) ++count;
  }
  return count;
}

SegmentLoans::Counts SegmentLoans::counts() const {
  Counts counts;
  counts.lent_segments = loans_.size();
  for (const auto& [segment, loan] : loans_) {
    if (loan.memory == nullptr) continue;
    (loan.present > 0 ? counts.recalled_bytes : counts.unreturned_bytes) +=
        loan.memory->bytes().size();
  }
  return counts;
}

uint64_t SegmentLoans::AwayFor(TenantIndex tenant) const {
  uint64_t bytes = 0;
  for (const auto& [segment, loan] : loans_) {
    if (loan.memory == nullptr) continue;
    const bool has =
        std::any_of(loan.borrowers.begin(), loan.borrowers.end(),
                    [&](BorrowerId borrower) { return borrowers_.at(borrower).tenant == tenant; });
    if (has) bytes += loan.memory->bytes().size();
  }
  return bytes;
}

void SegmentLoans::Lend(uint64_t segment, BorrowerId borrower, TenantIndex tenant) {
  Borrower& to = borrowers_[borrower];
  CAIRN_CHECK(!to.gone && (to.tenant == 0 || to.tenant == tenant));
  to.tenant = tenant;
  if (!to.segments.insert(segment).second) return;
  Loan& loan = loans_[segment];
  CAIRN_CHECK(loan.memory == nullptr && loan.borrowers.insert(borrower).second);
  ++loan.present;
}

void SegmentLoans::Recall(uint64_t segment, uint32_t index, std::unique_ptr<MemorySegment> memory,
                          std::unique_ptr<GenerationPage> generations) {
  auto it = loans_.find(segment);
  CAIRN_CHECK(it != loans_.end() && it->second.memory == nullptr && memory != nullptr);
  it->second.memory = std::move(memory);
  it->second.generations = std::move(generations);
  it->second.index = index;
  for (const BorrowerId borrower : it->second.borrowers) {
    if (!borrowers_.at(borrower).gone) recalls_.push_back({borrower, segment});
  }
}

std::vector<SegmentRecall> SegmentLoans::TakeRecalls() { return std::exchange(recalls_, {}); }

// The borrower has it no more; its own list is the caller's.
std::optional<SegmentLoans::Returned> SegmentLoans::Take(BorrowerId borrower, const Borrower& from,
                                                         uint64_t segment) {
  auto it = loans_.find(segment);
  CAIRN_CHECK(it != loans_.end() && it->second.borrowers.erase(borrower) == 1);
  if (!from.gone) --it->second.present;
  if (!it->second.borrowers.empty()) return std::nullopt;
  Loan loan = std::move(it->second);
  loans_.erase(it);
  if (loan.memory == nullptr) return std::nullopt;
  return Returned{loan.index, std::move(loan.memory), std::move(loan.generations)};
}

std::vector<SegmentLoans::Returned> SegmentLoans::Return(BorrowerId borrower,
                                                         absl::Span<const uint64_t> segments) {
  std::vector<Returned> returned;
  auto it = borrowers_.find(borrower);
  if (it == borrowers_.end()) return returned;
  for (const uint64_t segment : segments) {
    if (it->second.segments.erase(segment) == 0) continue;
    std::optional<Returned> one = Take(borrower, it->second, segment);
    if (one.has_value()) returned.push_back(*std::move(one));
  }
  if (it->second.segments.empty()) borrowers_.erase(it);
  return returned;
}

std::vector<SegmentLoans::Returned> SegmentLoans::ReturnAll(BorrowerId borrower) {
  auto it = borrowers_.find(borrower);
  if (it == borrowers_.end()) return {};
  const std::vector<uint64_t> all(it->second.segments.begin(), it->second.segments.end());
  return Return(borrower, all);
}

bool SegmentLoans::Gone(BorrowerId borrower) {
  auto it = borrowers_.find(borrower);
  if (it == borrowers_.end()) return false;
  if (std::exchange(it->second.gone, true)) return true;
  for (const uint64_t segment : it->second.segments) --loans_.at(segment).present;
  return true;
}

}  // namespace cairn::node
