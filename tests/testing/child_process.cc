#include "tests/testing/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

// glibc 2.36 forgot this in the header itself.
extern "C" {
#include <sys/pidfd.h>
}

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/check.h"

namespace cairn::testing {
namespace {

constexpr uint64_t kBytesPerKb = 1024;
constexpr size_t kReadBytes = 4096;

// Waits until `fd` can be read; false after the deadline.
bool PollUntil(int fd, absl::Time deadline) {
  while (true) {
    pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
    const absl::Duration left = std::max(deadline - absl::Now(), absl::ZeroDuration());
    const int ready = poll(&entry, 1, static_cast<int>(absl::ToInt64Milliseconds(left)));
    if (ready > 0) return true;
    if (ready == 0 && absl::Now() + absl::Milliseconds(1) >= deadline) return false;
    CAIRN_CHECK(ready >= 0 || errno == EINTR);
  }
}

absl::Status SystemError(absl::string_view what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// The process id, or an error. `in_out_fd` of -1: no stdin, stdout to the log.
absl::StatusOr<pid_t> Spawn(const ChildProcess::Options& options, int in_out_fd) {
  std::vector<std::string> command = options.command;
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, options.log_path.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (in_out_fd >= 0) {
    posix_spawn_file_actions_adddup2(&actions, in_out_fd, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, in_out_fd, STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  }
  pid_t pid = 0;
  const int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return absl::InternalError(absl::StrCat("cannot run ", argv[0], ": ", std::strerror(error)));
  }
  return pid;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(Options options) {
  CAIRN_CHECK(!options.command.empty() && !options.log_path.empty());
  int ends[2] = {-1, -1};
  if (options.talk && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return SystemError("socketpair");
  }
  const absl::StatusOr<pid_t> pid = Spawn(options, ends[1]);
  if (ends[1] >= 0) close(ends[1]);
  if (!pid.ok()) {
    if (ends[0] >= 0) close(ends[0]);
    return pid.status();
  }
  const int pid_fd = pidfd_open(*pid, 0);
  CAIRN_CHECK_MSG(pid_fd >= 0, std::strerror(errno));
  return std::unique_ptr<ChildProcess>(new ChildProcess(std::move(options), *pid, pid_fd, ends[0]));
}

ChildProcess::ChildProcess(Options options, pid_t pid, int pid_fd, int talk_fd)
    : options_(std::move(options)), pid_(pid), pid_fd_(pid_fd), talk_fd_(talk_fd) {}

ChildProcess::~ChildProcess() {
  Kill9();
  close(pid_fd_);
  if (talk_fd_ >= 0) close(talk_fd_);
}

// By the descriptor: the number may be another process's by now.
bool ChildProcess::Signal(int number) const {
  return pidfd_send_signal(pid_fd_, number, nullptr, 0) == 0;
}

void ChildProcess::Kill9() {
  if (exit_) return;
  Signal(SIGKILL);
  WaitExit(absl::InfiniteDuration());
}

std::optional<int> ChildProcess::WaitExit(absl::Duration timeout) {
  if (exit_) return exit_;
  // Nothing outlives SIGKILL for long, so "for ever" is bounded too.
  const absl::Duration bound = std::min(timeout, absl::Minutes(1));
  if (!PollUntil(pid_fd_, absl::Now() + bound)) return std::nullopt;
  int status = 0;
  pid_t reaped = 0;
  do {
    reaped = waitpid(pid_, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  CAIRN_CHECK(reaped == pid_);
  exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return exit_;
}

absl::StatusOr<std::string> ChildProcess::ReadLine(absl::Duration timeout) {
  CAIRN_CHECK(talk_fd_ >= 0);
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    if (const size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    if (!PollUntil(talk_fd_, deadline)) {
      return absl::DeadlineExceededError(
          absl::StrCat(options_.command[0], " said nothing for ", absl::FormatDuration(timeout)));
    }
    char buffer[kReadBytes];
    const ssize_t size = recv(talk_fd_, buffer, sizeof(buffer), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) {
      return absl::UnavailableError(absl::StrCat(options_.command[0], " says nothing any more"));
    }
    unread_.append(buffer, static_cast<size_t>(size));
  }
}

absl::Status ChildProcess::WriteLine(absl::string_view line) {
  CAIRN_CHECK(talk_fd_ >= 0);
  const std::string text = absl::StrCat(line, "\n");
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t size = send(talk_fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return absl::UnavailableError(absl::StrCat("nobody reads: ", line));
    sent += static_cast<size_t>(size);
  }
  return absl::OkStatus();
}

std::string ChildProcess::Log() const {
  std::ifstream file(options_.log_path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

uint64_t ChildProcess::RssBytes() const { return StatusBytes("VmRSS:"); }

uint64_t ChildProcess::PeakRssBytes() const { return StatusBytes("VmHWM:"); }

uint64_t ChildProcess::StatusBytes(absl::string_view field) const {
  std::ifstream file(absl::StrCat("/proc/", pid_, "/status"));
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, field)) continue;
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    uint64_t kilobytes = 0;
    CAIRN_CHECK_MSG(words.size() == 3 && absl::SimpleAtoi(words[1], &kilobytes), line);
    return kilobytes * kBytesPerKb;
  }
  return 0;
}

std::string MakeTempFolder() {
  const char* const base = std::getenv("TMPDIR");
  std::string path = absl::StrCat(base == nullptr ? "/tmp" : base, "/cairn_test_XXXXXX");
  CAIRN_CHECK_MSG(mkdtemp(path.data()) != nullptr, std::strerror(errno));
  return path;
}

}  // namespace cairn::testing
