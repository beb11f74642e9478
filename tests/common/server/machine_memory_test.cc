// Builds /proc and /sys/fs/cgroup as files in a temporary directory, and once reads the real ones.
#include "common/server/machine_memory.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Optional;

class MachineMemoryTest : public ::testing::Test {
 protected:
  MachineMemoryTest() {
    root_ = absl::StrCat(::testing::TempDir(), "/rootXXXXXX");
    EXPECT_NE(mkdtemp(root_.data()), nullptr);
    Write("/proc/meminfo", "MemFree:  1 kB\nMemTotal:       8388608 kB\nBuffers: 3 kB\n");
  }
  ~MachineMemoryTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file(absl::StrCat(root_, path));
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  MachineMemory Read() {
    const auto memory = ReadMachineMemory(root_);
    EXPECT_TRUE(memory.ok()) << memory.status();
    return memory.value_or(MachineMemory{});
  }

  std::string root_;
};

TEST_F(MachineMemoryTest, WithoutCgroupsThePhysicalMemoryCounts) {
  const MachineMemory memory = Read();
  EXPECT_EQ(memory.physical, ByteSize::GiB(8));
  EXPECT_EQ(memory.cgroup, std::nullopt);
  EXPECT_EQ(memory.Usable(), ByteSize::GiB(8));
}

TEST_F(MachineMemoryTest, V2TheLeastLimitOnTheWayUpCounts) {
  Write("/proc/self/cgroup", "0::/kube/pod/container\n");
  Write("/sys/fs/cgroup/kube/pod/container/memory.max", "4294967296\n");
  Write("/sys/fs/cgroup/kube/pod/memory.max", "1073741824\n");
  Write("/sys/fs/cgroup/kube/memory.max", "max\n");
  const MachineMemory memory = Read();
  EXPECT_THAT(memory.cgroup, Optional(ByteSize::GiB(1)));
  EXPECT_THAT(memory.cgroup_file, EndsWith("/sys/fs/cgroup/kube/pod/memory.max"));
  EXPECT_EQ(memory.Usable(), ByteSize::GiB(1));
}

TEST_F(MachineMemoryTest, V2MaxIsNoLimit) {
  Write("/proc/self/cgroup", "0::/a\n");
  Write("/sys/fs/cgroup/a/memory.max", "max\n");
  EXPECT_EQ(Read().cgroup, std::nullopt);
}

TEST_F(MachineMemoryTest, V2InANamespaceTheMountIsTheGroup) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "536870912\n");
  EXPECT_THAT(Read().cgroup, Optional(ByteSize::MiB(512)));
}

TEST_F(MachineMemoryTest, APathThatIsNotVisibleFallsBackToTheMount) {
  Write("/proc/self/cgroup", "0::/../outside/x\n");
  Write("/sys/fs/cgroup/memory.max", "536870912\n");
  EXPECT_THAT(Read().cgroup, Optional(ByteSize::MiB(512)));
}

TEST_F(MachineMemoryTest, V1TheLeastLimitOnTheWayUpCounts) {
  Write("/proc/self/cgroup", "12:cpu,cpuacct:/x\n5:memory:/docker/abc\n1:name=systemd:/x\n");
  Write("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "2147483648\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_THAT(Read().cgroup, Optional(ByteSize::GiB(2)));
}

TEST_F(MachineMemoryTest, V1InAContainerTheMountIsTheGroup) {
  Write("/proc/self/cgroup", "5:memory:/docker/abc\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n");
  EXPECT_THAT(Read().cgroup, Optional(ByteSize::MiB(256)));
}

TEST_F(MachineMemoryTest, V1CountsWhatTheKernelReportsOfGroupsAbove) {
  Write("/proc/self/cgroup", "5:memory:/docker/abc\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n");
  Write("/sys/fs/cgroup/memory/memory.stat",
        "cache 0\nhierarchical_memory_limit 134217728\nrss 7\n");
  const MachineMemory memory = Read();
  EXPECT_THAT(memory.cgroup, Optional(ByteSize::MiB(128)));
  EXPECT_THAT(memory.cgroup_file, EndsWith("memory.stat"));
}

TEST_F(MachineMemoryTest, BothVersionsMountedTheLesserCounts) {
  Write("/proc/self/cgroup", "5:memory:/a\n0::/b\n");
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "3221225472\n");
  Write("/sys/fs/cgroup/b/memory.max", "2147483648\n");
  EXPECT_THAT(Read().cgroup, Optional(ByteSize::GiB(2)));
}

TEST_F(MachineMemoryTest, FilesThatMakeNoSenseAreNoLimit) {
  Write("/proc/self/cgroup", "\nrubbish\n0:\n0::relative\n0::/a\n");
  Write("/sys/fs/cgroup/a/memory.max", "lots\n");
  EXPECT_EQ(Read().cgroup, std::nullopt);
}

TEST_F(MachineMemoryTest, WithoutMemTotalItIsAnError) {
  Write("/proc/meminfo", "MemFree: 1 kB\n");
  const auto memory = ReadMachineMemory(root_);
  EXPECT_EQ(memory.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(memory.status().message()), HasSubstr("/proc/meminfo"));
}

TEST_F(MachineMemoryTest, ALimitAboveTheCgroupIsRefusedWithTheFile) {
  Write("/proc/self/cgroup", "0::/a\n");
  Write("/sys/fs/cgroup/a/memory.max", "1073741824\n");
  const MachineMemory memory = Read();
  EXPECT_TRUE(memory.CheckAllows(ByteSize::GiB(1), "memory_limit").ok());
  const absl::Status status = memory.CheckAllows(ByteSize::GiB(2), "memory_limit");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("--memory_limit=2GiB"), HasSubstr("may use 1GiB"),
                    HasSubstr("/sys/fs/cgroup/a/memory.max"), HasSubstr("raise the cgroup's")));
}

TEST_F(MachineMemoryTest, ALimitAboveThePhysicalMemoryIsRefused) {
  const absl::Status status = Read().CheckAllows(ByteSize::GiB(9), "memory_limit");
  EXPECT_EQ(std::string(status.message()),
            "--memory_limit=9GiB: this process may use 8GiB (physical memory); lower "
            "--memory_limit");
}

TEST(RealMachineMemoryTest, ThisMachineTellsItsMemory) {
  const auto memory = ReadMachineMemory("/");
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_GT(memory->Usable(), ByteSize::MiB(64));
}

}  // namespace
}  // namespace cairn
