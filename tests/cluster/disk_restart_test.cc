// The node's disk tier over kills and starts: what was written is found again with its bytes, what
// was removed stays gone, and one directory is one node's.
#include <string>

#include "absl/strings/str_cat.h"
#include "common/server/program.h"
#include "tests/cluster/disk_fixture.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DiskRestartTest : public DiskTest {
 protected:
  void KillAndStart() {
    node().Kill9();
    ASSERT_NO_FATAL_FAILURE(StartDiskNode());
    ASSERT_TRUE(AwaitRecovered());
  }
  void ExpectThere(uint32_t number, const std::string& salt = "") {
    const LeasedRead read = ReadPrompt(number, salt);
    EXPECT_EQ(read.usable, kPromptBlocks) << "prompt " << number << salt;
    EXPECT_EQ(read.wrong, 0u);
  }
  void ExpectGone(uint32_t number, const std::string& salt = "") {
    EXPECT_EQ(ReadPrompt(number, salt).present, 0u) << "prompt " << number << salt;
  }
};

TEST_F(DiskRestartTest, BlocksAreThereAgainAfterAKill) {
  ASSERT_NO_FATAL_FAILURE(StartDiskNode());
  constexpr uint32_t kPrompts = 2 * kPoolBlocks / kPromptBlocks;
  ASSERT_NO_FATAL_FAILURE(PutOnDisk(1, kPrompts));
  ASSERT_NO_FATAL_FAILURE(KillAndStart());
  EXPECT_EQ(Disk().blocks(), kPrompts * kPromptBlocks);
  EXPECT_EQ(Describe().blocks(), 0u) << "in host memory";
  for (uint32_t number = 1; number <= kPrompts; ++number) ExpectThere(number);
  EXPECT_EQ(Disk().damaged(), 0u);
}

TEST_F(DiskRestartTest, KillsAtAnyMomentLoseBlocksAndNothingElse) {
  ASSERT_NO_FATAL_FAILURE(StartDiskNode());
  for (uint32_t round = 0; round < 4; ++round) {
    // The last ones are on their way to disk when the kill comes.
    for (uint32_t i = 0; i < 10; ++i) ASSERT_NO_FATAL_FAILURE(Put(100 * round + i));
    ASSERT_NO_FATAL_FAILURE(KillAndStart());
    for (uint32_t i = 0; i < 10; ++i) {
      const LeasedRead read = ReadPrompt(100 * round + i);
      EXPECT_EQ(read.wrong, 0u);
      EXPECT_EQ(read.usable, read.present);
    }
    EXPECT_EQ(Disk().damaged(), 0u);
  }
}

TEST_F(DiskRestartTest, WhatWasClearedOrDeletedStaysGone) {
  ASSERT_NO_FATAL_FAILURE(StartDiskNode());
  ASSERT_NO_FATAL_FAILURE(PutOnDisk(1, 2));
  ASSERT_NO_FATAL_FAILURE(PutOnDisk(3, 1, "secret"));
  const auto cleared = client().ClearScope(name_space().fingerprint(), ScopeOf("secret"));
  ASSERT_TRUE(cleared.ok()) << cleared.status();
  EXPECT_EQ(cleared->blocks(), kPromptBlocks);
  const auto deleted = client().Delete(name_space().fingerprint(), MakePrompt(2)->keys());
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  ASSERT_NO_FATAL_FAILURE(KillAndStart());
  ExpectThere(1);
  ExpectGone(2);
  ExpectGone(3, "secret");
  // And can be written anew.
  ASSERT_NO_FATAL_FAILURE(PutOnDisk(3, 1, "secret"));
  ASSERT_NO_FATAL_FAILURE(KillAndStart());
  ExpectThere(3, "secret");
}

TEST_F(DiskRestartTest, WhatWasRetiredStaysGone) {
  ASSERT_NO_FATAL_FAILURE(StartDiskNode());
  ASSERT_NO_FATAL_FAILURE(PutOnDisk(1, 1));
  const auto retired = client().RetireNamespace(name_space().fingerprint());
  ASSERT_TRUE(retired.ok()) << retired.status();
  EXPECT_TRUE(retired->done());
  EXPECT_EQ(retired->blocks(), kPromptBlocks);
  ASSERT_NO_FATAL_FAILURE(KillAndStart());  // Which registers the namespace again.
  ExpectGone(1);
  const auto again = client().RetireNamespace(name_space().fingerprint());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_GT(again->epoch(), retired->epoch());
}

TEST_F(DiskRestartTest, ASecondNodeInTheSameDirectoryIsRefused) {
  ASSERT_NO_FATAL_FAILURE(StartDiskNode());
  ASSERT_NO_FATAL_FAILURE(PutOnDisk(1, 1));
  std::vector<std::string> flags = {"--listen=127.0.0.1:0", "--insecure", "--node-id=second",
                                    "--metrics-listen="};
  for (const std::string& flag : DiskFlags()) flags.push_back(flag);
  const ProgramRun run = RunToEnd(absl::StrCat(CAIRN_BIN_DIR, "/cairn-node"), flags, kSoon);
  EXPECT_EQ(run.exit_status, kExitFailure);
  EXPECT_THAT(run.output, HasSubstr(disk_dir()));
  ExpectThere(1);
}

TEST_F(DiskRestartTest, FlagsThatDoNotFitAreNamed) {
  const ProgramRun run =
      RunToEnd(absl::StrCat(CAIRN_BIN_DIR, "/cairn-node"),
               {"--insecure", "--node-id=test", absl::StrCat("--disk-dir=", disk_dir()),
                "--spill-admission=never"},
               kSoon);
  EXPECT_EQ(run.exit_status, kExitUsage);
  EXPECT_THAT(run.output, AllOf(HasSubstr("--disk-bytes=0B"), HasSubstr("--spill-admission=never"),
                                HasSubstr("second-touch")));
}

TEST_F(DiskRestartTest, SigtermWritesWhatIsOnlyInMemory) {
  const std::vector<std::string> flags = {"--spill-admission=second-touch",
                                          "--drain-grace-ms=60000"};
  ASSERT_NO_FATAL_FAILURE(StartDiskNode(flags));
  for (uint32_t number = 1; number <= 5; ++number) ASSERT_NO_FATAL_FAILURE(Put(number));
  EXPECT_EQ(Disk().blocks(), 0u);
  EXPECT_EQ(node().Terminate(kSoon), kExitOk);
  ASSERT_NO_FATAL_FAILURE(StartDiskNode(flags));
  ASSERT_TRUE(AwaitRecovered());
  EXPECT_EQ(Disk().blocks(), 5 * kPromptBlocks);
  for (uint32_t number = 1; number <= 5; ++number) ExpectThere(number);
}

}  // namespace
}  // namespace cairn::testing
