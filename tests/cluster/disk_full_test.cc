// The node over a volume that fills up: it serves, says so, and writes again when there is room,
// without a restart; and over files that may not grow. Where this process may not mount one, the
// full disk is that of the engine's own tests, by script.
#include <sys/mount.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "tests/cluster/disk_fixture.h"

namespace cairn::testing {
namespace {

class DiskFullTest : public DiskTest {
 protected:
  DiskFullTest() : volume_(MakeTempFolder()) {
    mounted_ = mount("tmpfs", volume_.c_str(), "tmpfs", 0, "size=200m") == 0;
    if (!mounted_) std::cerr << "mounting a tmpfs: " << std::strerror(errno) << "\n";
  }
  ~DiskFullTest() override {
    if (mounted_) umount2(volume_.c_str(), MNT_DETACH);
    std::error_code ignored;
    std::filesystem::remove(volume_, ignored);
  }

  std::string filler() const { return volume_ + "/filler"; }
  // To the last byte.
  void Fill() const {
    std::ofstream file(filler());
    const std::string chunk(1 << 20, 'x');
    while (file.write(chunk.data(), static_cast<std::streamsize>(chunk.size())).flush()) {
    }
  }

  const std::string volume_;
  bool mounted_ = false;
};

TEST_F(DiskFullTest, ItServesSaysSoAndWritesAgainWhenThereIsRoom) {
  if (!mounted_) return;
  ASSERT_NO_FATAL_FAILURE(
      StartDiskNode({absl::StrCat("--disk-dir=", volume_, "/disk"), "--disk-bytes=192MiB"}));
  ASSERT_NO_FATAL_FAILURE(PutOnDisk(1, 5));
  Fill();
  uint32_t number = 100;
  v1::DiskReport full = Disk();
  for (; full.health() != v1::DISK_HEALTH_FULL; full = Disk()) {
    ASSERT_NO_FATAL_FAILURE(Put(number++));
  }
  // Of the same report: a probe may find room for a moment.
  EXPECT_NE(full.reason(), "");

  // Blocks are written, read, found on disk and removed meanwhile.
  ASSERT_NO_FATAL_FAILURE(Put(1'000));
  EXPECT_EQ(ReadPrompt(1'000).usable, kPromptBlocks);
  for (uint32_t one = 1; one <= 5; ++one) {
    const LeasedRead read = ReadPrompt(one);
    EXPECT_EQ(read.usable, read.present);
    EXPECT_EQ(read.wrong, 0u);
  }
  EXPECT_TRUE(client().Delete(name_space().fingerprint(), MakePrompt(1)->keys()).ok());
  EXPECT_EQ(ReadPrompt(1).present, 0u);

  std::filesystem::remove(filler());
  ASSERT_TRUE(AwaitDisk(
      [](const v1::DiskReport& disk) { return disk.health() == v1::DISK_HEALTH_SERVING; }));
  ASSERT_NO_FATAL_FAILURE(PutOnDisk(2'000, 1));
}

// Another way for a disk to take no more, which by default ends a process.
TEST_F(DiskTest, AFileThatMayNotGrowCostsTheDiskAndNotTheNode) {
  constexpr uint32_t kPutsMax = 1000;
  ASSERT_NO_FATAL_FAILURE(StartDiskNode());
  ASSERT_NO_FATAL_FAILURE(PutOnDisk(1, 2));
  rlimit before{};
  ASSERT_EQ(prlimit(node().process().pid(), RLIMIT_FSIZE, nullptr, &before), 0);
  const rlimit small{.rlim_cur = 1 << 20, .rlim_max = before.rlim_max};
  ASSERT_EQ(prlimit(node().process().pid(), RLIMIT_FSIZE, &small, nullptr), 0);
  uint32_t number = 100;
  for (; Disk().health() == v1::DISK_HEALTH_SERVING; ++number) {
    ASSERT_LT(number, 100 + kPutsMax) << "the disk still takes everything";
    ASSERT_NO_FATAL_FAILURE(Put(number));
  }
  ASSERT_NO_FATAL_FAILURE(Put(5'000));
  EXPECT_EQ(ReadPrompt(5'000).usable, kPromptBlocks);
  EXPECT_EQ(ReadPrompt(5'000).wrong, 0u);

  ASSERT_EQ(prlimit(node().process().pid(), RLIMIT_FSIZE, &before, nullptr), 0);
  ASSERT_TRUE(AwaitDisk(
      [](const v1::DiskReport& disk) { return disk.health() == v1::DISK_HEALTH_SERVING; }));
  ASSERT_NO_FATAL_FAILURE(PutOnDisk(6'000, 1));
}

}  // namespace
}  // namespace cairn::testing
