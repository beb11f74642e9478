#include "router/decisions/decision_storage.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "router/decisions/decision_frames.h"

namespace cairn::router {
namespace {

absl::Status ErrorOf(absl::string_view path, absl::string_view what) {
  return absl::ErrnoToStatus(errno, absl::StrCat(path, ": ", what));
}

// A file of fewer is of a run that decided next to nothing, as where a router starts in vain again
// and again: it does not take the place of one that is worth keeping.
constexpr off_t kKeptBytesMin = 4096;

// How large the file is that may be renamed or replaced; 0 where nothing is.
absl::StatusOr<off_t> CheckIsOurs(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0 && errno == ENOENT) return off_t{0};
  if (fd < 0) return ErrorOf(path, "cannot be opened");
  const absl::Cleanup close_fd = [fd] { close(fd); };
  struct stat status {};
  if (fstat(fd, &status) != 0) return ErrorOf(path, "cannot be looked at");
  char magic[kDecisionMagic.size()];
  const ssize_t read_bytes = S_ISREG(status.st_mode) ? read(fd, magic, sizeof(magic)) : -1;
  const bool empty = read_bytes == 0;
  if (!empty &&
      (read_bytes != sizeof(magic) || absl::string_view(magic, sizeof(magic)) != kDecisionMagic)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": is there and is no file of decisions; name another file"));
  }
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": another process writes it; give each router its own file"));
  }
  return status.st_size;
}

}  // namespace

DecisionFiles::~DecisionFiles() { Close(); }

void DecisionFiles::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

absl::Status DecisionFiles::Begin() {
  Close();
  const std::string before = absl::StrCat(path_, ".1");
  const absl::StatusOr<off_t> bytes = CheckIsOurs(path_);
  if (!bytes.ok()) return bytes.status();
  if (absl::Status status = CheckIsOurs(before).status(); !status.ok()) return status;
  const bool keep = *bytes >= kKeptBytesMin;
  if (keep && std::rename(path_.c_str(), before.c_str()) != 0) {
    return ErrorOf(path_, absl::StrCat("cannot be renamed to ", before));
  }
  if (!keep && unlink(path_.c_str()) != 0 && errno != ENOENT) {
    return ErrorOf(path_, "cannot be replaced");
  }
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
             S_IRUSR | S_IWUSR);
  if (fd_ < 0) return ErrorOf(path_, "cannot be made");
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0) return ErrorOf(path_, "cannot be locked");
  return absl::OkStatus();
}

absl::Status DecisionFiles::Append(absl::string_view bytes) {
  CAIRN_CHECK(fd_ >= 0);
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrorOf(path_, "cannot be written");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace cairn::router
