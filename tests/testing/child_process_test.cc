// Runs programs that every system has, and looks at what a parent can know of them.
#include "tests/testing/child_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

// glibc 2.36 forgot this in the header itself.
extern "C" {
#include <sys/pidfd.h>
}

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kBound = absl::Seconds(20);

class ChildProcessTest : public ::testing::Test {
 protected:
  ~ChildProcessTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<ChildProcess> Shell(const std::string& script, bool talk) {
    auto child = ChildProcess::Start({.command = {"/bin/sh", "-c", script},
                                      .log_path = absl::StrCat(folder_, "/log"),
                                      .talk = talk});
    EXPECT_TRUE(child.ok()) << child.status();
    return *std::move(child);
  }

  const std::string folder_ = MakeTempFolder();
};

TEST_F(ChildProcessTest, SaysTheExitStatus) {
  EXPECT_EQ(Shell("exit 7", false)->WaitExit(kBound), 7);
}

TEST_F(ChildProcessTest, SaysWhichSignalEndedIt) {
  const auto child = Shell("read line", true);
  EXPECT_TRUE(child->Signal(SIGTERM));
  EXPECT_EQ(child->WaitExit(kBound), -SIGTERM);
  EXPECT_FALSE(child->Signal(SIGTERM)) << "nobody is there any more";
}

TEST_F(ChildProcessTest, KeepsWhatWasWrittenInTheLog) {
  const auto child = Shell("echo to stdout; echo to stderr >&2", false);
  child->WaitExit(kBound);
  EXPECT_THAT(child->Log(), HasSubstr("to stdout\n"));
  EXPECT_THAT(child->Log(), HasSubstr("to stderr\n"));
}

TEST_F(ChildProcessTest, TalksInLines) {
  const auto child = Shell("echo ready; read word; echo got $word; echo last", true);
  EXPECT_EQ(child->ReadLine(kBound).value_or(""), "ready");
  EXPECT_TRUE(child->WriteLine("this").ok());
  EXPECT_EQ(child->ReadLine(kBound).value_or(""), "got this");
  EXPECT_EQ(child->ReadLine(kBound).value_or(""), "last");
  EXPECT_EQ(child->ReadLine(kBound).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ChildProcessTest, WaitsNoLongerThanItIsTold) {
  const auto child = Shell("read line", true);
  EXPECT_EQ(child->WaitExit(absl::Milliseconds(10)), std::nullopt);
  EXPECT_EQ(child->ReadLine(absl::Milliseconds(10)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ChildProcessTest, WritingToADeadOneIsUnavailable) {
  const auto child = Shell("exit 0", true);
  child->WaitExit(kBound);
  EXPECT_EQ(child->WriteLine("hello").code(), absl::StatusCode::kUnavailable);
}

TEST_F(ChildProcessTest, AStoppedOneStandsStillWhenStopReturns) {
  const auto child = Shell("while :; do :; done", false);
  child->Stop();
  std::ifstream stat(absl::StrCat("/proc/", child->pid(), "/stat"));
  std::string number, name, state;
  stat >> number >> name >> state;
  EXPECT_EQ(state, "T");
  ASSERT_TRUE(child->Signal(SIGCONT));
  child->Stop();
  EXPECT_EQ(child->WaitExit(absl::ZeroDuration()), std::nullopt) << "it was not reaped";
}

TEST_F(ChildProcessTest, KnowsResidentMemoryWhileItRuns) {
  const auto child = Shell("echo ready; read line", true);
  EXPECT_TRUE(child->ReadLine(kBound).ok());
  EXPECT_GT(child->RssBytes(), 0u);
  EXPECT_GE(child->PeakRssBytes(), child->RssBytes());
  child->Kill9();
  EXPECT_EQ(child->RssBytes(), 0u);
}

// The pid's process is gone, or a zombie that somebody else reaps.
bool AwaitEnd(pid_t pid) {
  const int fd = pidfd_open(pid, 0);
  if (fd < 0) return errno == ESRCH;
  pollfd entry = {.fd = fd, .events = POLLIN, .revents = 0};
  const int ready = poll(&entry, 1, static_cast<int>(absl::ToInt64Milliseconds(kBound)));
  close(fd);
  return ready == 1;
}

TEST_F(ChildProcessTest, DiesWithAParentThatIsKilled) {
  const std::string pid_file = absl::StrCat(folder_, "/pid");
  const pid_t parent = fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    const auto child = ChildProcess::Start(
        {.command = {"/bin/sleep", "100"}, .log_path = absl::StrCat(folder_, "/log")});
    std::ofstream(pid_file) << (*child)->pid() << std::flush;
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(parent, &status, 0), parent);
  ASSERT_TRUE(WIFSIGNALED(status));
  pid_t pid = 0;
  std::ifstream(pid_file) >> pid;
  ASSERT_GT(pid, 0);
  EXPECT_TRUE(AwaitEnd(pid));
}

TEST_F(ChildProcessTest, AProgramThatIsNotThereIsAnError) {
  const auto child = ChildProcess::Start(
      {.command = {absl::StrCat(folder_, "/absent")}, .log_path = absl::StrCat(folder_, "/log")});
  EXPECT_THAT(child.status().message(), HasSubstr("absent"));
}

}  // namespace
}  // namespace cairn::testing
