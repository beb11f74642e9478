#include "tests/bench/fio_floor.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace cairn::bench {
namespace {

// What the command wrote, when it ended well.
absl::StatusOr<std::string> OutputOf(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return absl::UnavailableError("no process for fio");
  std::string output;
  std::array<char, 4096> part;
  while (const size_t got = fread(part.data(), 1, part.size(), pipe)) {
    output.append(part.data(), got);
  }
  if (pclose(pipe) == 0) return output;
  return absl::FailedPreconditionError(
      absl::StrCat("'", command,
                   "' failed: install fio (Debian's package of that name), and give "
                   "a --dir on a disk that knows direct I/O"));
}

}  // namespace

absl::StatusOr<double> FioBytesPerSecond(const FioJob& job) {
  const std::string file = job.dir + "/fio.data";
  const absl::Cleanup remove = [&file] { std::filesystem::remove(file); };
  const absl::StatusOr<std::string> output = OutputOf(absl::StrCat(
      "fio --name=floor --filename='", file, "' --bs=", job.block_bytes, " --size=", job.bytes,
      " --direct=1 --ioengine=libaio --end_fsync=1 --rw=", job.rw, " --iodepth=", job.depth,
      " --output-format=json 2>/dev/null"));
  if (!output.ok()) return output.status();
  const nlohmann::json said = nlohmann::json::parse(*output, nullptr, /*allow_exceptions=*/false);
  const char* side = job.rw == "write" ? "write" : "read";
  if (said.is_discarded() || !said.contains("jobs") || said["jobs"].empty() ||
      !said["jobs"][0].contains(side)) {
    return absl::InternalError("fio did not answer in the form that is known here");
  }
  const double speed = said["jobs"][0][side].value("bw_bytes", 0.0);
  if (speed > 0) return speed;
  return absl::InternalError("fio says that nothing was moved");
}

}  // namespace cairn::bench
