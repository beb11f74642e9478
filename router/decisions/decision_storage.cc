#include "router/decisions/decision_storage.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

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

// Where two processes begin at once, how often what stands at a path may change while it is looked
// at.
constexpr int kTriesMost = 16;

absl::Status TakenBy(absl::string_view path) {
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": another process writes it; give each router its own file"));
}

// The file at the path is this one.
bool StandsAt(const std::string& path, const struct stat& file) {
  struct stat there {};
  return lstat(path.c_str(), &there) == 0 && there.st_dev == file.st_dev &&
         there.st_ino == file.st_ino;
}

// A file that may be renamed or replaced, locked while this lives: nobody else takes away what
// stands at its path then.
class OldFile {
 public:
  OldFile() = default;
  // Takes the descriptor.
  explicit OldFile(int fd) : fd_(fd) {}
  ~OldFile() {
    if (fd_ >= 0) close(fd_);
  }
  OldFile(OldFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OldFile& operator=(OldFile&&) = delete;

  bool there() const { return fd_ >= 0; }
  off_t bytes() const {
    struct stat status {};
    return there() && fstat(fd_, &status) == 0 ? status.st_size : 0;
  }

 private:
  int fd_ = -1;
};

absl::Status CheckIsOurs(const std::string& path, int fd, const struct stat& status) {
  char magic[kDecisionMagic.size()];
  const ssize_t read_bytes = S_ISREG(status.st_mode) ? pread(fd, magic, sizeof(magic), 0) : -1;
  if (read_bytes == 0) return absl::OkStatus();
  if (read_bytes == sizeof(magic) && absl::string_view(magic, sizeof(magic)) == kDecisionMagic) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": is there and is no file of decisions; name another file"));
}

// Not there() where nothing is.
absl::StatusOr<OldFile> LockOurs(const std::string& path) {
  for (int i = 0; i < kTriesMost; ++i) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) return OldFile();
    if (fd < 0) return ErrorOf(path, "cannot be opened");
    OldFile found(fd);
    struct stat status {};
    if (fstat(fd, &status) != 0) return ErrorOf(path, "cannot be looked at");
    if (absl::Status ours = CheckIsOurs(path, fd, status); !ours.ok()) return ours;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) return TakenBy(path);
    if (StandsAt(path, status)) return found;
    // It was taken away before it was locked.
  }
  return TakenBy(path);
}

}  // namespace

DecisionFiles::~DecisionFiles() { Close(); }

void DecisionFiles::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

absl::Status DecisionFiles::Begin() {
  const std::string before = absl::StrCat(path_, ".1");
  struct stat status {};
  const bool is_own = fd_ >= 0 && fstat(fd_, &status) == 0 && StandsAt(path_, status);
  if (!is_own) Close();
  const absl::StatusOr<OldFile> last = is_own ? OldFile(std::exchange(fd_, -1)) : LockOurs(path_);
  if (!last.ok()) return last.status();
  const absl::StatusOr<OldFile> one_before = LockOurs(before);
  if (!one_before.ok()) return one_before.status();
  const bool keep = last->bytes() >= kKeptBytesMin;
  if (keep && std::rename(path_.c_str(), before.c_str()) != 0) {
    return ErrorOf(path_, absl::StrCat("cannot be renamed to ", before));
  }
  if (!keep && last->there() && unlink(path_.c_str()) != 0) {
    return ErrorOf(path_, "cannot be replaced");
  }
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
             S_IRUSR | S_IWUSR);
  if (fd_ < 0 && errno == EEXIST) return TakenBy(path_);
  if (fd_ < 0) return ErrorOf(path_, "cannot be made");
  // Another process may have found it before it was locked here, and taken it for an empty one.
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0 || fstat(fd_, &status) != 0 || !StandsAt(path_, status)) {
    Close();
    return TakenBy(path_);
  }
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
