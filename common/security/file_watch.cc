#include "common/security/file_watch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/check.h"

namespace cairn {
namespace {

std::vector<FileWatch::File> Nameless(std::vector<FileWatch::Poll> polls) {
  std::vector<FileWatch::File> files;
  for (FileWatch::Poll& poll : polls) files.push_back({.name = "", .poll = std::move(poll)});
  return files;
}

}  // namespace

FileWatch::FileWatch(std::vector<File> files, Log log) : log_(std::move(log)) {
  for (File& file : files) {
    files_.push_back(std::make_unique<Watched>());
    files_.back()->file = std::move(file);
    files_.back()->good_unix_ms = absl::ToUnixMillis(absl::Now());
  }
}

FileWatch::FileWatch(std::vector<Poll> polls, Log log)
    : FileWatch(Nameless(std::move(polls)), std::move(log)) {}

void FileWatch::Start(absl::Duration interval) {
  CAIRN_CHECK(!thread_.has_value());
  thread_.emplace("security files", interval, [this] { PollAll(); });
}

void FileWatch::PollAll() {
  for (const std::unique_ptr<Watched>& watched : files_) {
    const absl::Status status = watched->file.poll();
    if (status.ok()) {
      watched->good_unix_ms.store(absl::ToUnixMillis(absl::Now()), std::memory_order_relaxed);
    } else {
      watched->errors.fetch_add(1, std::memory_order_relaxed);
    }
    if (watched->said == status.message()) continue;
    watched->said = std::string(status.message());
    if (log_ == nullptr) continue;
    log_(status.ok() ? absl::StrCat("the ", watched->file.name.empty() ? "" : watched->file.name,
                                    watched->file.name.empty() ? "" : " ",
                                    "file, which could not be taken over, is good again")
                     : absl::StrCat("what was read before stays in force: ", watched->said));
  }
}

uint64_t FileWatch::errors() const {
  uint64_t errors = 0;
  for (const Counts& one : counts()) errors += one.errors;
  return errors;
}

std::vector<FileWatch::Counts> FileWatch::counts() const {
  std::vector<Counts> counts;
  for (const std::unique_ptr<Watched>& watched : files_) {
    counts.push_back(
        {.name = watched->file.name,
         .errors = watched->errors.load(std::memory_order_relaxed),
         .good = absl::FromUnixMillis(watched->good_unix_ms.load(std::memory_order_relaxed))});
  }
  return counts;
}

}  // namespace cairn
