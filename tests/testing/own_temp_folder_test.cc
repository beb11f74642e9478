// Where a test's files go: two processes of one test have different folders, which do not outlive
// them. The other process is a death test's child, or a shell that says what it inherited.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;

bool Exists(const std::string& path) {
  struct stat facts;
  return stat(path.c_str(), &facts) == 0;
}

TEST(OwnTempFolderTest, IsThereAndTakesFiles) {
  const std::string folder = ::testing::TempDir();
  EXPECT_THAT(folder, HasSubstr("cairn_test_"));
  ASSERT_TRUE(Exists(folder));
  std::ofstream(folder + "/a") << "a";
  EXPECT_TRUE(Exists(folder + "/a"));
}

// The test above in a process of its own, as it is run here beside this one.
TEST(OwnTempFolderTest, AnotherProcessHasAnotherWhichIsGoneAfterIt) {
  const std::string listing = ::testing::TempDir() + "/listing";
  char self[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
  const std::string run =
      std::string(self) + " --gtest_filter=OwnTempFolderTest.IsThere* >" + listing + " 2>&1";
  ASSERT_EQ(std::system(run.c_str()), 0);
  // Folders are made in that of the process that begins another.
  const std::string look = "ls " + ::testing::TempDir() + " | grep cairn_test_";
  EXPECT_NE(std::system(look.c_str()), 0);
}

TEST(OwnTempFolderDeathTest, AChildThatLeavesByExitLeavesItsParentsFolder) {
  std::ofstream(::testing::TempDir() + "/kept") << "a";
  EXPECT_EXIT(exit(3), ::testing::ExitedWithCode(3), "");
  EXPECT_TRUE(Exists(::testing::TempDir() + "/kept"));
}

}  // namespace
}  // namespace cairn::testing
