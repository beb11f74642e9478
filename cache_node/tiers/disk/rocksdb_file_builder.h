// RocksDbFileBuilder: builds one payload file with RocksDB's SstFileWriter and has it ingested.
//
// Room is reserved before a record is written: a record that the cap has no room for is refused,
// and the file can be finished without it. Any other error ends the file. Contract in disk_tier.h;
// the parts must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache_node/tiers/disk/directory_format.h"
#include "cache_node/tiers/disk/disk_parts.h"
#include "cache_node/tiers/disk/disk_tier.h"
#include "rocksdb/sst_file_writer.h"

namespace cairn::node {

class RocksDbFileBuilder final : public DiskFileBuilder {
 public:
  RocksDbFileBuilder(DiskParts* parts, uint64_t file);
  ~RocksDbFileBuilder() override;

  // Takes room for a file. To be called once, before anything else; the first record makes the
  // file.
  absl::Status Start();

  uint64_t file() const override { return file_; }
  absl::StatusOr<DiskPlace> Add(const DiskRecord& record) override;
  uint64_t bytes() const override { return reserved_; }
  absl::Status Finish() override;

 private:
  absl::Status Reserve(uint64_t bytes);
  absl::Status Open(uint64_t record_bytes);
  absl::Status Put(const std::string& key, const std::string& value);
  absl::Status PutChunk();
  absl::Status WriteAndIngest();
  void GiveUp();

  DiskParts* const parts_;
  const uint64_t file_;
  const std::string path_;
  std::optional<rocksdb::SstFileWriter> writer_;  // From the first record on.
  DirectoryWriter directory_;
  uint64_t reserved_ = 0;
  absl::Status broken_;  // Why nothing can be added any more.
  bool ended_ = false;
  std::string value_;  // Of the record at hand; kept for its room.
};

}  // namespace cairn::node
