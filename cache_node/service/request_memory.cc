#include "cache_node/service/request_memory.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/hex.h"
#include "common/rpc/retry_status.h"
#include "common/wire/limits.h"

namespace cairn::node {

RequestMemory::Turn::Turn(Turn&& other) noexcept { *this = std::move(other); }

RequestMemory::Turn& RequestMemory::Turn::operator=(Turn&& other) noexcept {
  if (this == &other) return *this;
  Forget();
  memory_ = std::exchange(other.memory_, nullptr);
  key_ = std::move(other.key_);
  answer_ = std::move(other.answer_);
  return *this;
}

RequestMemory::Turn::~Turn() { Forget(); }

void RequestMemory::Turn::Remember(std::string answer) {
  if (memory_ == nullptr) return;
  memory_->Remember(key_, std::move(answer));
  memory_ = nullptr;
}

void RequestMemory::Turn::Forget() {
  if (memory_ != nullptr) memory_->Forget(key_);
  memory_ = nullptr;
}

absl::StatusOr<RequestMemory::Turn> RequestMemory::Begin(absl::string_view caller,
                                                         absl::string_view id, uint64_t body_hash) {
  Turn turn;
  if (id.empty()) return turn;
  if (id.size() != kRequestIdBytes) {
    return absl::InvalidArgumentError(absl::StrCat("request_id: ", id.size(), " bytes, must be ",
                                                   kRequestIdBytes, " random ones or none"));
  }
  turn.key_ = absl::StrCat(id, caller);  // The id has a fixed length, so no two pairs are alike.
  absl::MutexLock lock(&mutex_);
  const auto it = entries_.find(turn.key_);
  if (it != entries_.end()) {
    const Entry& entry = it->second;
    if (entry.body_hash != body_hash) {
      return absl::InvalidArgumentError(
          absl::StrCat("request_id ", ToHex(id),
                       ": used before for a request with another body; take a new id"));
    }
    if (entry.running) {
      return WithRetryAfter(
          absl::AbortedError(absl::StrCat("request_id ", ToHex(id), ": still running; ask again")),
          options_.retry_after);
    }
    turn.answer_ = entry.answer;
    return turn;
  }
  if (entries_.size() >= options_.entries_max && by_age_.empty()) {
    return WithRetryAfter(
        absl::ResourceExhaustedError(
            absl::StrCat("requests with ids that run at once: ", options_.entries_max, " at most")),
        options_.retry_after);
  }
  if (entries_.size() >= options_.entries_max) ForgetOldest();
  Entry entry{.body_hash = body_hash, .running = true, .answer = {}, .age = {}};
  bytes_ += BytesOf(turn.key_, entry);
  entries_.emplace(turn.key_, std::move(entry));
  CAIRN_CHECK(entries_.size() <= options_.entries_max);
  turn.memory_ = this;
  return turn;
}

void RequestMemory::Remember(const std::string& key, std::string answer) {
  absl::MutexLock lock(&mutex_);
  const auto it = entries_.find(key);
  CAIRN_CHECK(it != entries_.end() && it->second.running);
  Entry& entry = it->second;
  bytes_ += answer.size();
  entry.running = false;
  entry.answer = std::move(answer);
  entry.age = by_age_.insert(by_age_.end(), key);
  while (bytes_ > options_.bytes_max && !by_age_.empty()) ForgetOldest();
}

void RequestMemory::Forget(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  const auto it = entries_.find(key);
  CAIRN_CHECK(it != entries_.end() && it->second.running);
  bytes_ -= BytesOf(key, it->second);
  entries_.erase(it);
}

void RequestMemory::ForgetOldest() {
  const auto it = entries_.find(by_age_.front());
  CAIRN_CHECK(it != entries_.end() && !it->second.running);
  bytes_ -= BytesOf(it->first, it->second);
  by_age_.pop_front();
  entries_.erase(it);
}

uint64_t RequestMemory::BytesOf(const std::string& key, const Entry& entry) {
  return kEntryBytes + 2 * key.size() + entry.answer.size();
}

size_t RequestMemory::entries() const {
  absl::MutexLock lock(&mutex_);
  return entries_.size();
}

uint64_t RequestMemory::bytes() const {
  absl::MutexLock lock(&mutex_);
  return bytes_;
}

}  // namespace cairn::node
