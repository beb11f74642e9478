// Parses command lines and flag files (in a temporary directory) into the flags defined here; a
// FlagSaver restores them after each test.
#include "common/server/flag_parser.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "common/server/byte_size.h"
#include "common/server/flag_names.h"
#include "gmock/gmock.h"

ABSL_FLAG(int, test_threads, 4, "Threads.");
ABSL_FLAG(bool, test_insecure, false, "Plain text.");
ABSL_FLAG(std::string, test_listen, "127.0.0.1:1", "Where.");
ABSL_FLAG(cairn::ByteSize, test_pool_bytes, cairn::ByteSize::MiB(64), "How much.");

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

class FlagParserTest : public ::testing::Test {
 protected:
  static absl::StatusOr<CommandLine> Parse(const std::vector<std::string>& args) {
    return ParseCommandLine(args);
  }

  static std::string ErrorOf(const std::vector<std::string>& args) {
    const auto line = Parse(args);
    EXPECT_EQ(line.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(line.status().message());
  }

  std::string WriteFile(const std::string& name, const std::string& text) {
    const std::string path = absl::StrCat(directory_, "/", name);
    std::ofstream(path) << text;
    return path;
  }

 private:
  static std::string MakeDirectory() {
    std::string name = absl::StrCat(::testing::TempDir(), "/flagsXXXXXX");
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    return name;
  }

  absl::FlagSaver saver_;
  const std::string directory_ = MakeDirectory();
};

TEST_F(FlagParserTest, SetsFlagsInEachForm) {
  const auto line = Parse(
      {"--test_threads=7", "--test-listen", "[::1]:5", "--test_insecure", "-test_pool_bytes=1KiB"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(absl::GetFlag(FLAGS_test_threads), 7);
  EXPECT_EQ(absl::GetFlag(FLAGS_test_listen), "[::1]:5");
  EXPECT_TRUE(absl::GetFlag(FLAGS_test_insecure));
  EXPECT_EQ(absl::GetFlag(FLAGS_test_pool_bytes), ByteSize::KiB(1));
  EXPECT_EQ(line->action, CommandLineAction::kRun);
}

TEST_F(FlagParserTest, ABoolIsNegatedAndNeverTakesTheNextArgument) {
  ASSERT_TRUE(Parse({"--test_insecure"}).ok());
  const auto line = Parse({"--notest_insecure", "put"});
  ASSERT_TRUE(line.ok());
  EXPECT_FALSE(absl::GetFlag(FLAGS_test_insecure));
  EXPECT_THAT(line->arguments, ElementsAre("put"));
  ASSERT_TRUE(Parse({"--test_insecure=true"}).ok());
  EXPECT_TRUE(absl::GetFlag(FLAGS_test_insecure));
}

TEST_F(FlagParserTest, TheLastValueWins) {
  ASSERT_TRUE(Parse({"--test_threads=7", "--test_threads=8"}).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_test_threads), 8);
}

TEST_F(FlagParserTest, ADashAndWhatFollowsTwoDashesAreArguments) {
  const auto line = Parse({"keys", "--test_listen", "-", "-", "--", "--test_threads=7"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(absl::GetFlag(FLAGS_test_listen), "-");
  EXPECT_EQ(absl::GetFlag(FLAGS_test_threads), 4);
  EXPECT_THAT(line->arguments, ElementsAre("keys", "-", "--test_threads=7"));
}

TEST_F(FlagParserTest, UnknownFlagIsNamedWithTheNearestOne) {
  EXPECT_EQ(ErrorOf({"--test_thread=7"}),
            "--test-thread: unknown flag; did you mean --test-threads?");
  EXPECT_EQ(ErrorOf({"--print_confg"}),
            "--print-confg: unknown flag; did you mean --print-config?");
  EXPECT_EQ(ErrorOf({"--zzzzzz"}), "--zzzzzz: unknown flag; --help lists all");
}

TEST_F(FlagParserTest, ABadValueIsNamedWithItsFlag) {
  EXPECT_THAT(ErrorOf({"--test_threads=many"}),
              HasSubstr("--test-threads=many: no value of this flag's kind; --help says"));
  EXPECT_THAT(ErrorOf({"--test_threads=99999999999"}), HasSubstr("--test-threads=99999999999"));
  EXPECT_THAT(ErrorOf({"--test_insecure=perhaps"}), HasSubstr("--test-insecure=perhaps"));
  EXPECT_THAT(
      ErrorOf({"--test_pool_bytes=1GB"}),
      AllOf(HasSubstr("--test-pool-bytes=1GB: '1GB' is no size"), HasSubstr("KiB, MiB, GiB")));
}

TEST_F(FlagParserTest, AMissingValueIsNamed) {
  EXPECT_EQ(ErrorOf({"--test_threads"}), "--test-threads: needs a value");
  EXPECT_EQ(ErrorOf({"--test_threads", "--test_insecure"}), "--test-threads: needs a value");
}

TEST_F(FlagParserTest, AllMistakesComeAtOnce) {
  EXPECT_EQ(ErrorOf({"--qqqqqq=1", "--test_listen", "x", "--test_threads"}),
            "--qqqqqq: unknown flag; --help lists all\n--test-threads: needs a value");
}

TEST_F(FlagParserTest, WordsThatAskForSomethingAreNoFlags) {
  EXPECT_EQ(Parse({"--help"})->action, CommandLineAction::kHelp);
  EXPECT_EQ(Parse({"--version"})->action, CommandLineAction::kVersion);
  EXPECT_EQ(Parse({"--print-config"})->action, CommandLineAction::kPrintConfig);
  EXPECT_EQ(ErrorOf({"--help=yes"}), "--help: takes no value");
}

TEST_F(FlagParserTest, AFlagFileSetsFlagsInPlace) {
  const std::string path = WriteFile("node.flags",
                                     "# the node\n\n  --test_threads=6  \r\n--test_insecure\n"
                                     "--test_listen=a=b, c");
  ASSERT_TRUE(Parse({"--test_threads=2", absl::StrCat("--flagfile=", path)}).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_test_threads), 6);
  EXPECT_TRUE(absl::GetFlag(FLAGS_test_insecure));
  EXPECT_EQ(absl::GetFlag(FLAGS_test_listen), "a=b, c");
  ASSERT_TRUE(Parse({"--flagfile", path, "--test_threads=3"}).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_test_threads), 3);
}

TEST_F(FlagParserTest, AMistakeInAFlagFileIsNamedWithItsLine) {
  const std::string path = WriteFile(
      "bad.flags", "--test_threads=6\n--test_thread=7\ntest_threads=8\n--test_threads=x\n");
  EXPECT_THAT(ErrorOf({absl::StrCat("--flagfile=", path)}),
              AllOf(HasSubstr(absl::StrCat(path, ":2: --test-thread: unknown flag")),
                    HasSubstr(absl::StrCat(path, ":3: 'test_threads=8' is no --name=value")),
                    HasSubstr(absl::StrCat(path, ":4: --test-threads=x"))));
}

TEST_F(FlagParserTest, FlagFilesNestWithinABound) {
  const std::string inner = WriteFile("inner.flags", "--test_threads=5\n");
  const std::string outer = WriteFile("outer.flags", absl::StrCat("--flagfile=", inner, "\n"));
  ASSERT_TRUE(Parse({absl::StrCat("--flagfile=", outer)}).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_test_threads), 5);
  std::string path = inner;
  for (int depth = 1; depth < kFlagFileDepthMax; ++depth) {
    path = WriteFile(absl::StrCat("depth", depth), absl::StrCat("--flagfile=", path, "\n"));
  }
  EXPECT_TRUE(Parse({absl::StrCat("--flagfile=", path)}).ok());
  path = WriteFile("deepest.flags", absl::StrCat("--flagfile=", path, "\n"));
  EXPECT_THAT(ErrorOf({absl::StrCat("--flagfile=", path)}), HasSubstr("more than 8 deep"));
}

TEST_F(FlagParserTest, AFlagFileThatCannotBeReadIsNamed) {
  EXPECT_EQ(ErrorOf({"--flagfile=/nowhere/x.flags"}),
            "--flagfile=/nowhere/x.flags: cannot read this file");
  EXPECT_EQ(ErrorOf({"--flagfile=/tmp"}), "--flagfile=/tmp: cannot read this file");
  EXPECT_EQ(ErrorOf({"--flagfile="}), "--flagfile: needs a path");
  const std::string big = WriteFile("big.flags", std::string(kFlagFileBytesMax + 1, '#'));
  EXPECT_THAT(ErrorOf({absl::StrCat("--flagfile=", big)}), HasSubstr("more than 1048576 bytes"));
}

TEST_F(FlagParserTest, AValueWithALineBreakIsRefused) {
  EXPECT_EQ(ErrorOf({"--test_listen=a\nb"}), "--test-listen: its value holds a line break");
}

TEST(FlagNamesTest, NearestIsTheLeastEditsAway) {
  const std::vector<std::string> names = {"host_pool_bytes", "listen", "memory_limit"};
  EXPECT_THAT(NearestName("lisen", names), Optional(std::string("listen")));
  EXPECT_THAT(NearestName("memorylimit", names), Optional(std::string("memory_limit")));
  EXPECT_THAT(NearestName("pool_bytes", names), std::nullopt);
  EXPECT_THAT(NearestName(std::string(1000, 'x'), names), std::nullopt);
}

TEST(FlagNamesTest, ListsTheFlagsInOrder) {
  EXPECT_THAT(AllFlagNames(),
              ElementsAre("test_insecure", "test_listen", "test_pool_bytes", "test_threads"));
}

}  // namespace
}  // namespace cairn
