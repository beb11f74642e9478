// StoreCounters: what happened in a store, as counters that only rise. Thread-safe; read at scrape.
#pragma once

#include <atomic>
#include <cstdint>

namespace cairn::node {

struct StoreCounters {
  using Counter = std::atomic<uint64_t>;
  Counter lookups{0};
  Counter looked_up_tokens{0};
  Counter hit_tokens{0};
  Counter evicted_blocks{0};
  Counter shrunk_blocks{0};  // Of these: their tenants' quotas were lowered.
  Counter committed_blocks{0};
  Counter reserved_blocks{0};
  Counter refused_no_space{0};
  Counter refused_quota{0};           // By any of the next three.
  Counter refused_quota_host{0};      // Its tenant has all that it may, and all of it in use.
  Counter refused_quota_reserved{0};  // Bytes reserved at a time, of the tenant or the node.
  Counter refused_tokens{0};          // Write tokens, of the node.
  Counter refused_leased{0};          // Blocks that were not leased: bytes leased at a time.
  Counter declined_newcomers{0};      // By the eviction policy.
  Counter spills_over_quota{0};       // Not written: their tenants have all that they may on disk.
  Counter stays_refused{0};           // Blocks that were to stay, for which there was no budget.
  Counter stays_ended{0};             // That were to stay longer; quotas were lowered.
  Counter expired_blocks{0};          // Removed at the time that their writers said.
  Counter token_collisions{0};        // Other tokens under a stored key.
  Counter key_mismatches{0};
  Counter digest_mismatches{0};  // Written bytes that did not have the writer's digest.
  Counter reported_mismatches{0};
  Counter quarantined_blocks{0};
  Counter expired_tokens{0};
  Counter expired_shares{0};
  Counter watchers_cut{0};
  Counter feed_shards_given_up{0};  // Sent anew to a watcher that fell behind.
  Counter segment_remakes{0};
  // Raised, with release, after a block that is held stopped being readable, or a namespace was
  // retired: until it moves every BlockPin that was readable is.
  Counter revocations{0};
  // Of the device.
  Counter hit_tokens_device{
      0};  // Of hit_tokens: only there, or loaded from there and not used since.
  Counter device_demoted_blocks{0};  // Left host memory and stayed on the device.
  Counter device_evicted_blocks{0};  // Left the device for others.
  Counter uploaded_blocks{0};        // Became readable on the device.
  Counter uploaded_bytes{0};         // Their payload.
  Counter uploads_too_large{0};      // Blocks that fit into no segment of it.
  Counter uploads_shed{0};           // Forgotten, for want of room in the queue.
  Counter uploads_declined{0};       // No room there that they were worth.
  Counter uploads_failed{0};         // Taken, and not copied or not wanted any more.
  Counter device_loads{0};           // Begun.
  Counter device_loaded_blocks{0};   // Verified and in host memory.
  Counter device_loads_damaged{0};   // The bytes were not those of the block.
  Counter device_loads_failed{0};    // For another reason.
  // Of the disk tier.
  Counter hit_tokens_disk{0};   // Of hit_tokens: on disk, or loaded and not used since.
  Counter demoted_blocks{0};    // Left host memory and stayed on disk; not evicted.
  Counter spilled_blocks{0};    // Became readable on disk.
  Counter spilled_bytes{0};     // Their payload.
  Counter spills_shed{0};       // Not queued, for want of room in the queue or the index.
  Counter spills_late{0};       // Evicted before their turn to be written.
  Counter spills_too_large{0};  // Committed, and larger than a block on disk may be.
  Counter spills_failed{0};     // Taken, and not written.
  Counter loads{0};             // Begun.
  Counter loaded_blocks{0};     // Verified and in host memory.
  // Loaded, or to be written again: the bytes were not those of the block, which is quarantined.
  Counter loads_damaged{0};
  Counter loads_failed{0};       // For another reason.
  Counter loads_refused{0};      // No room to load into, or too many at a time.
  Counter reinserted_blocks{0};  // Written again, as their file left.
  Counter reinserted_bytes{0};
  Counter reclaimed_files{0};
  Counter reclaimed_blocks{0};  // Left with their file.
  Counter marks_failed{0};      // Quarantined blocks whose copy on disk could not be marked dead.
  Counter recovered_blocks{0};
  Counter recovery_ignored{0};  // Found at start: fenced, dead, of another layout, or no room.
};

}  // namespace cairn::node
