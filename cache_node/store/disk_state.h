// DiskState: what the store knows of its disk tier beside the entries in host memory.
//
// Part of StoreState, which changes it together with entries, families and feed. Not thread-safe:
// under the store's lock.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "cache_node/store/disk_fences.h"
#include "cache_node/store/disk_index.h"
#include "cache_node/store/disk_options.h"
#include "cache_node/store/disk_writes.h"
#include "cache_node/store/entry_queue.h"
#include "cache_node/store/failed_loads.h"
#include "cache_node/tiers/disk/disk_tier.h"

namespace cairn::node {

struct DiskState {
  DiskState(const DiskOptions& options_in, bool enabled_in, uint32_t feed_shards,
            uint64_t pool_bytes)
      : options(options_in),
        enabled(enabled_in),
        spilling_bytes_max(options_in.spilling_bytes_max != 0 ? options_in.spilling_bytes_max
                                                              : pool_bytes / 8),
        recovering(enabled_in),
        index(feed_shards, options_in.index_bytes_max) {}

  bool reads() const { return enabled && health != DiskTier::Health::kFailing; }
  bool writes_now() const { return open && health == DiskTier::Health::kServing; }
  // Whether the feed says what is on disk: not before all is found, as it is then said at once.
  bool shown() const { return enabled && !recovering; }

  bool QueuedToSpill(const BlockEntry& entry) const {
    return entry.queue == &spill_queue || entry.queue == &missed_spills;
  }
  bool SpillsWait() const {
    return spill_queue.size() > 0 || (spill_retries > 0 && missed_spills.size() > 0);
  }

  const DiskOptions options;
  const bool enabled;
  const uint64_t spilling_bytes_max;
  bool open = false;  // The ledger was read, and sequences are above all that were given before.
  bool recovering = false;
  DiskTier::Health health = DiskTier::Health::kServing;
  uint64_t sequence = 0;  // Last given.
  DiskIndex index;
  DiskFences fences;
  DiskWrites writes;
  EntryQueue spill_queue;
  // Wanted on disk, and could not be written: of a file that failed, or while the tier was out.
  EntryQueue missed_spills;
  size_t spill_retries = 0;  // That many of missed_spills, from the front, are to be tried now.
  EntryQueue load_queue;     // Not taken yet.
  uint64_t loading = 0;      // All entries that are kLoading.
  uint64_t last_load_id = 0;
  absl::flat_hash_map<uint64_t, BlockEntry*> taken_loads;  // By id; each claimed.
  FailedLoads failed_loads;
  // Of files that the store forgot and that may still be on disk: until the next is taken to make
  // room, and until this process ends.
  uint64_t oldest_leaving = UINT64_MAX;
  uint64_t oldest_lost = UINT64_MAX;
  double reinsert_bytes = 0;  // That may be written again.
  uint32_t drain_segment = 0;
  size_t drain_slot = 0;
};

}  // namespace cairn::node
