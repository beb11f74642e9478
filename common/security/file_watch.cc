#include "common/security/file_watch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn {

FileWatch::FileWatch(std::vector<Poll> polls, Log log)
    : polls_(std::move(polls)), log_(std::move(log)), said_(polls_.size()) {}

void FileWatch::Start(absl::Duration interval) {
  CAIRN_CHECK(!thread_.has_value());
  thread_.emplace("security files", interval, [this] { PollAll(); });
}

void FileWatch::PollAll() {
  for (size_t i = 0; i < polls_.size(); ++i) {
    const absl::Status status = polls_[i]();
    if (!status.ok()) errors_.fetch_add(1, std::memory_order_relaxed);
    if (said_[i] == status.message()) continue;
    said_[i] = std::string(status.message());
    if (log_ == nullptr) continue;
    log_(status.ok() ? "a file that could not be taken over is good again"
                     : absl::StrCat("what was read before stays in force: ", said_[i]));
  }
}

}  // namespace cairn
