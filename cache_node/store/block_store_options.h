// What a BlockStore is configured with: bounds and times. A value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "cache_node/store/device_options.h"
#include "cache_node/store/disk_options.h"

namespace cairn::node {

struct BlockStoreOptions {
  uint32_t feed_shards = 64;  // 1 to 256.
  uint64_t index_bytes_max = uint64_t{256} << 20;
  uint64_t namespace_bytes_max = uint64_t{64} << 20;
  uint64_t leased_bytes_max = 0;    // 0: half of the pool.
  uint64_t reserved_bytes_max = 0;  // 0: half of the pool.
  uint64_t stays_bytes_max = 0;     // Of blocks that are to stay. 0: a quarter of the pool.
  size_t removed_memory_entries = 65536;
  size_t watcher_queue_records = 65536;
  uint32_t leases_max = 65536;
  uint32_t tokens_max = 65536;
  absl::Duration lease_ttl_default = absl::Seconds(30);
  absl::Duration lease_ttl_max = absl::Minutes(10);
  absl::Duration token_ttl_default = absl::Seconds(30);
  absl::Duration token_ttl_max = absl::Minutes(5);
  absl::Duration token_life_max = absl::Minutes(30);  // However often it is renewed.
  absl::Duration retry_after = absl::Milliseconds(100);
  DiskOptions disk = {};      // Of no account without a disk tier,
  DeviceOptions device = {};  // or without a device.
};

}  // namespace cairn::node
