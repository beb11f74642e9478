// PayloadDatabase: the finished files of a disk tier, in one RocksDB database that holds nothing
// else.
//
// What RocksDB will not open (a file that is missing or too short, a damaged manifest, a database
// of another version) is rebuilt: its files are taken in one by one, and those that are no use are
// deleted and counted. So one lost file costs its own blocks and no others.
//
// Thread-safe, but Open is for one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cache_node/tiers/disk/file_table.h"
#include "cache_node/tiers/disk/rocks_database.h"
#include "cache_node/tiers/disk/rocksdb_options.h"

namespace cairn::node {

class PayloadDatabase {
 public:
  // `rebuild_path` holds files that are to be taken in again; on the same file system. Keeps
  // `table` true, which must outlive it.
  PayloadDatabase(std::string path, std::string rebuild_path, const RocksDbSettings& settings,
                  FileTable* table);

  // Opens it, unless it is open. The table then knows what was found.
  absl::Status Open();
  // Gets over a background error. When it cannot do so otherwise it closes; open it again.
  absl::Status Mend(absl::Duration timeout) { return db_.ResumeOrClose(timeout); }
  absl::Status Close(absl::Duration timeout) { return db_.Close(timeout); }

  // The file at `path` moves into the database, durably, and into the table, where `reserved` bytes
  // are kept for it. On an error it is not in the table, but may be in the database all the same
  // until the next Mend or Open.
  absl::Status Ingest(const std::string& path, FileTable::File file, uint64_t reserved);
  absl::Status Drop(uint64_t file);
  // Calls `use` with the value at `key`, which lives for the call; answers what `use` does. The
  // value's checksum is right. NOT_FOUND: there is no such key, or its file is gone.
  absl::Status Get(const std::string& key, absl::FunctionRef<absl::Status(absl::string_view)> use);

  uint64_t damaged_files() const { return damaged_files_.load(std::memory_order_relaxed); }

 private:
  bool LostItsManifest() const;
  absl::Status MoveAside();
  absl::Status Prepare(rocksdb::DB* db);
  absl::Status TakeInAgain(rocksdb::DB* db);
  absl::Status TakeInFile(rocksdb::DB* db, const std::string& path);
  absl::Status ListFiles(rocksdb::DB* db, std::vector<FileTable::File>* files);

  const std::string rebuild_path_;
  const rocksdb::Options options_;
  FileTable* const table_;
  RocksDatabase db_;
  std::atomic<uint64_t> damaged_files_{0};
};

}  // namespace cairn::node
