#include "cache_node/tiers/memory_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

absl::Status KernelRefused(absl::string_view call, uint64_t bytes, int error) {
  const std::string what = absl::StrCat("a memory segment of ", bytes, " bytes: ", call,
                                        " failed: ", std::strerror(error));
  switch (error) {
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(
          absl::StrCat(what, "; raise the limit of open files (ulimit -n)"));
    case EINVAL:
    case ENOSYS:
      return absl::FailedPreconditionError(
          absl::StrCat(what, "; sealed memory needs Linux 5.1 or newer"));
    default:
      return absl::ResourceExhaustedError(
          absl::StrCat(what, "; make the host pool smaller or give the process more memory"));
  }
}

int RetryInterrupted(int (*call)(int, off_t), int fd, off_t bytes) {
  int result = call(fd, bytes);
  while (result != 0 && errno == EINTR) result = call(fd, bytes);
  return result;
}

}  // namespace

uint64_t MemorySegment::PageBytes() {
  static const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return page_bytes;
}

absl::StatusOr<std::unique_ptr<MemorySegment>> MemorySegment::Make(uint64_t bytes,
                                                                   Writers writers) {
  if (bytes == 0 || bytes % PageBytes() != 0 || bytes > std::numeric_limits<off_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("a memory segment of ", bytes,
                                                   " bytes: give a positive multiple of the page, ",
                                                   PageBytes(), " bytes"));
  }
  const int fd = memfd_create("cairn-memory-segment", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return KernelRefused("memfd_create", bytes, errno);
  // Owns the descriptor from here on; the mapping follows.
  auto segment = std::unique_ptr<MemorySegment>(new MemorySegment(fd));

  if (RetryInterrupted(ftruncate, fd, static_cast<off_t>(bytes)) != 0) {
    return KernelRefused("ftruncate", bytes, errno);
  }
  // Takes the pages by a call that can fail; a first write that finds none would be a signal.
  const auto allocate = [](int file, off_t size) { return fallocate(file, 0, 0, size); };
  if (RetryInterrupted(allocate, fd, static_cast<off_t>(bytes)) != 0) {
    return KernelRefused("fallocate", bytes, errno);
  }
  void* mapping =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, /*offset=*/0);
  if (mapping == MAP_FAILED) return KernelRefused("mmap", bytes, errno);
  segment->bytes_ = absl::MakeSpan(static_cast<uint8_t*>(mapping), bytes);
  const int write_seal = writers == Writers::kOwner ? F_SEAL_FUTURE_WRITE : 0;
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | write_seal) != 0) {
    return KernelRefused("F_ADD_SEALS", bytes, errno);
  }
  return segment;
}

int MemorySegment::OpenForReading() const {
  return open(absl::StrCat("/proc/self/fd/", fd_).c_str(), O_RDONLY | O_CLOEXEC);
}

void MemorySegment::FreePages() const {
  const auto punch = [](int file, off_t size) {
    return fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, size);
  };
  CAIRN_CHECK(RetryInterrupted(punch, fd_, static_cast<off_t>(bytes_.size())) == 0);
}

void MemorySegment::PinBy(MemoryPinner* pinner) {
  CAIRN_CHECK(pinner_ == nullptr);
  pinner_ = pinner;
  pinner_->Pin(bytes_);
}

MemorySegment::~MemorySegment() {
  if (pinner_ != nullptr) pinner_->Unpin(bytes_);
  if (!bytes_.empty()) CAIRN_CHECK(munmap(bytes_.data(), bytes_.size()) == 0);
  close(fd_);
}

}  // namespace cairn::node
