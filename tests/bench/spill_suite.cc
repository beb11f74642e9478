// The disk tier against the disk: finding two million small blocks again after a kill, what is
// written in all for what was stored, and writing and reading blocks of 2 MiB beside fio.
#include <unistd.h>

#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "tests/bench/spill_parts.h"
#include "tests/bench/suites.h"

namespace cairn::bench {

absl::Status RunSpillSuite(const SuiteOptions& options, JsonReport* report) {
  const std::filesystem::path parent = options.dir.empty() ? std::filesystem::temp_directory_path()
                                                           : std::filesystem::path(options.dir);
  const std::string dir = parent / absl::StrCat("cairn_spill_", getpid());
  std::filesystem::create_directories(dir);
  const absl::Cleanup remove = [&dir] { std::filesystem::remove_all(dir); };
  if (absl::Status status = MeasureRecovery(dir, report); !status.ok()) return status;
  if (absl::Status status = MeasureAmplification(dir, report); !status.ok()) return status;
  return MeasureTransfer(dir, report);
}

}  // namespace cairn::bench
