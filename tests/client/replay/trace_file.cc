#include "tests/client/replay/trace_file.h"

#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "common/base/check.h"

namespace cairn::replay {

TraceFile::TraceFile(absl::string_view content, Form form)
    : path_(std::filesystem::temp_directory_path() / "cairn_trace_XXXXXX") {
  const int fd = mkstemp(path_.data());
  CAIRN_CHECK(fd >= 0);
  close(fd);
  if (form == Form::kPlain) {
    std::ofstream file(path_, std::ios::binary | std::ios::trunc);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    CAIRN_CHECK(file.good());
    return;
  }
  gzFile file = gzopen(path_.c_str(), "wb");
  CAIRN_CHECK(file != nullptr);
  const int written = gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  CAIRN_CHECK(written == static_cast<int>(content.size()));
  CAIRN_CHECK(gzclose(file) == Z_OK);
}

TraceFile::~TraceFile() { std::filesystem::remove(path_); }

void TraceFile::Truncate(size_t bytes) const { std::filesystem::resize_file(path_, bytes); }

absl::StatusOr<std::vector<TraceRequest>> ReadAll(TraceReader* trace) {
  std::vector<TraceRequest> requests;
  while (true) {
    absl::StatusOr<std::optional<TraceRequest>> request = trace->Next();
    if (!request.ok()) return request.status();
    if (!request->has_value()) return requests;
    requests.push_back(**std::move(request));
  }
}

}  // namespace cairn::replay
