// Runs cairn_sample_program as a process: what it prints, how it exits, what signals do to it.
#include "common/server/program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "gmock/gmock.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// One run of the program, its stdout and stderr through one pipe.
class Child {
 public:
  explicit Child(std::vector<std::string> args) {
    args.insert(args.begin(), absl::StrCat(CAIRN_BIN_DIR, "/cairn_sample_program"));
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    argv.push_back(nullptr);
    int pipe_fds[2];
    CAIRN_CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDERR_FILENO);
    CAIRN_CHECK(posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    close(pipe_fds[1]);
    output_fd_ = pipe_fds[0];
  }
  ~Child() {
    close(output_fd_);
    if (waited_) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  void Signal(int number) const { CAIRN_CHECK(kill(pid_, number) == 0); }

  // Reads until `text` has been printed, or everything has.
  const std::string& ReadUntil(const std::string& text) {
    char buffer[4096];
    while (!absl::StrContains(output_, text)) {
      const ssize_t size = read(output_fd_, buffer, sizeof(buffer));
      if (size <= 0) break;
      output_.append(buffer, static_cast<size_t>(size));
    }
    return output_;
  }

  const std::string& ReadAll() { return ReadUntil("\x01 never printed"); }

  // The exit status, or minus the signal that ended it.
  int Wait() {
    int status = 0;
    CAIRN_CHECK(waitpid(pid_, &status, 0) == pid_);
    waited_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  int output_fd_ = -1;
  bool waited_ = false;
  std::string output_;
};

TEST(ProgramTest, HelpShowsOurFlagsOnly) {
  Child child({"--help"});
  const std::string output = child.ReadAll();
  EXPECT_EQ(child.Wait(), kExitOk);
  EXPECT_THAT(output, HasSubstr("sample: waits for a signal."));
  EXPECT_THAT(output, HasSubstr("--threads  (default: 4)\n      Threads, from 1 to 64.\n"));
  EXPECT_THAT(output, HasSubstr("--memory-limit  (default: 1GiB)"));
  EXPECT_THAT(output, Not(HasSubstr("fromenv")));
}

TEST(ProgramTest, VersionIsOneLine) {
  Child child({"--version"});
  EXPECT_EQ(child.ReadAll(), "sample 1.2.3\n");
  EXPECT_EQ(child.Wait(), kExitOk);
}

TEST(ProgramTest, PrintConfigShowsEveryFlagWithItsHelp) {
  Child child({"--print-config", "--threads=9"});
  const std::string output = child.ReadAll();
  EXPECT_EQ(child.Wait(), kExitOk);
  EXPECT_EQ(output,
            "# sample 1.2.3\n\n"
            "# Goes on after the first signal, as a shutdown that never ends would, so that only a "
            "second one\n# ends it.\n--hang=false\n\n"
            "# Where it would listen.\n--listen=127.0.0.1:7000\n\n"
            "# What it may use.\n--memory-limit=1GiB\n\n"
            "# Threads, from 1 to 64.\n--threads=9\n");
}

TEST(ProgramTest, WhatPrintConfigPrintsIsAFlagFileThatGivesItAgain) {
  Child first({"--print-config", "--threads=9", "--hang", "--memory_limit=3MiB"});
  const std::string config = first.ReadAll();
  EXPECT_EQ(first.Wait(), kExitOk);
  std::string path = absl::StrCat(::testing::TempDir(), "/configXXXXXX");
  close(mkstemp(path.data()));
  std::ofstream(path) << config;
  Child second({absl::StrCat("--flagfile=", path), "--print-config"});
  EXPECT_EQ(second.ReadAll(), config);
  EXPECT_EQ(second.Wait(), kExitOk);
  unlink(path.c_str());
}

TEST(ProgramTest, AnUnknownFlagEndsItWithStatusTwoAndASuggestion) {
  Child child({"--thread=9"});
  EXPECT_EQ(child.ReadAll(), "sample: --thread: unknown flag; did you mean --threads?\n");
  EXPECT_EQ(child.Wait(), kExitUsage);
}

TEST(ProgramTest, AValueOutOfRangeEndsItWithStatusTwoAndTheRange) {
  Child child({"--threads=65", "--listen=here"});
  const std::string output = child.ReadAll();
  EXPECT_EQ(child.Wait(), kExitUsage);
  EXPECT_THAT(output, HasSubstr("sample: --listen: 'here' is no address"));
  EXPECT_THAT(output, HasSubstr("sample: --threads=65: must be from 1 to 64\n"));
}

TEST(ProgramTest, PrintConfigRefusesWhatWouldNotRun) {
  Child child({"--threads=65", "--print-config"});
  EXPECT_THAT(child.ReadAll(), HasSubstr("--threads=65"));
  EXPECT_EQ(child.Wait(), kExitUsage);
}

TEST(ProgramTest, AnArgumentThatIsNoFlagIsRefused) {
  Child child({"threads=65"});
  EXPECT_THAT(child.ReadAll(), HasSubstr("'threads=65' is no flag"));
  EXPECT_EQ(child.Wait(), kExitUsage);
}

TEST(ShutdownSignalTest, TheFirstSignalEndsItCleanly) {
  for (const int number : {SIGTERM, SIGINT}) {
    Child child({});
    EXPECT_EQ(child.ReadUntil("running\n"), "running\n");
    child.Signal(number);
    EXPECT_EQ(child.ReadAll(), "running\nstopping\n");
    EXPECT_EQ(child.Wait(), kExitOk);
  }
}

TEST(ShutdownSignalTest, TheSecondSignalEndsItAtOnce) {
  Child child({"--hang"});
  child.ReadUntil("running\n");
  child.Signal(SIGTERM);
  child.ReadUntil("stopping\n");
  child.Signal(SIGINT);
  EXPECT_EQ(child.Wait(), 128 + SIGINT);
}

}  // namespace
}  // namespace cairn
