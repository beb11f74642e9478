// DiskRig: a store over the RocksDB disk tier in this process, whose movers the caller runs.
//
// For suites that measure the tier: no server, no threads, so that each step is the caller's. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache_node/spill/block_loader.h"
#include "cache_node/spill/disk_recovery.h"
#include "cache_node/spill/file_reclaimer.h"
#include "cache_node/spill/spill_writer.h"
#include "cache_node/spill/tier_ledger.h"
#include "cache_node/store/block_store.h"
#include "cache_node/tiers/disk/rocksdb_disk_tier.h"
#include "common/base/clock.h"
#include "common/base/guarded_time.h"
#include "common/base/random_source.h"

namespace cairn::bench {

class DiskRig {
 public:
  struct Options {
    std::string dir;
    uint64_t disk_bytes = 0;
    uint64_t pool_bytes = 0;
    uint64_t file_bytes = 0;
    uint64_t index_bytes = uint64_t{512} << 20;
  };

  // Opens tier and ledger; blocks on disk are found by Recover.
  static absl::StatusOr<std::unique_ptr<DiskRig>> Open(const Options& options);

  absl::Status Recover();
  // Writes and makes room until there is nothing to do.
  void Settle();
  // Finishes what was written, then as Settle.
  void Flush();

  node::BlockStore& store() { return *store_; }
  const node::StoreCounters& counters() const { return counters_; }
  node::BlockLoader& loader() { return *loader_; }

 private:
  DiskRig(const Options& options, std::unique_ptr<node::RocksDbDiskTier> tier,
          std::unique_ptr<node::HostMemory> memory);

  SystemClock clock_;
  SecureRandom random_;
  GuardedTime time_;
  node::StoreCounters counters_;
  const std::unique_ptr<node::RocksDbDiskTier> tier_;
  node::TierLedger ledger_;
  std::unique_ptr<node::BlockStore> store_;
  std::unique_ptr<node::SpillWriter> writer_;
  std::unique_ptr<node::FileReclaimer> reclaimer_;
  std::unique_ptr<node::BlockLoader> loader_;
};

}  // namespace cairn::bench
