// DiskHealth: whether a disk tier takes calls, learnt from what its calls met.
//
// Full: writes are refused until something was dropped or a probe went through; reads go on.
// Failing: everything is refused at once, without touching the disk, until a probe goes through. A
// device error of a write makes it failing at once (what must be durable may not be); reads do so
// after kReadErrorsInARowMax, since one bad sector is not a bad disk.
//
// Thread-safe, never blocks on the disk.
#pragma once

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "cache_node/tiers/disk/disk_tier.h"

namespace cairn::node {

class DiskHealth {
 public:
  static constexpr uint32_t kReadErrorsInARowMax = 3;

  using Health = DiskTier::Health;

  // OK, or why not: UNAVAILABLE while failing; RESOURCE_EXHAUSTED while full, which only refuses
  // writes.
  absl::Status AdmitRead() const;
  absl::Status AdmitWrite() const;

  // What a call answered that reached the disk: UNAVAILABLE is a device error, RESOURCE_EXHAUSTED
  // want of room; other errors are of one record and say nothing of the disk.
  void NoteRead(const absl::Status& status);
  void NoteWrite(const absl::Status& status);

  // Room was made: no longer full.
  void NoteRoom();
  // A probe went through: serving.
  void Readmit();

  Health health() const;
  std::string reason() const;  // Empty while serving.

 private:
  void Become(Health health, absl::string_view reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  Health health_ ABSL_GUARDED_BY(mutex_) = Health::kServing;
  std::string reason_ ABSL_GUARDED_BY(mutex_);
  uint32_t read_errors_in_a_row_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace cairn::node
