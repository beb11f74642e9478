// DiskParts: what a RocksDbDiskTier and its file builders share. Each part says of itself whether
// it is thread-safe; all are, but for the calls that only opening and mending use.
#pragma once

#include <atomic>
#include <cstdint>

#include "cache_node/tiers/disk/ballast_file.h"
#include "cache_node/tiers/disk/disk_directory.h"
#include "cache_node/tiers/disk/disk_health.h"
#include "cache_node/tiers/disk/file_table.h"
#include "cache_node/tiers/disk/ledger_database.h"
#include "cache_node/tiers/disk/payload_database.h"
#include "cache_node/tiers/disk/rocksdb_options.h"

namespace cairn::node {

struct DiskParts {
  // Room for what must not fail for want of it.
  static constexpr uint64_t kBallastBytes = uint64_t{4} << 20;

  DiskParts(std::unique_ptr<DiskDirectory> dir, const RocksDbSettings& rocksdb, uint64_t bytes_max)
      : directory(std::move(dir)),
        settings(rocksdb),
        ballast(directory->ballast(), kBallastBytes),
        files(bytes_max),
        ledger(directory->ledger(), rocksdb),
        payload(directory->payload(), directory->rebuild(), rocksdb, &files) {}

  const std::unique_ptr<DiskDirectory> directory;
  const RocksDbSettings settings;
  BallastFile ballast;
  FileTable files;
  DiskHealth health;
  LedgerDatabase ledger;
  PayloadDatabase payload;

  std::atomic<uint64_t> set_aside_bytes{0};  // Reserved in `files`.
  std::atomic<uint64_t> written_bytes{0};
  std::atomic<uint64_t> read_bytes{0};
  std::atomic<uint64_t> read_errors{0};
  std::atomic<uint64_t> write_errors{0};
  std::atomic<uint64_t> damaged_records{0};
  std::atomic<uint64_t> damaged_files{0};
};

// Counts what a write or a read met, and lets health know.
void NoteWrite(DiskParts* parts, const absl::Status& status);
void NoteRead(DiskParts* parts, const absl::Status& status);

// Reserves room; what was set aside goes when there is none otherwise.
absl::Status ReserveRoom(DiskParts* parts, uint64_t bytes);

// Runs a small write; when the disk is full, once more with the room of the ballast.
absl::Status WithBallast(DiskParts* parts, absl::FunctionRef<absl::Status()> write);

}  // namespace cairn::node
