// LedgerDatabase: what the disk tier never forgets, in a small RocksDB database of its own.
//
// Apart from the payload's, so that no error there touches it. A write is durable when it has
// answered OK. What is there is read and checked when it is opened; a ledger that is damaged or
// incomplete is DATA_LOSS then, since fences may be missing: the payload must go with it.
//
// Thread-safe, but Open is for one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "cache_node/tiers/disk/disk_tier.h"
#include "cache_node/tiers/disk/rocks_database.h"
#include "cache_node/tiers/disk/rocksdb_options.h"

namespace rocksdb {
class WriteBatch;
}

namespace cairn::node {

class LedgerDatabase {
 public:
  // File numbers are taken from ranges, of which only the end is written.
  static constexpr uint64_t kFileNumbersPerRange = 1024;

  LedgerDatabase(std::string path, const RocksDbSettings& settings);

  // `identity`: of the directory. A ledger of another, or of none, is DATA_LOSS; an empty one takes
  // it over when `is_new`.
  absl::Status Open(const std::string& identity, bool is_new);
  absl::Status Mend(absl::Duration timeout) { return db_.ResumeOrClose(timeout); }
  absl::Status Close(absl::Duration timeout) { return db_.Close(timeout); }
  const std::string& path() const { return db_.path(); }

  absl::StatusOr<DiskTier::Ledger> Read();
  absl::Status PutNamespace(const DiskTier::KnownNamespace& known);
  // A fence never goes back: the higher sequence and epoch stay.
  absl::Status PutFence(const DiskTier::Fence& fence);
  // As DiskTier says. Reads all fences.
  absl::Status PruneFences(uint64_t below, size_t fences_max);
  absl::Status MarkDead(absl::Span<const DiskPlace> places);
  // Slots of the file that are marked, rising.
  absl::StatusOr<std::vector<uint32_t>> DeadOf(uint64_t file);
  // The file is gone for good. Need not be durable: its number is not used again.
  absl::Status ForgetDeadOf(uint64_t file);
  // The same for all files that `is_there` denies.
  absl::Status ForgetDeadUnless(absl::FunctionRef<bool(uint64_t)> is_there);
  // A number that was never given before. Mostly without I/O.
  absl::StatusOr<uint64_t> TakeFileNumber();
  // A write like any other.
  absl::Status Probe();

 private:
  // While it lives no other one does: for what reads and then writes.
  class Turn;

  absl::Status Check(rocksdb::DB* db, const std::string& identity, bool is_new);
  absl::Status RaiseToKept(DiskTier::Fence* fence);
  absl::Status Write(rocksdb::WriteBatch* batch);

  RocksDatabase db_;

  absl::Mutex mutex_;
  bool turn_taken_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_file_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t file_limit_ ABSL_GUARDED_BY(mutex_) = 0;  // Durable.
};

}  // namespace cairn::node
