// WatchedFile: what a small file says, parsed anew when the file has changed.
//
// Poll reads the file and swaps in what it parses to; it belongs to one thread of the owner's
// (FileWatch), never to gRPC's, and holds no lock while it reads. Readers get the last good value
// at once and may keep it: shared, because a reader may hold the old one while the new one comes. A
// file that cannot be read or does not parse changes nothing, and Poll says why. All but Poll is
// thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace cairn {

// Reads a whole file; not OK names it and why.
using FileReader = std::function<absl::StatusOr<std::string>(const std::string& path)>;

// A regular file of at most kSecurityFileBytesMax: never waits, as a pipe would make it.
// FAILED_PRECONDITION naming the path.
absl::StatusOr<std::string> ReadSecurityFile(const std::string& path);

template <typename Value>
class WatchedFile {
 public:
  using Parser =
      std::function<absl::StatusOr<Value>(absl::string_view text, absl::string_view file)>;

  // Not OK when the first reading fails: a program that cannot know who may call does not start.
  static absl::StatusOr<std::unique_ptr<WatchedFile>> Open(std::string path, Parser parser,
                                                           FileReader reader) {
    std::unique_ptr<WatchedFile> file(
        new WatchedFile(std::move(path), std::move(parser), std::move(reader)));
    if (absl::Status status = file->Poll(); !status.ok()) return status;
    return file;
  }

  // OK: the value is that of the file as it was read just now. On one thread at a time.
  absl::Status Poll() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::StatusOr<std::string> text = reader_(path_);
    if (!text.ok()) return text.status();
    if (text_ != nullptr && *text_ == *text) return parsed_;
    absl::StatusOr<Value> value = parser_(*text, path_);
    parsed_ = value.status();
    text_ = std::make_unique<std::string>(*std::move(text));
    if (!value.ok()) return parsed_;
    auto shared = std::make_shared<const Value>(*std::move(value));
    {
      absl::MutexLock lock(&mutex_);
      value_.swap(shared);
    }
    generation_.fetch_add(1, std::memory_order_release);
    return parsed_;
  }

  std::shared_ptr<const Value> Get() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::ReaderMutexLock lock(&mutex_);
    return value_;
  }

  // Rises with each new value: who saw the same number sees no other value than Get's before it. No
  // lock.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

  const std::string& path() const { return path_; }

 private:
  WatchedFile(std::string path, Parser parser, FileReader reader)
      : path_(std::move(path)), parser_(std::move(parser)), reader_(std::move(reader)) {}

  const std::string path_;
  const Parser parser_;
  const FileReader reader_;
  // Poll's: as last read, and what that came to.
  std::unique_ptr<std::string> text_;
  absl::Status parsed_;
  std::atomic<uint64_t> generation_{0};
  mutable absl::Mutex mutex_;
  std::shared_ptr<const Value> value_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
