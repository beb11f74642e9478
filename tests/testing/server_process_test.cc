// Starts the real programs and looks at what ServerProcess says of them.
#include "tests/testing/server_process.h"

#include <signal.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr absl::Duration kBound = absl::Seconds(30);

ServerProcess::Options Options() {
  return {.program = absl::StrCat(CAIRN_BIN_DIR, "/cairn-node"),
          .flags = {"--host-memory=16MiB", "--memory-limit=1GiB"}};
}

TEST(ServerProcessTest, StartsReadyOnAPortOfItsOwn) {
  const auto first = StartNode(Options());
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = StartNode(Options());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE((*first)->address(), (*second)->address());
  const std::vector<std::string> parts = absl::StrSplit((*first)->address(), ':');
  ASSERT_THAT(parts, SizeIs(2));
  EXPECT_EQ(parts[0], "127.0.0.1");
  EXPECT_NE(parts[1], "0");
  EXPECT_GT((*first)->process().RssBytes(), 16u << 20) << "less than its pool";
}

TEST(ServerProcessTest, TerminatesAndIsKilled) {
  const auto ended = StartNode(Options());
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ((*ended)->Terminate(kBound), 0);
  const auto killed = StartNode(Options());
  ASSERT_TRUE(killed.ok()) << killed.status();
  (*killed)->Kill9();
  EXPECT_EQ((*killed)->process().WaitExit(absl::ZeroDuration()), -SIGKILL);
}

TEST(ServerProcessTest, ANodeThatEndsInsteadOfServingIsAnErrorWithItsWords) {
  ServerProcess::Options options = Options();
  options.flags.push_back("--no-such-flag");
  const auto node = StartNode(options);
  EXPECT_EQ(node.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(node.status().message(), HasSubstr("unknown flag"));
}

TEST(ServerProcessTest, ANodeThatIsNotReadyInTimeIsAnError) {
  ServerProcess::Options options = Options();
  options.ready_timeout = absl::Nanoseconds(1);
  EXPECT_EQ(StartNode(options).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(ServerProcessTest, ARouterThatListensIsReadyOnceItsNodeAnswers) {
  const auto node = StartNode(Options());
  ASSERT_TRUE(node.ok()) << node.status();
  (*node)->Stop();
  const auto router = ServerProcess::Start({.program = absl::StrCat(CAIRN_BIN_DIR, "/cairn-router"),
                                            .flags = {absl::StrCat("--nodes=", (*node)->address())},
                                            .await_ready = false});
  ASSERT_TRUE(router.ok()) << router.status();
  EXPECT_FALSE((*router)->IsReady());
  (*node)->Continue();
  EXPECT_TRUE((*router)->AwaitReady(absl::Now() + kBound).ok());
  EXPECT_TRUE((*router)->IsReady());
}

TEST(ServerProcessTest, ARunThatEndsByItselfGivesStatusAndOutput) {
  const ProgramRun run = RunToEnd(Options().program, {"--version"}, kBound);
  EXPECT_EQ(run.exit_status, 0);
  EXPECT_THAT(run.output, HasSubstr("cairn-node"));
}

}  // namespace
}  // namespace cairn::testing
