// PeerAbsence: remembers for a moment that a peer was gone, so that not every request finds out
// anew.
//
// Whoever is about to ask the peer asks here first, and says afterwards how it went. While the peer
// is thought gone nobody asks it; when the moment has passed one caller tries, and the others wait
// for what it learns, or for another moment. Thread-safe. It borrows the clock and talks to nobody.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace cairn {

class PeerAbsence {
 public:
  PeerAbsence(const Clock* clock, absl::Duration remembered_for)
      : clock_(clock), remembered_for_(remembered_for) {}

  // False: it was gone a moment ago.
  bool MayAsk() ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::Time now = clock_->SteadyNow();
    absl::MutexLock lock(&mutex_);
    if (now < gone_until_) return false;
    if (gone_until_ != absl::InfinitePast()) gone_until_ = now + remembered_for_;
    return true;
  }

  // It answered, if only to refuse.
  void NoteAnswered() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    gone_until_ = absl::InfinitePast();
  }
  void NoteGone() ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::Time now = clock_->SteadyNow();
    absl::MutexLock lock(&mutex_);
    gone_until_ = now + remembered_for_;
  }

 private:
  const Clock* const clock_;
  const absl::Duration remembered_for_;
  absl::Mutex mutex_;
  absl::Time gone_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // Then: not known gone.
};

}  // namespace cairn
