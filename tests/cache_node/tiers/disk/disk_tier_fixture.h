// DiskTierFixture: a RocksDbDiskTier on a folder of its own, and the few verbs that its tests
// speak.
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "cache_node/tiers/disk/rocksdb_disk_tier.h"
#include "tests/cache_node/tiers/disk/numbered_record.h"

namespace cairn::testing {

class DiskTierFixture : public ::testing::Test {
 protected:
  static constexpr size_t kPayloadBytes = 10'000;

  DiskTierFixture();
  ~DiskTierFixture() override;

  // Closes the tier, if it is open, and opens it again, as a restart would.
  void Reopen();

  // Adds records first, first + 1, ... of `payload_bytes` each; what Add answered.
  static std::vector<node::DiskPlace> AddTo(node::DiskFileBuilder* builder, uint64_t first,
                                            int count, size_t payload_bytes = kPayloadBytes);
  // A finished file of these records.
  std::vector<node::DiskPlace> Put(uint64_t first, int count, size_t payload_bytes = kPayloadBytes);
  // Reads record `number` and checks that, when it is answered at all, it is right.
  absl::Status Read(node::DiskPlace place, uint64_t number, size_t payload_bytes = kPayloadBytes);
  std::vector<node::DiskTier::RecoveredFile> Recover();

  // Files of payload in RocksDB's folder.
  std::vector<std::string> PayloadPaths() const;
  // What the folder takes on disk.
  uint64_t BytesOnDisk() const;

  node::RocksDbDiskTierOptions options_;
  std::unique_ptr<node::RocksDbDiskTier> tier_;
};

}  // namespace cairn::testing
