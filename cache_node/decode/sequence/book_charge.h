// BookBudget and BookCharge: what sequences take beside their pages (lengths, tokens, keys, tables)
// is bounded as well. Not thread-safe; the budget outlives its charges.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "common/base/check.h"

namespace cairn::node {

class BookBudget;

// A part of a budget; move-only, given back when destroyed.
class BookCharge {
 public:
  BookCharge() = default;
  BookCharge(BookCharge&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  BookCharge& operator=(BookCharge&& other) noexcept {
    BookCharge old(std::exchange(budget_, std::exchange(other.budget_, nullptr)),
                   std::exchange(bytes_, std::exchange(other.bytes_, 0)));
    return *this;
  }
  inline ~BookCharge();

 private:
  friend class BookBudget;
  BookCharge(BookBudget* budget, uint64_t bytes) : budget_(budget), bytes_(bytes) {}

  BookBudget* budget_ = nullptr;
  uint64_t bytes_ = 0;
};

class BookBudget {
 public:
  explicit BookBudget(uint64_t bytes_max) : bytes_max_(bytes_max) {}
  ~BookBudget() { CAIRN_CHECK(bytes_ == 0); }

  BookBudget(const BookBudget&) = delete;
  BookBudget& operator=(const BookBudget&) = delete;

  // Nothing: they do not fit.
  std::optional<BookCharge> Take(uint64_t bytes) {
    if (bytes > bytes_max_ - bytes_) return std::nullopt;
    bytes_ += bytes;
    return BookCharge(this, bytes);
  }
  uint64_t bytes() const { return bytes_; }
  uint64_t bytes_max() const { return bytes_max_; }

 private:
  friend class BookCharge;

  const uint64_t bytes_max_;
  uint64_t bytes_ = 0;
};

inline BookCharge::~BookCharge() {
  if (budget_ == nullptr) return;
  CAIRN_CHECK(budget_->bytes_ >= bytes_);
  budget_->bytes_ -= bytes_;
}

}  // namespace cairn::node
