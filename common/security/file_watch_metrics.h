// FileWatchMetrics: what became of files that are re-read, as metrics with the label `file`:
// PREFIX_file_read_errors_total, and PREFIX_file_good_seconds, when each was good last (Unix time).
//
// Read at scrape. Borrows the watches, which outlive it.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"
#include "common/metrics/metrics.h"
#include "common/security/file_watch.h"

namespace cairn {

class FileWatchMetrics {
 public:
  // Of all files of all watches; names are apart. Null watches are passed over.
  FileWatchMetrics(Metrics* metrics, absl::string_view prefix,
                   std::vector<const FileWatch*> watches);

 private:
  static constexpr size_t kFilesMax = 16;

  CallbackMetric errors_;
  CallbackMetric good_;
};

}  // namespace cairn
