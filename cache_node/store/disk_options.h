// DiskOptions: what the store does with a disk tier.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace cairn::node {

// When a block is worth writing.
enum class SpillAdmission : uint8_t {
  kAlways,       // At its commit, so that a kill loses little.
  kSecondTouch,  // At its first use after that.
};

struct DiskOptions {
  SpillAdmission admission = SpillAdmission::kAlways;
  // What the tier may take there, for its working set. 0: not known.
  uint64_t bytes_max = 0;
  // Larger blocks stay in host memory: whoever reads or writes holds copies of one.
  uint64_t block_bytes_max = uint64_t{256} << 20;
  // Of the DiskIndex (disk_index.h): a block takes about 100 bytes.
  uint64_t index_bytes_max = uint64_t{256} << 20;
  // Blocks that wait to be written. They are not pinned: over a bound further ones are not queued.
  size_t spill_queue_blocks_max = 65536;
  uint64_t spill_queue_bytes_max = uint64_t{4} << 30;
  // Blocks taken for writing and not reported: pinned. 0: an eighth of the pool.
  uint64_t spilling_bytes_max = 0;
  // Blocks that wait for a load or are being loaded.
  size_t loads_max = 4096;
  // After a load that failed for another reason than the block's bytes.
  absl::Duration load_retry_after = absl::Seconds(1);
  // Payload written again, as a share of the payload spilled.
  double reinsert_share = 0.08;
};

}  // namespace cairn::node
