// RocksDbDiskTier: the DiskTier over RocksDB on one directory.
//
// Two databases: payload (ingested sorted files, nothing else) and ledger (small synced writes), so
// that an error of one is not one of the other. The README says how they are set up, and why.
//
// Contract in disk_tier.h. Thread-safe. Builders must not outlive it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache_node/tiers/disk/disk_parts.h"
#include "cache_node/tiers/disk/disk_tier.h"
#include "rocksdb/file_system.h"

namespace cairn::node {

struct RocksDbDiskTierOptions {
  std::string directory;
  uint64_t bytes_max = 0;  // All that the directory may take on disk.
  // Of the index blocks of payload files; payload itself is not cached.
  uint64_t index_cache_bytes = uint64_t{16} << 20;
  int open_files_max = 1024;
  // What RocksDB does its I/O with; null: the system's.
  std::shared_ptr<rocksdb::FileSystem> file_system;
};

class RocksDbDiskTier final : public DiskTier {
 public:
  // Of bytes_max, for what is no payload file: ledger, manifests, logs, ballast.
  static constexpr uint64_t kOverheadBytes = uint64_t{64} << 20;
  static constexpr uint64_t kBytesMaxLeast = 2 * kOverheadBytes;

  // FAILED_PRECONDITION when the directory is another node's or cannot be used, INVALID_ARGUMENT
  // for a bytes_max under kBytesMaxLeast. A disk that fails is no error: the tier comes up failing,
  // and opens when it is probed.
  static absl::StatusOr<std::unique_ptr<RocksDbDiskTier>> Open(
      const RocksDbDiskTierOptions& options);
  // What it takes in memory at most, with as many builders and reads at a time, of records of up to
  // `record_bytes`.
  static uint64_t MemoryBytesMax(const RocksDbDiskTierOptions& options, int builders, int reads,
                                 uint64_t record_bytes);

  ~RocksDbDiskTier() override;

  absl::StatusOr<std::unique_ptr<DiskFileBuilder>> StartFile() override;
  absl::Status Read(DiskPlace place, const BlockKey& key, absl::Span<uint8_t> payload,
                    DiskRecordFields* fields) override;
  absl::Status DropFile(uint64_t file) override;
  absl::Status Recover(const std::function<bool(RecoveredFile)>& visit) override;
  absl::StatusOr<Ledger> ReadLedger() override;
  absl::Status PutNamespace(const KnownNamespace& known) override;
  absl::Status PutFence(const Fence& fence) override;
  absl::Status PruneFences(uint64_t below, size_t fences_max) override;
  absl::Status MarkDead(absl::Span<const DiskPlace> places) override;
  // bytes_max is that of the options less kOverheadBytes; bytes_used counts reserved room too.
  Stats GetStats() const override;
  absl::Status Probe() override;

 private:
  RocksDbDiskTier(std::unique_ptr<rocksdb::Env> env, std::unique_ptr<DiskParts> parts);

  // Opens what is not open; mends what is.
  absl::Status Load();
  absl::Status OpenParts();
  absl::Status OpenLedger();
  absl::Status ProbeDisk();
  absl::Status RecoverFile(uint64_t file, RecoveredFile* recovered);
  absl::Status SmallWrite(absl::FunctionRef<absl::Status()> write);

  const std::unique_ptr<rocksdb::Env> env_;
  const std::unique_ptr<DiskParts> parts_;
  std::atomic<bool> probing_{false};
  // By the one that probes.
  bool prepared_ = false;
  bool loaded_ = false;
};

}  // namespace cairn::node
