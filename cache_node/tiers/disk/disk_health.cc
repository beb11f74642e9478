#include "cache_node/tiers/disk/disk_health.h"

#include "absl/strings/str_cat.h"

namespace cairn::node {

absl::Status DiskHealth::AdmitRead() const {
  absl::MutexLock lock(&mutex_);
  if (health_ != Health::kFailing) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the disk tier is taken out: ", reason_));
}

absl::Status DiskHealth::AdmitWrite() const {
  absl::MutexLock lock(&mutex_);
  if (health_ == Health::kServing) return absl::OkStatus();
  if (health_ == Health::kFull) {
    return absl::ResourceExhaustedError(absl::StrCat("the disk tier is full: ", reason_));
  }
  return absl::UnavailableError(absl::StrCat("the disk tier is taken out: ", reason_));
}

void DiskHealth::NoteRead(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (!absl::IsUnavailable(status)) {
    if (status.ok()) read_errors_in_a_row_ = 0;
    return;
  }
  if (++read_errors_in_a_row_ >= kReadErrorsInARowMax) Become(Health::kFailing, status.message());
}

void DiskHealth::NoteWrite(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (absl::IsUnavailable(status)) {
    Become(Health::kFailing, status.message());
  } else if (absl::IsResourceExhausted(status) && health_ != Health::kFailing) {
    Become(Health::kFull, status.message());
  }
}

void DiskHealth::NoteRoom() {
  absl::MutexLock lock(&mutex_);
  if (health_ == Health::kFull) Become(Health::kServing, {});
}

void DiskHealth::Readmit() {
  absl::MutexLock lock(&mutex_);
  Become(Health::kServing, {});
}

DiskTier::Health DiskHealth::health() const {
  absl::MutexLock lock(&mutex_);
  return health_;
}

std::string DiskHealth::reason() const {
  absl::MutexLock lock(&mutex_);
  return reason_;
}

// The first reason stays: what follows are its consequences.
void DiskHealth::Become(Health health, absl::string_view reason) {
  if (health_ == health) return;
  health_ = health;
  reason_ = std::string(reason);
  read_errors_in_a_row_ = 0;
}

}  // namespace cairn::node
