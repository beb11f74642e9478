#include "tests/cache_node/tiers/disk/disk_tier_driver.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/cache_node/tiers/disk/numbered_record.h"

namespace cairn::testing {

using node::DiskPlace;
using node::DiskTier;

DiskTierDriver::DiskTierDriver(DiskTier* tier, uint64_t seed, uint64_t first, Say say)
    : tier_(tier), random_(seed), number_(first), say_(std::move(say)) {}

absl::Status DiskTierDriver::Recover() {
  return tier_->Recover([this](DiskTier::RecoveredFile file) {
    files_.push_back(file.file);
    return true;
  });
}

absl::Status DiskTierDriver::Step() {
  if (files_.size() > kFilesMax) return Drop();
  const uint64_t choice = random_() % 10;
  if (choice < 5 || files_.empty()) return WriteFile(/*finish=*/choice < 4);
  if (choice < 7) return Mark();
  if (choice < 8) return Fence();
  return Drop();
}

absl::Status DiskTierDriver::WriteFile(bool finish) {
  auto builder = tier_->StartFile();
  if (!builder.ok()) return builder.status();
  const uint64_t count = 1 + random_() % 20;
  const uint64_t file = (*builder)->file();
  say_(absl::StrCat("begin ", file, " ", number_, " ", count));
  for (uint64_t i = 0; i < count; ++i) {
    const NumberedRecord record(number_++, kPayloadBytes);
    const absl::StatusOr<DiskPlace> place = (*builder)->Add(record.record());
    if (!place.ok()) return place.status();
  }
  if (!finish) return absl::OkStatus();
  if (absl::Status status = (*builder)->Finish(); !status.ok()) return status;
  say_(absl::StrCat("finished ", file));
  files_.push_back(file);
  return absl::OkStatus();
}

absl::Status DiskTierDriver::Mark() {
  const DiskPlace place{files_[random_() % files_.size()], 0};
  say_(absl::StrCat("marking ", place.file, " ", place.slot));
  if (absl::Status status = tier_->MarkDead({{place}}); !status.ok()) return status;
  say_(absl::StrCat("marked ", place.file, " ", place.slot));
  return absl::OkStatus();
}

absl::Status DiskTierDriver::Fence() {
  DiskTier::Fence fence;
  fence.sequence = number_;
  say_(absl::StrCat("fencing ", number_));
  if (absl::Status status = tier_->PutFence(fence); !status.ok()) return status;
  say_(absl::StrCat("fenced ", number_));
  return absl::OkStatus();
}

absl::Status DiskTierDriver::Drop() {
  const size_t index = random_() % files_.size();
  say_(absl::StrCat("dropping ", files_[index]));
  if (absl::Status status = tier_->DropFile(files_[index]); !status.ok()) return status;
  say_(absl::StrCat("dropped ", files_[index]));
  files_.erase(files_.begin() + static_cast<std::ptrdiff_t>(index));
  return absl::OkStatus();
}

}  // namespace cairn::testing
