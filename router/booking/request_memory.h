// RequestMemory: answers by (caller, request id), so that a retry gets what the first try got.
//
// An id belongs to its caller; what was asked under it is remembered as a digest, and another
// request under the same id is refused. Bounded: the oldest answer is forgotten first, and any
// after its TTL. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/check.h"

namespace cairn::router {

template <typename Answer>
class RequestMemory {
 public:
  RequestMemory(size_t answers_max, absl::Duration ttl) : answers_max_(answers_max), ttl_(ttl) {
    CAIRN_CHECK(answers_max > 0);
  }

  // The answer given before, or null. INVALID_ARGUMENT when another request had this id.
  absl::StatusOr<const Answer*> Find(absl::string_view caller, absl::string_view request_id,
                                     uint64_t request_digest) const {
    const auto found = entries_.find(NameOf(caller, request_id));
    if (found == entries_.end()) return nullptr;
    if (found->second.request_digest != request_digest) {
      return absl::InvalidArgumentError(
          "this request id was used for another request; take a new one for each request");
    }
    return &found->second.answer;
  }

  // REQUIRES: Find just said that there is none.
  void Remember(absl::string_view caller, absl::string_view request_id, uint64_t request_digest,
                Answer answer, absl::Time now) {
    if (order_.size() >= answers_max_) DropOldest();
    std::string name = NameOf(caller, request_id);
    order_.emplace_back(now + ttl_, name);
    const bool is_new =
        entries_.emplace(std::move(name), Entry{request_digest, std::move(answer)}).second;
    CAIRN_CHECK(is_new);
  }

  void Expire(absl::Time now) {
    while (!order_.empty() && order_.front().first <= now) DropOldest();
  }

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    uint64_t request_digest = 0;
    Answer answer;
  };

  // Unambiguous: the caller's length says where it ends.
  static std::string NameOf(absl::string_view caller, absl::string_view request_id) {
    return absl::StrCat(caller.size(), ":", caller, request_id);
  }

  void DropOldest() {
    entries_.erase(order_.front().second);
    order_.pop_front();
  }

  const size_t answers_max_;
  const absl::Duration ttl_;
  absl::flat_hash_map<std::string, Entry> entries_;
  std::deque<std::pair<absl::Time, std::string>> order_;  // One for each entry, oldest first.
};

}  // namespace cairn::router
