// DiskConfig: what a cache node is told of its disk tier. The defaults are those of the flags.
//
// A plain value, part of NodeConfig.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "cache_node/spill/file_reclaimer.h"
#include "cache_node/spill/spill_writer.h"
#include "cache_node/store/disk_options.h"
#include "common/server/byte_size.h"
#include "common/server/config_errors.h"

namespace cairn::node {

struct DiskConfig {
  std::string dir;  // Empty: no disk tier, and all else is of no account.
  ByteSize bytes;   // That it may take there; to be said.
  ByteSize index_memory = ByteSize::MiB(256);
  std::string spill_admission = "always";  // Or "second-touch".
  int read_threads = 4;
  ByteSize spill_block_bytes = ByteSize::MiB(16);  // Larger blocks are not written.
  ByteSize spill_file_bytes;    // 0: the smaller of 256 MiB and a sixteenth of `bytes`.
  ByteSize spill_pinned_bytes;  // 0: an eighth of the pool.
  ByteSize spill_queue_bytes = ByteSize::GiB(4);
  absl::Duration spill_file_age = absl::Seconds(1);

  bool on() const { return !dir.empty(); }

  // Says what is wrong, beside a pool of this size.
  void Check(ByteSize host_memory, ConfigErrors& errors) const;

  // With the defaults filled in.
  ByteSize SpillFileBytes() const;
  // For its parts. REQUIRES: on(), and Check had nothing to say.
  DiskOptions StoreOptions() const;
  SpillWriter::Options SpillOptions(uint64_t writer) const;
  FileReclaimer::Options ReclaimOptions(uint64_t writer) const;
};

}  // namespace cairn::node
