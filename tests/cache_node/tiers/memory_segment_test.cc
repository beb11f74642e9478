// Makes real sealed memory and tries to do with its descriptor what a hostile reader would;
// refusals of the kernel are provoked with resource limits of this process.

#include "cache_node/tiers/memory_segment.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

// Lowers a soft limit of the process for as long as it lives.
class LoweredLimit {
 public:
  LoweredLimit(int resource, rlim_t value) : resource_(static_cast<Resource>(resource)) {
    EXPECT_EQ(getrlimit(resource_, &before_), 0);
    rlimit lowered = before_;
    lowered.rlim_cur = value;
    EXPECT_EQ(setrlimit(resource_, &lowered), 0);
  }
  ~LoweredLimit() { EXPECT_EQ(setrlimit(resource_, &before_), 0); }

 private:
  using Resource = decltype(RLIMIT_NOFILE);
  const Resource resource_;
  rlimit before_{};
};

std::unique_ptr<MemorySegment> MakeOk(uint64_t bytes) {
  absl::StatusOr<std::unique_ptr<MemorySegment>> segment = MemorySegment::Make(bytes);
  EXPECT_TRUE(segment.ok()) << segment.status();
  return *std::move(segment);
}

TEST(MemorySegmentTest, IsZeroAndWritableThroughout) {
  const uint64_t bytes = 5 * MemorySegment::PageBytes();
  auto segment = MakeOk(bytes);
  ASSERT_EQ(segment->bytes().size(), bytes);
  EXPECT_EQ(std::count(segment->bytes().begin(), segment->bytes().end(), 0),
            static_cast<ptrdiff_t>(bytes));
  std::fill(segment->bytes().begin(), segment->bytes().end(), uint8_t{0xab});
  EXPECT_EQ(std::count(segment->bytes().begin(), segment->bytes().end(), 0xab),
            static_cast<ptrdiff_t>(bytes));
}

TEST(MemorySegmentTest, HasAllItsPagesFromTheStart) {
  const uint64_t page_bytes = MemorySegment::PageBytes();
  auto segment = MakeOk(8 * page_bytes);
  std::vector<unsigned char> resident(8);
  ASSERT_EQ(mincore(segment->bytes().data(), 8 * page_bytes, resident.data()), 0);
  for (unsigned char page : resident) EXPECT_EQ(page & 1, 1);
}

TEST(MemorySegmentTest, CannotBeResized) {
  auto segment = MakeOk(4 * MemorySegment::PageBytes());
  EXPECT_EQ(ftruncate(segment->fd(), 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(ftruncate(segment->fd(), 1 << 20), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST(MemorySegmentTest, CannotBeWrittenThroughItsDescriptor) {
  auto segment = MakeOk(MemorySegment::PageBytes());
  EXPECT_EQ(
      mmap(nullptr, segment->bytes().size(), PROT_READ | PROT_WRITE, MAP_SHARED, segment->fd(), 0),
      MAP_FAILED);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(pwrite(segment->fd(), "x", 1, 0), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST(MemorySegmentTest, ReadOnlyMappingSeesWhatTheOwnerWrites) {
  auto segment = MakeOk(MemorySegment::PageBytes());
  const size_t bytes = segment->bytes().size();
  void* reader = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, segment->fd(), 0);
  ASSERT_NE(reader, MAP_FAILED);
  segment->bytes()[7] = 0x5a;
  EXPECT_EQ(static_cast<const uint8_t*>(reader)[7], 0x5a);
  EXPECT_EQ(mprotect(reader, bytes, PROT_READ | PROT_WRITE), -1);
  EXPECT_EQ(munmap(reader, bytes), 0);
}

TEST(MemorySegmentTest, TakesNoFurtherSeals) {
  auto segment = MakeOk(MemorySegment::PageBytes());
  const int seals = fcntl(segment->fd(), F_GET_SEALS);
  EXPECT_EQ(seals, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
  EXPECT_EQ(fcntl(segment->fd(), F_ADD_SEALS, F_SEAL_WRITE), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST(MemorySegmentTest, DescriptorIsNotInheritedAndClosesWithTheSegment) {
  auto segment = MakeOk(MemorySegment::PageBytes());
  const int fd = segment->fd();
  EXPECT_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  segment.reset();
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST(MemorySegmentTest, SizeThatIsNoMultipleOfThePageIsRefused) {
  for (uint64_t bytes : {uint64_t{0}, MemorySegment::PageBytes() + 64, uint64_t{1} << 63}) {
    const absl::Status status = MemorySegment::Make(bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(bytes)));
  }
}

TEST(MemorySegmentTest, NoDescriptorLeftSaysWhichLimitToRaise) {
  absl::Status status;
  {
    LoweredLimit limit(RLIMIT_NOFILE, 0);
    status = MemorySegment::Make(MemorySegment::PageBytes()).status();
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ulimit -n"));
}

TEST(MemorySegmentTest, KernelThatRefusesTheSizeIsAnErrorAndLeaksNoDescriptor) {
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  const int next_fd = dup(0);
  close(next_fd);
  absl::Status status;
  {
    LoweredLimit limit(RLIMIT_FSIZE, 1024);
    status = MemorySegment::Make(MemorySegment::PageBytes()).status();
  }
  std::signal(SIGXFSZ, ignored);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("make the host pool smaller"));
  const int fd_after = dup(0);
  close(fd_after);
  EXPECT_EQ(fd_after, next_fd);
}

}  // namespace
}  // namespace cairn::node
