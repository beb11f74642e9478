#include "cache_node/tiers/disk/rocksdb_options.h"

#include <algorithm>

#include "cache_node/tiers/disk/silent_logger.h"
#include "rocksdb/cache.h"
#include "rocksdb/table.h"

namespace cairn::node {
namespace {

constexpr size_t kBlockBytes = 4096;
// More than a block of one record adds to it: lengths, restart points, an index of hashes.
constexpr uint64_t kBlockOverheadBytes = 128;
constexpr size_t kPayloadMemtableBytes = size_t{64} << 10;
constexpr size_t kPreallocatedManifestBytes = size_t{64} << 10;

rocksdb::Options CommonOptions(const RocksDbSettings& settings) {
  rocksdb::Options options;
  options.env = settings.env;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  options.max_background_jobs = 2;
  options.max_bgerror_resume_count = 0;  // The tier mends when it is probed, not behind its back.
  options.info_log = std::make_shared<SilentLogger>();
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.manifest_preallocation_size = kPreallocatedManifestBytes;
  return options;
}

rocksdb::BlockBasedTableOptions TableOptions() {
  rocksdb::BlockBasedTableOptions table;
  table.block_size = kBlockBytes;  // Larger records get a block each.
  table.checksum = rocksdb::kXXH3;
  table.format_version = 5;
  return table;
}

}  // namespace

rocksdb::Options PayloadOptions(const RocksDbSettings& settings) {
  rocksdb::Options options = CommonOptions(settings);
  options.disable_auto_compactions = true;
  options.num_levels = 2;
  options.write_buffer_size = kPayloadMemtableBytes;
  options.max_manifest_file_size = kPayloadManifestBytesMax;
  options.max_open_files = settings.open_files_max;
  options.use_direct_reads = settings.direct_io;
  options.skip_stats_update_on_db_open = true;  // It would open many files.
  rocksdb::BlockBasedTableOptions table = TableOptions();
  table.block_cache = rocksdb::NewLRUCache(settings.index_cache_bytes, /*num_shard_bits=*/2);
  table.cache_index_and_filter_blocks = true;  // So that they are bounded.
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

rocksdb::Options LedgerOptions(const RocksDbSettings& settings) {
  rocksdb::Options options = CommonOptions(settings);
  options.write_buffer_size = kLedgerMemtableBytes;
  options.max_write_buffer_number = 2;
  options.max_manifest_file_size = kLedgerManifestBytesMax;
  options.max_open_files = 64;
  // A torn end is a write that was never answered; anything else missing is damage to be known of.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.track_and_verify_wals_in_manifest = true;
  rocksdb::BlockBasedTableOptions table = TableOptions();
  table.no_block_cache = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

rocksdb::Options PayloadFileOptions(const RocksDbSettings& settings, uint64_t record_bytes) {
  rocksdb::Options options = PayloadOptions(settings);
  rocksdb::BlockBasedTableOptions table = TableOptions();
  // RocksDB takes memory for so much anew for each block: without it a large record is copied twice
  // more while its block grows, into fresh pages each time.
  table.block_size = std::max<uint64_t>(kBlockBytes, record_bytes + kBlockOverheadBytes);
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

rocksdb::EnvOptions FileWriterOptions(const RocksDbSettings& settings) {
  rocksdb::EnvOptions options;
  options.use_direct_writes = settings.direct_io;
  options.writable_file_max_buffer_size = kFileBufferBytes;
  return options;
}

rocksdb::IngestExternalFileOptions IngestOptions() {
  rocksdb::IngestExternalFileOptions options;
  options.move_files = true;
  options.failed_move_fall_back_to_copy = false;
  options.snapshot_consistency = false;
  options.allow_global_seqno = false;  // Ranges of two files never overlap.
  options.write_global_seqno = false;  // A finished file does not change any more.
  options.allow_blocking_flush = false;
  return options;
}

rocksdb::ReadOptions RecordReadOptions() {
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  options.verify_checksums = true;
  return options;
}

}  // namespace cairn::node
