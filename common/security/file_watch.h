// FileWatch: polls watched files on a thread of its own, and says when one cannot be taken over.
//
// Each new reason is logged once and each failed poll counted; the values stay as they were. The
// files are borrowed and outlive it. What it counts is served by FileWatchMetrics.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/server/line_log.h"
#include "common/server/periodic_thread.h"

namespace cairn {

class FileWatch {
 public:
  using Poll = std::function<absl::Status()>;
  // Called on the thread.
  using Log = LineLog;

  // What is looked at, by a name for people; good when the watch is made.
  struct File {
    std::string name;
    Poll poll;
  };
  struct Counts {
    std::string name;
    uint64_t errors = 0;  // Polls that failed.
    absl::Time good;      // When a poll was good last.
  };

  FileWatch(std::vector<File> files, Log log);
  // Files without names.
  FileWatch(std::vector<Poll> polls, Log log);

  // Begins to poll; without it, PollAll is the owner's to call.
  void Start(absl::Duration interval);
  // One round. On one thread at a time.
  void PollAll();

  // Polls that failed, of all files. Any thread.
  uint64_t errors() const;
  // By file. Any thread.
  std::vector<Counts> counts() const;

 private:
  struct Watched {
    File file;
    std::string said;  // The reason that was logged last.
    std::atomic<uint64_t> errors{0};
    std::atomic<int64_t> good_unix_ms{0};
  };

  std::vector<std::unique_ptr<Watched>> files_;  // As made.
  const Log log_;
  std::optional<PeriodicThread> thread_;  // Last: it uses the others.
};

}  // namespace cairn
