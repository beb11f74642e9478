#include "cache_node/service/disk_opening.h"

#include <utility>

#include "cache_node/tiers/disk/rocksdb_disk_tier.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

// Files that are built at a time: of blocks from memory, and of those that are written again.
constexpr int kBuilders = 2;
// Reads beside those of the loaders: of blocks that are written again, and of the recovery.
constexpr int kOtherReads = 2;

RocksDbDiskTierOptions TierOptions(const DiskConfig& config) {
  RocksDbDiskTierOptions options;
  options.directory = config.dir;
  options.bytes_max = config.bytes.bytes();
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DiskTier>> OpenDiskTier(const DiskConfig& config) {
  CAIRN_CHECK(config.on());
  return RocksDbDiskTier::Open(TierOptions(config));
}

ByteSize DiskTierMemory(const DiskConfig& config) {
  const uint64_t block_bytes = config.spill_block_bytes.bytes();
  const uint64_t tier = RocksDbDiskTier::MemoryBytesMax(
      TierOptions(config), kBuilders, config.read_threads + kOtherReads, block_bytes);
  // Where each builder has a block put together.
  return ByteSize(tier + kBuilders * block_bytes);
}

}  // namespace cairn::node
