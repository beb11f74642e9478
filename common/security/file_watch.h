// FileWatch: polls watched files on a thread of its own, and says when one cannot be taken over.
//
// Each new reason is logged once and each failed poll counted; the values stay as they were. The
// files are borrowed and outlive it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/server/periodic_thread.h"

namespace cairn {

class FileWatch {
 public:
  using Poll = std::function<absl::Status()>;
  // Gets lines for people; called on the thread.
  using Log = std::function<void(absl::string_view line)>;

  FileWatch(std::vector<Poll> polls, Log log);

  // Begins to poll; without it, PollAll is the owner's to call.
  void Start(absl::Duration interval);
  // One round. On one thread at a time.
  void PollAll();

  // Polls that failed.
  uint64_t errors() const { return errors_.load(std::memory_order_relaxed); }

 private:
  const std::vector<Poll> polls_;
  const Log log_;
  std::vector<std::string> said_;  // By poll: the reason that was logged last.
  std::atomic<uint64_t> errors_{0};
  std::optional<PeriodicThread> thread_;  // Last: it uses the others.
};

}  // namespace cairn
