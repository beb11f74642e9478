#include "cache_node/service/disk_space.h"

#include <sys/statvfs.h>

#include "absl/strings/str_cat.h"

namespace cairn::node {

std::optional<DiskSpace> DiskSpaceOf(const std::string& directory) {
  struct statvfs info {};
  if (statvfs(directory.c_str(), &info) != 0) return std::nullopt;
  return DiskSpace{.total_bytes = uint64_t{info.f_blocks} * info.f_frsize,
                   .free_bytes = uint64_t{info.f_bavail} * info.f_frsize};
}

absl::StatusOr<std::string> DiskStartLine(const DiskConfig& config, const DiskTier::Stats& stats,
                                          const std::optional<DiskSpace>& space) {
  std::string line =
      absl::StrCat("disk tier in ", config.dir, ": may take ", config.bytes.ToString(), ", holds ",
                   stats.bytes_used, " bytes in ", stats.files, " files");
  if (!stats.reason.empty()) absl::StrAppend(&line, "; out of use: ", stats.reason);
  if (!space.has_value()) return line;
  if (config.bytes.bytes() > space->total_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("--disk-bytes=", config.bytes.ToString(), ": the file system of ", config.dir,
                     " has ", space->total_bytes, " bytes in all; give it less"));
  }
  absl::StrAppend(&line, "; ", space->free_bytes, " bytes are free there");
  // Not a refusal: others' files come and go, and a disk that is full only costs hits.
  if (config.bytes.bytes() > space->free_bytes + stats.bytes_used) {
    absl::StrAppend(&line, ", LESS than it may come to take: lower --disk-bytes or free some");
  }
  return line;
}

}  // namespace cairn::node
