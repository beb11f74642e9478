// RequestMemory: what makes retries safe. A request id belongs to (caller, id): the same id gets
// the same answer, for as long as it is remembered.
//
// A caller of it begins a turn for each request, and either remembers the answer or lets the turn
// go, which forgets that the request was ever made: only what had an effect needs remembering.
// Bounded in entries and bytes; the oldest answers are forgotten first. Thread-safe. Must outlive
// its turns.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace cairn::node {

class RequestMemory {
 public:
  // What an entry takes beside its answer: map, list and strings.
  static constexpr uint64_t kEntryBytes = 256;

  struct Options {
    size_t entries_max = 65536;
    uint64_t bytes_max = uint64_t{32} << 20;  // Of answers and kEntryBytes each.
    absl::Duration retry_after = absl::Milliseconds(50);
  };

  // One request under way. Move-only; ends with Remember, or forgets the request when destroyed.
  class Turn {
   public:
    Turn() = default;  // Of a request without an id: remembers nothing.
    Turn(Turn&& other) noexcept;
    Turn& operator=(Turn&& other) noexcept;
    ~Turn();

    // The answer of an earlier request with this id. When set, there is nothing to run.
    const std::optional<std::string>& answer() const { return answer_; }

    void Remember(std::string answer);

   private:
    friend class RequestMemory;
    void Forget();

    RequestMemory* memory_ = nullptr;
    std::string key_;
    std::optional<std::string> answer_;
  };

  explicit RequestMemory(const Options& options) : options_(options) {}

  // `body_hash` stands for all of the request but its id. An empty id gives a turn that remembers
  // nothing. INVALID_ARGUMENT: the id has another length than kRequestIdBytes, or came with another
  // body. ABORTED, with a retry delay: the first request with this id still runs.
  // RESOURCE_EXHAUSTED, with one too: entries_max requests run.
  absl::StatusOr<Turn> Begin(absl::string_view caller, absl::string_view id, uint64_t body_hash)
      ABSL_LOCKS_EXCLUDED(mutex_);

  size_t entries() const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    uint64_t body_hash = 0;
    bool running = true;
    std::string answer;
    std::list<std::string>::iterator age;  // In by_age_; valid once not running.
  };

  void Remember(const std::string& key, std::string answer) ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(const std::string& key) ABSL_LOCKS_EXCLUDED(mutex_);
  void ForgetOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static uint64_t BytesOf(const std::string& key, const Entry& entry);

  const Options options_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::list<std::string> by_age_ ABSL_GUARDED_BY(mutex_);  // Keys of answered ones, oldest first.
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace cairn::node
