#include "cache_node/tiers/disk/ballast_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace cairn::node {

BallastFile::BallastFile(std::string path, uint64_t bytes)
    : path_(std::move(path)), bytes_(bytes) {}

absl::Status BallastFile::Fill() {
  const int fd = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return absl::UnavailableError(absl::StrCat(path_, ": ", std::strerror(errno)));
  const int error = posix_fallocate(fd, 0, static_cast<off_t>(bytes_));
  close(fd);
  if (error == 0) return absl::OkStatus();
  unlink(path_.c_str());
  const std::string message = absl::StrCat(path_, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(message);
  return absl::UnavailableError(message);
}

bool BallastFile::Release() { return unlink(path_.c_str()) == 0; }

}  // namespace cairn::node
