#include "cache_node/tiers/disk/disk_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/bytes16.h"
#include "common/base/hex.h"
#include "common/base/random_source.h"

namespace cairn::node {
namespace {

namespace fs = std::filesystem;

// What the FORMAT file begins with; the identity follows.
constexpr absl::string_view kFormat = "cairn-disk 1 ";
constexpr size_t kFormatFileBytesMax = 4096;

absl::Status FromErrno(absl::string_view what, int error) {
  const std::string message = absl::StrCat(what, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(message);
  return absl::UnavailableError(message);
}

absl::Status FromErrorCode(absl::string_view what, const std::error_code& error) {
  return error ? FromErrno(what, error.value()) : absl::OkStatus();
}

absl::Status RemoveAll(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  return FromErrorCode(path, error);
}

absl::Status SyncFolder(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return FromErrno(path, errno);
  const int result = fsync(fd);
  const int error = errno;
  close(fd);
  return result == 0 ? absl::OkStatus() : FromErrno(path, error);
}

// Nothing when there is no such file.
absl::StatusOr<std::optional<std::string>> ReadFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return std::nullopt;
  if (fd < 0) return FromErrno(path, errno);
  std::string text(kFormatFileBytesMax, '\0');
  const ssize_t bytes = read(fd, text.data(), text.size());
  const int error = errno;
  close(fd);
  if (bytes < 0) return FromErrno(path, error);
  text.resize(static_cast<size_t>(bytes));
  return text;
}

absl::Status WriteFile(const std::string& path, absl::string_view text) {
  const std::string temporary = path + ".new";
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return FromErrno(temporary, errno);
  const bool written =
      write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(fd) == 0;
  const int error = errno;
  close(fd);
  if (!written) return FromErrno(temporary, error);
  if (rename(temporary.c_str(), path.c_str()) != 0) return FromErrno(path, errno);
  return absl::OkStatus();
}

std::string NewIdentity() {
  SecureRandom random;
  return ToHex(random.New<Incarnation>().view());
}

std::string LockPath(absl::string_view folder) { return absl::StrCat(folder, "/LOCK"); }

absl::Status Refused(absl::string_view path, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("disk directory ", path, ": ", why));
}

}  // namespace

DiskDirectory::DiskDirectory(std::string path, int lock_fd)
    : path_(std::move(path)), lock_fd_(lock_fd) {}

DiskDirectory::~DiskDirectory() { close(lock_fd_); }

absl::StatusOr<std::unique_ptr<DiskDirectory>> DiskDirectory::Open(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return Refused(path, error.message());
  const std::string lock = LockPath(path);
  const int fd = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return Refused(path, std::strerror(errno));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int reason = errno;
    close(fd);
    if (reason != EWOULDBLOCK) return Refused(path, std::strerror(reason));
    return Refused(path, "another node uses it; give each node a directory of its own");
  }
  return std::unique_ptr<DiskDirectory>(new DiskDirectory(path, fd));
}

absl::Status DiskDirectory::CheckHeld() const {
  struct stat held = {}, there = {};
  if (fstat(lock_fd_, &held) != 0) return FromErrno(path_, errno);
  const std::string lock = LockPath(path_);
  if (stat(lock.c_str(), &there) != 0) return FromErrno(lock, errno);
  if (held.st_dev == there.st_dev && held.st_ino == there.st_ino) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      path_, " is not the folder that was opened; put that one back, or start the node again"));
}

absl::Status DiskDirectory::Prepare() {
  absl::StatusOr<std::optional<std::string>> text = ReadFile(format());
  if (!text.ok()) return text.status();
  if (!text->has_value()) return Wipe();
  absl::string_view identity = absl::StripSuffix(**text, "\n");
  if (!absl::ConsumePrefix(&identity, kFormat)) {
    if (absl::Status status = SetAside(); !status.ok()) return status;
    return Wipe();
  }
  identity_ = std::string(identity);
  is_new_ = false;
  return ClearStaging();
}

absl::Status DiskDirectory::WriteFormat() {
  if (absl::Status status = WriteFile(format(), absl::StrCat(kFormat, identity_, "\n"));
      !status.ok()) {
    return status;
  }
  is_new_ = false;
  return SyncFolder(path_);
}

absl::Status DiskDirectory::Wipe() {
  // First the file that vouches for the others.
  for (const std::string& part : {format(), payload(), rebuild(), ledger()}) {
    if (absl::Status status = RemoveAll(part); !status.ok()) return status;
  }
  identity_ = NewIdentity();
  is_new_ = true;
  return ClearStaging();
}

absl::Status DiskDirectory::ClearStaging() {
  if (absl::Status status = RemoveAll(staging()); !status.ok()) return status;
  return MakeStaging();
}

absl::Status DiskDirectory::MakeStaging() {
  std::error_code error;
  fs::create_directory(staging(), error);
  return FromErrorCode(staging(), error);
}

absl::Status DiskDirectory::SetAside() {
  if (absl::Status status = RemoveAll(set_aside()); !status.ok()) return status;
  std::error_code error;
  fs::create_directory(set_aside(), error);
  if (error) return FromErrorCode(set_aside(), error);
  // The file that says what they are goes last, so that being killed here is made good.
  for (const std::string& part : {payload(), rebuild(), ledger(), format()}) {
    const std::string name = fs::path(part).filename().string();
    if (!fs::exists(part, error)) continue;
    fs::rename(part, absl::StrCat(set_aside(), "/", name), error);
    if (error) return FromErrorCode(part, error);
  }
  return SyncFolder(path_);
}

bool DiskDirectory::SupportsDirectIo() const {
  const std::string path = path_ + "/direct";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0644);
  if (fd >= 0) close(fd);
  unlink(path.c_str());
  return fd >= 0;
}

uint64_t DiskDirectory::SetAsideBytes() const {
  std::error_code error;
  uint64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(set_aside(), error)) {
    std::error_code file_error;
    if (entry.is_regular_file(file_error)) bytes += entry.file_size(file_error);
  }
  return bytes;
}

absl::Status DiskDirectory::DeleteSetAside() { return RemoveAll(set_aside()); }

}  // namespace cairn::node
