#include "cache_node/tiers/disk/disk_parts.h"

#include "absl/time/time.h"

namespace cairn::node {
namespace {

// Calls on a sound disk end long before.
constexpr absl::Duration kCloseTimeout = absl::Seconds(5);

}  // namespace

void NoteWrite(DiskParts* parts, const absl::Status& status) {
  // What is written needs nothing to be there but the tier's own folders.
  if (absl::IsNotFound(status)) return NoteWrite(parts, absl::UnavailableError(status.message()));
  if (absl::IsUnavailable(status)) parts->write_errors.fetch_add(1, std::memory_order_relaxed);
  parts->health.NoteWrite(status);
}

void NoteRead(DiskParts* parts, const absl::Status& status) {
  if (absl::IsUnavailable(status)) parts->read_errors.fetch_add(1, std::memory_order_relaxed);
  if (absl::IsDataLoss(status)) parts->damaged_records.fetch_add(1, std::memory_order_relaxed);
  parts->health.NoteRead(status);
}

absl::Status ReserveRoom(DiskParts* parts, uint64_t bytes) {
  absl::Status status = parts->files.Reserve(bytes);
  if (status.ok()) return status;
  const uint64_t set_aside = parts->set_aside_bytes.exchange(0);
  if (set_aside == 0) return status;
  if (absl::Status deleted = parts->directory->DeleteSetAside(); !deleted.ok()) {
    parts->set_aside_bytes.store(set_aside);
    return deleted;
  }
  parts->files.Release(set_aside);
  return parts->files.Reserve(bytes);
}

absl::Status WithBallast(DiskParts* parts, absl::FunctionRef<absl::Status()> write) {
  absl::Status status = write();
  if (!absl::IsResourceExhausted(status) || !parts->ballast.Release()) return status;
  // What failed for want of room keeps RocksDB from writing until it is told that there is some.
  if (absl::Status mended = parts->ledger.Mend(kCloseTimeout); !mended.ok()) return mended;
  if (absl::Status mended = parts->payload.Mend(kCloseTimeout); !mended.ok()) return mended;
  return write();
}

}  // namespace cairn::node
