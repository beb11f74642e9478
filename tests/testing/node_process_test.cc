// Starts the real cairn-node and looks at what NodeProcess says of it.
#include "tests/testing/node_process.h"

#include <signal.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr absl::Duration kBound = absl::Seconds(30);

NodeProcess::Options Options() {
  return {.program = absl::StrCat(CAIRN_BIN_DIR, "/cairn-node"),
          .flags = {"--host-memory=16MiB", "--memory-limit=1GiB"}};
}

TEST(NodeProcessTest, StartsReadyOnAPortOfItsOwn) {
  const auto first = NodeProcess::Start(Options());
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = NodeProcess::Start(Options());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE((*first)->address(), (*second)->address());
  const std::vector<std::string> parts = absl::StrSplit((*first)->address(), ':');
  ASSERT_THAT(parts, SizeIs(2));
  EXPECT_EQ(parts[0], "127.0.0.1");
  EXPECT_NE(parts[1], "0");
  EXPECT_GT((*first)->process().RssBytes(), 16u << 20) << "less than its pool";
}

TEST(NodeProcessTest, TerminatesAndIsKilled) {
  const auto ended = NodeProcess::Start(Options());
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ((*ended)->Terminate(kBound), 0);
  const auto killed = NodeProcess::Start(Options());
  ASSERT_TRUE(killed.ok()) << killed.status();
  (*killed)->Kill9();
  EXPECT_EQ((*killed)->process().WaitExit(absl::ZeroDuration()), -SIGKILL);
}

TEST(NodeProcessTest, ANodeThatEndsInsteadOfServingIsAnErrorWithItsWords) {
  NodeProcess::Options options = Options();
  options.flags.push_back("--no-such-flag");
  const auto node = NodeProcess::Start(options);
  EXPECT_EQ(node.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(node.status().message(), HasSubstr("unknown flag"));
}

TEST(NodeProcessTest, ANodeThatIsNotReadyInTimeIsAnError) {
  NodeProcess::Options options = Options();
  options.ready_timeout = absl::Nanoseconds(1);
  EXPECT_EQ(NodeProcess::Start(options).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(NodeProcessTest, ARunThatEndsByItselfGivesStatusAndOutput) {
  const NodeRun run = RunNode(Options().program, {"--version"}, kBound);
  EXPECT_EQ(run.exit_status, 0);
  EXPECT_THAT(run.output, HasSubstr("cairn-node"));
}

}  // namespace
}  // namespace cairn::testing
