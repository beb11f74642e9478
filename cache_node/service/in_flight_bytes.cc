#include "cache_node/service/in_flight_bytes.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/rpc/retry_status.h"

namespace cairn::node {

InFlightBytes::InFlightBytes(const Options& options, const Clock* clock)
    : options_(options), clock_(clock) {
  CAIRN_CHECK(options_.bytes_max > 0);
}

InFlightBytes::~InFlightBytes() {
  absl::MutexLock lock(&mutex_);
  CAIRN_CHECK(entries_.empty() && counts_.bytes == 0);
}

void InFlightBytes::Acquire(std::shared_ptr<Stream> stream, uint64_t bytes) {
  CAIRN_CHECK(bytes > 0 && bytes <= options_.bytes_max);
  std::vector<std::shared_ptr<Stream>> admitted;
  bool queue_full = false;
  {
    absl::MutexLock lock(&mutex_);
    CAIRN_CHECK(!entries_.contains(stream.get()));
    // The queue counts whoever cannot be admitted at once.
    const bool waits = !waiting_.empty() || counts_.bytes + bytes > options_.bytes_max;
    queue_full = waits && waiting_.size() >= options_.waiting_max;
    if (queue_full) {
      ++counts_.refused_queue_full;
    } else {
      waiting_.push_back({.stream = stream, .bytes = bytes, .since = clock_->SteadyNow()});
      entries_[stream.get()] = std::prev(waiting_.end());
      admitted = AdmitWaiting();
    }
  }
  if (queue_full) {
    stream->OnRefused(
        Refusal(absl::StrCat("writers waiting for admission: ", options_.waiting_max, " already")));
  }
  for (const auto& one : admitted) one->OnAdmitted();
}

bool InFlightBytes::TryAcquire(std::shared_ptr<Stream> stream, uint64_t bytes) {
  CAIRN_CHECK(bytes > 0 && bytes <= options_.bytes_max);
  absl::MutexLock lock(&mutex_);
  const Stream* const key = stream.get();
  CAIRN_CHECK(!entries_.contains(key));
  if (!waiting_.empty() || counts_.bytes + bytes > options_.bytes_max) return false;
  holding_.push_back(
      {.stream = std::move(stream), .bytes = bytes, .since = clock_->SteadyNow(), .holds = true});
  entries_[key] = std::prev(holding_.end());
  counts_.bytes += bytes;
  return true;
}

bool InFlightBytes::Leave(const Stream* stream) {
  std::vector<std::shared_ptr<Stream>> admitted;
  {
    absl::MutexLock lock(&mutex_);
    const auto it = entries_.find(stream);
    if (it == entries_.end() || it->second->holds) return false;
    waiting_.erase(it->second);
    entries_.erase(it);
    // A large request at the head may have kept smaller ones behind it.
    admitted = AdmitWaiting();
  }
  for (const auto& one : admitted) one->OnAdmitted();
  return true;
}

void InFlightBytes::Release(const Stream* stream) {
  std::vector<std::shared_ptr<Stream>> admitted;
  std::shared_ptr<Stream> released;
  {
    absl::MutexLock lock(&mutex_);
    const auto it = entries_.find(stream);
    CAIRN_CHECK(it != entries_.end() && it->second->holds);
    CAIRN_CHECK(counts_.bytes >= it->second->bytes);
    counts_.bytes -= it->second->bytes;
    released = std::move(it->second->stream);
    holding_.erase(it->second);
    entries_.erase(it);
    admitted = AdmitWaiting();
  }
  for (const auto& one : admitted) one->OnAdmitted();
}

void InFlightBytes::Tick() {
  std::vector<std::shared_ptr<Stream>> overdue;
  std::vector<std::shared_ptr<Stream>> stalled;
  std::vector<std::shared_ptr<Stream>> admitted;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = clock_->SteadyNow();
    overdue = TakeOverdue(now);
    stalled = TellStalled(now);
    admitted = AdmitWaiting();
  }
  const absl::Status refusal =
      Refusal(absl::StrCat("no room for payload within ", absl::FormatDuration(options_.wait_max)));
  const absl::Status stall = Refusal(
      absl::StrCat("the stream was admitted and sent no message for ",
                   absl::FormatDuration(options_.stall_max), " while other writers waited"));
  for (const auto& one : overdue) one->OnRefused(refusal);
  for (const auto& one : stalled) one->OnStalled(stall);
  for (const auto& one : admitted) one->OnAdmitted();
}

void InFlightBytes::RightsChanged() {
  std::vector<std::shared_ptr<Stream>> streams;
  {
    absl::MutexLock lock(&mutex_);
    streams.reserve(entries_.size());
    for (const auto& [key, entry] : entries_) streams.push_back(entry->stream);
  }
  for (const auto& one : streams) one->OnRightsChanged();
}

InFlightBytes::Counts InFlightBytes::counts() const {
  absl::MutexLock lock(&mutex_);
  Counts counts = counts_;
  counts.waiting = waiting_.size();
  return counts;
}

std::vector<std::shared_ptr<InFlightBytes::Stream>> InFlightBytes::AdmitWaiting() {
  std::vector<std::shared_ptr<Stream>> admitted;
  while (!waiting_.empty() && counts_.bytes + waiting_.front().bytes <= options_.bytes_max) {
    const Queue::iterator entry = waiting_.begin();
    holding_.splice(holding_.end(), waiting_, entry);
    entry->holds = true;
    entry->since = clock_->SteadyNow();
    counts_.bytes += entry->bytes;
    admitted.push_back(entry->stream);
  }
  CAIRN_CHECK(counts_.bytes <= options_.bytes_max);
  return admitted;
}

std::vector<std::shared_ptr<InFlightBytes::Stream>> InFlightBytes::TakeOverdue(absl::Time now) {
  std::vector<std::shared_ptr<Stream>> overdue;
  while (!waiting_.empty() && now - waiting_.front().since >= options_.wait_max) {
    overdue.push_back(std::move(waiting_.front().stream));
    entries_.erase(overdue.back().get());
    waiting_.pop_front();
  }
  counts_.refused_after_wait += overdue.size();
  return overdue;
}

std::vector<std::shared_ptr<InFlightBytes::Stream>> InFlightBytes::TellStalled(absl::Time now) {
  std::vector<std::shared_ptr<Stream>> stalled;
  if (waiting_.empty()) return stalled;
  for (Entry& entry : holding_) {
    if (now - entry.since < options_.stall_max) break;
    if (std::exchange(entry.told_stalled, true)) continue;
    stalled.push_back(entry.stream);
  }
  counts_.stalled += stalled.size();
  return stalled;
}

absl::Status InFlightBytes::Refusal(absl::string_view why) const {
  return WithRetryAfter(
      absl::ResourceExhaustedError(absl::StrCat(why, "; payload in flight is limited to ",
                                                options_.bytes_max, " bytes (--in-flight-bytes)")),
      options_.retry_after);
}

}  // namespace cairn::node
