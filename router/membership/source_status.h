// SourceStatus: what a source of membership can say of itself, kept for whoever asks. Thread-safe.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "router/membership/member_source.h"

namespace cairn::router {

class SourceStatus {
 public:
  SourceStatus() { status_.last = absl::UnavailableError("not asked yet"); }

  void NoteAsked() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    ++status_.asked;
  }
  void NoteOk() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    status_.last = absl::OkStatus();
  }
  void NoteFailure(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    ++status_.failed;
    status_.last = why;
  }
  MemberSource::Status Get() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return status_;
  }

 private:
  mutable absl::Mutex mutex_;
  MemberSource::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::router
