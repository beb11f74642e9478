#include "cache_node/spill/disk_recovery.h"

#include <utility>

namespace cairn::node {

absl::Status DiskRecovery::Open() {
  const absl::StatusOr<DiskTier::Ledger> ledger = tier_->ReadLedger();
  if (!ledger.ok()) return ledger.status();
  const DiskTier::Fence mark = store_->RecoverLedger(*ledger);
  absl::Status durable = tier_->PutFence(mark);
  if (durable.ok()) store_->OpenDisk(mark);
  return durable;
}

absl::Status DiskRecovery::Recover(absl::Time wall, const std::function<bool()>& go_on) {
  const int64_t now_ms = absl::ToUnixMillis(wall);
  bool stopped = false;
  const absl::Status status = tier_->Recover([&](DiskTier::RecoveredFile file) {
    if (!go_on()) {
      stopped = true;
      return false;
    }
    for (DiskTier::RecoveredFile::Entry& entry : file.entries) {
      const int64_t expires_ms = entry.block.expires_unix_ms;
      if (expires_ms != 0 && expires_ms <= now_ms) entry.dead = true;
    }
    store_->AddRecovered(file);
    return true;
  });
  if (status.ok() && !stopped) store_->EndRecovery();
  return status;
}

}  // namespace cairn::node
