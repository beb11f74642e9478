// FioBytesPerSecond: what the disk under a folder does, as fio says: the floor of the disk tier.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cairn::bench {

struct FioJob {
  std::string dir;                 // Its file is made there, and removed.
  absl::string_view rw = "write";  // Or "randread".
  uint64_t bytes = 0;
  uint64_t block_bytes = 0;
  int depth = 1;
};

// Direct I/O; a write ends with a sync. FAILED_PRECONDITION when there is no fio.
absl::StatusOr<double> FioBytesPerSecond(const FioJob& job);

}  // namespace cairn::bench
