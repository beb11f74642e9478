#include "client/cpp/borrowed_bytes.h"

#include <utility>

#include "common/base/check.h"

namespace cairn {

class BorrowedBytes::Owner final : public PayloadOwner {
 public:
  explicit Owner(std::shared_ptr<BorrowedBytes> lender) : lender_(std::move(lender)) {}
  ~Owner() override {
    absl::MutexLock lock(&lender_->mutex_);
    CAIRN_CHECK(lender_->runs_ > 0);
    --lender_->runs_;
  }

 private:
  const std::shared_ptr<BorrowedBytes> lender_;
};

std::shared_ptr<BorrowedBytes> BorrowedBytes::Make() {
  return std::shared_ptr<BorrowedBytes>(new BorrowedBytes());
}

std::unique_ptr<PayloadOwner> BorrowedBytes::Borrow() {
  absl::MutexLock lock(&mutex_);
  ++runs_;
  return std::make_unique<Owner>(shared_from_this());
}

size_t BorrowedBytes::runs() const {
  absl::MutexLock lock(&mutex_);
  return runs_;
}

bool BorrowedBytes::AwaitNone(absl::Duration timeout) const {
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(
                                     +[](const size_t* runs) { return *runs == 0; }, &runs_),
                                 timeout);
}

}  // namespace cairn
