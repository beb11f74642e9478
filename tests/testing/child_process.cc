#include "tests/testing/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
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
// What a child that did not become its program ends with; a shell says the same.
constexpr int kNotStarted = 127;

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

// What a child's standard streams are; closed by whoever opened them.
struct Streams {
  int in = -1;
  int out = -1;
  int err = -1;
};

// In the child, where nothing may be called that takes a lock. Says through `failure_fd` why the
// program did not begin.
[[noreturn]] void BecomeProgram(char* const* argv, const Streams& streams, pid_t parent,
                                int failure_fd) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent &&
      dup2(streams.in, STDIN_FILENO) >= 0 && dup2(streams.out, STDOUT_FILENO) >= 0 &&
      dup2(streams.err, STDERR_FILENO) >= 0) {
    execve(argv[0], argv, environ);
  }
  const int error = errno;
  if (write(failure_fd, &error, sizeof(error)) != sizeof(error)) _exit(kNotStarted + 1);
  _exit(kNotStarted);
}

// The process id, or an error. posix_spawn cannot tie a child to its parent's life.
absl::StatusOr<pid_t> ForkAndExec(const std::vector<std::string>& command, const Streams& streams) {
  std::vector<std::string> words = command;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int failure[2] = {-1, -1};
  if (pipe2(failure, O_CLOEXEC) != 0) return SystemError("pipe2");
  const pid_t parent = getpid();
  // Without the handlers that libraries left for forks: nothing but exec follows.
  const pid_t pid = _Fork();
  if (pid == 0) BecomeProgram(argv.data(), streams, parent, failure[1]);
  close(failure[1]);
  int error = pid < 0 ? errno : 0;
  if (pid > 0 && read(failure[0], &error, sizeof(error)) > 0) waitpid(pid, nullptr, 0);
  close(failure[0]);
  if (error == 0) return pid;
  return absl::InternalError(absl::StrCat("cannot run ", command[0], ": ", std::strerror(error)));
}

// `in_out_fd` of -1: no stdin, stdout to the log.
absl::StatusOr<pid_t> Spawn(const ChildProcess::Options& options, int in_out_fd) {
  const int log = open(options.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0) return SystemError(options.log_path);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  CAIRN_CHECK_MSG(nothing >= 0, std::strerror(errno));
  const bool talk = in_out_fd >= 0;
  const absl::StatusOr<pid_t> pid =
      ForkAndExec(options.command,
                  {.in = talk ? in_out_fd : nothing, .out = talk ? in_out_fd : log, .err = log});
  close(log);
  close(nothing);
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

void ChildProcess::Stop() {
  if (exit_ || !Signal(SIGSTOP)) return;
  // The kernel tells the parent when the last thread has stopped. WNOWAIT: nothing is reaped.
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT);
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
