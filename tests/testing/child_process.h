// ChildProcess: a program that a test runs, talks to, and ends as it likes.
//
// Started by exec, never by fork alone, so that a parent with threads (gRPC's) can use it. Every
// wait has a bound. The destructor kills what still runs and reaps it. A test that crashes leaves
// nobody behind: the kernel kills the child when the thread that started it ends, so that thread
// must outlive the object. For use by one thread at a time, but for the memory figures and Signal,
// which any thread may ask for while the object lives.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace cairn::testing {

class ChildProcess {
 public:
  struct Options {
    // Path of the program, then its arguments.
    std::vector<std::string> command;
    // Gets what the program writes to stderr, and to stdout unless `talk`.
    std::string log_path;
    // stdin and stdout are ours: ReadLine and WriteLine. Otherwise stdin is empty.
    bool talk = false;
  };

  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(Options options);
  ~ChildProcess();

  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  // False when it has been reaped.
  bool Signal(int number) const;
  // SIGSTOP, and waits until all of its threads stand still: one that still runs on another core
  // could answer what is asked right after.
  void Stop();
  // SIGKILL, and waits until it is gone.
  void Kill9();

  // Exit status, or minus the signal that ended it; nothing when it still runs after `timeout`.
  std::optional<int> WaitExit(absl::Duration timeout);

  // The next line of stdout, without its end. DEADLINE_EXCEEDED after `timeout`; UNAVAILABLE when
  // there is none any more. REQUIRES: talk.
  absl::StatusOr<std::string> ReadLine(absl::Duration timeout);
  // UNAVAILABLE when nobody reads it. REQUIRES: talk.
  absl::Status WriteLine(absl::string_view line);

  // What it wrote to its log so far.
  std::string Log() const;

  // Resident memory, now and the most so far; 0 when it is gone.
  uint64_t RssBytes() const;
  uint64_t PeakRssBytes() const;

 private:
  ChildProcess(Options options, pid_t pid, int pid_fd, int talk_fd);
  uint64_t StatusBytes(absl::string_view field) const;

  const Options options_;
  const pid_t pid_;
  const int pid_fd_;
  const int talk_fd_;  // -1 without talk.
  std::string unread_;
  std::optional<int> exit_;
};

// The folder for a test's files, made anew: the system's temporary one with a random name.
std::string MakeTempFolder();

}  // namespace cairn::testing
