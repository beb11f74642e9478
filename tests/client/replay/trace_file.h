// TraceFile: a file of the test's own, gone when the object goes.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/replay/trace.h"

namespace cairn::replay {

class TraceFile {
 public:
  enum class Form { kPlain, kGzipped };

  explicit TraceFile(absl::string_view content, Form form = Form::kPlain);
  ~TraceFile();

  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  const std::string& path() const { return path_; }

  // Keeps the first `bytes` of the file.
  void Truncate(size_t bytes) const;

 private:
  std::string path_;
};

// All requests of a trace, or the status that ended it.
absl::StatusOr<std::vector<TraceRequest>> ReadAll(TraceReader* trace);

}  // namespace cairn::replay
