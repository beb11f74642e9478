// How the two databases of the disk tier are set up. The README says why, with numbers.
#pragma once

#include <cstdint>
#include <memory>

#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/sst_file_writer.h"

namespace cairn::node {

struct RocksDbSettings {
  rocksdb::Env* env = nullptr;  // Must outlive what is opened with it.
  bool direct_io = true;
  uint64_t index_cache_bytes = uint64_t{16} << 20;  // Of index blocks; payload is not cached.
  int open_files_max = 1024;
};

// What a file being built collects before it writes: each write is waited for.
inline constexpr uint64_t kFileBufferBytes = uint64_t{4} << 20;

// Bounds of what the databases take on disk beside payload files.
inline constexpr uint64_t kPayloadManifestBytesMax = uint64_t{8} << 20;
inline constexpr uint64_t kLedgerManifestBytesMax = uint64_t{1} << 20;
inline constexpr uint64_t kLedgerMemtableBytes = uint64_t{2} << 20;

// Of sorted files that are built whole and ingested: no compaction, nothing in the memtable.
rocksdb::Options PayloadOptions(const RocksDbSettings& settings);
// Of a few small keys, each synced when written.
rocksdb::Options LedgerOptions(const RocksDbSettings& settings);
// For SstFileWriter: the files of PayloadOptions, whose blocks hold `record_bytes` of key and value
// without growing. A record as large as that gets a block of its own.
rocksdb::Options PayloadFileOptions(const RocksDbSettings& settings, uint64_t record_bytes);
rocksdb::EnvOptions FileWriterOptions(const RocksDbSettings& settings);
rocksdb::IngestExternalFileOptions IngestOptions();
rocksdb::ReadOptions RecordReadOptions();

}  // namespace cairn::node
