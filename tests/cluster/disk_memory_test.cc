// What a node with a disk tier takes of memory under a load that spills and loads all the time:
// the kernel's own high-water mark of the process against the sum that the node printed.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "tests/cluster/disk_fixture.h"
#include "tests/cluster/disk_history.h"
#include "tests/cluster/disk_load.h"

namespace cairn::testing {
namespace {

// Small terms, so that one that is left out shows in the sum.
const std::vector<std::string> kSmallTerms = {
    "--host-memory=64MiB",      "--index-memory=8MiB",       "--namespace-memory=2MiB",
    "--in-flight-bytes=32MiB",  "--connections-max=64",      "--feed-queue-records=4096",
    "--request-memory=4MiB",    "--removed-remembered=1024", "--disk-index-memory=2MiB",
    "--spill-file-bytes=16MiB", "--spill-file-age-ms=100"};
constexpr uint64_t kCalls = 1500;
constexpr absl::Duration kLoadTakes = absl::Seconds(120);

using DiskMemoryTest = DiskTest;

TEST_F(DiskMemoryTest, SpillsAndLoadsStayWithinTheSum) {
  ASSERT_NO_FATAL_FAILURE(StartDiskNode(kSmallTerms));
  uint64_t sum = 0;
  const v1::DescribeResponse described = Describe();
  for (const v1::MemoryTerm& term : described.memory()) sum += term.bytes();
  DiskHistory history;
  DiskLoad load({.address = node().address(),
                 .threads = 8,
                 .prompt_blocks = kPromptBlocks,
                 .put = 3,
                 .read = 4,
                 .prefetch = 1,
                 .calls_until_kill = kCalls},
                &history);
  ASSERT_TRUE(load.AwaitKillDue(kLoadTakes));
  load.End();
  EXPECT_EQ(load.breach(), "");
  const v1::DiskReport disk = Disk();
  const uint64_t peak = node().process().PeakRssBytes();
  std::cout << "resident at most " << peak << " of " << sum << " bytes; " << disk.payload_bytes()
            << " bytes on disk, " << load.blocks_read() << " blocks read\n";
  EXPECT_LE(peak, sum);
  // It was worth something: the pool was full, and most is only on disk.
  EXPECT_GT(peak, uint64_t{64} << 20);
  EXPECT_GT(disk.payload_bytes(), uint64_t{100} << 20);
  EXPECT_GT(load.blocks_read(), 1000u);
}

}  // namespace
}  // namespace cairn::testing
