// BorrowedBytes: how much of a caller's memory gRPC holds for sending, uncopied.
//
// Each run that is lent has an owner, which gRPC destroys when it has sent the bytes or given them
// up, on a thread of its own, possibly after the call ended. Shared with these owners, because the
// last may go after the client. Thread-safe.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/wire/payload_slice.h"

namespace cairn {

class BorrowedBytes : public std::enable_shared_from_this<BorrowedBytes> {
 public:
  static std::shared_ptr<BorrowedBytes> Make();

  // One run more is lent, until the answer is destroyed.
  std::unique_ptr<PayloadOwner> Borrow() ABSL_LOCKS_EXCLUDED(mutex_);

  size_t runs() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether all have come back within `timeout`.
  bool AwaitNone(absl::Duration timeout) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Owner;
  BorrowedBytes() = default;

  mutable absl::Mutex mutex_;
  size_t runs_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace cairn
