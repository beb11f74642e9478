#include "cache_node/service/waiting_calls.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace cairn::node {

WaitingCalls::~WaitingCalls() {
  absl::MutexLock lock(&mutex_);
  CAIRN_CHECK(entries_.empty());
}

WaitingCalls::Ticket WaitingCalls::Join(absl::Time deadline, std::unique_ptr<Call>& call) {
  absl::MutexLock lock(&mutex_);
  if (stopped_ || entries_.size() >= kWaitingMax) return 0;
  const Ticket ticket = next_ticket_++;
  entries_[ticket] = {.deadline = deadline, .call = std::move(call)};
  return ticket;
}

void WaitingCalls::Cancel(Ticket ticket) {
  std::unique_ptr<Call> call;
  {
    absl::MutexLock lock(&mutex_);
    const auto it = entries_.find(ticket);
    if (it == entries_.end()) return;
    if (it->second.call == nullptr) {
      it->second.cancelled = true;
      return;
    }
    call = std::move(it->second.call);
    entries_.erase(it);
  }
  call->GiveUp(Reason::kCancelled);
}

absl::Time WaitingCalls::Sweep(absl::Time now) {
  std::vector<Ticket> tickets;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [ticket, entry] : entries_) tickets.push_back(ticket);
  }
  for (const Ticket ticket : tickets) TryOne(ticket, now);
  absl::Time next = absl::InfiniteFuture();
  absl::MutexLock lock(&mutex_);
  for (const auto& [ticket, entry] : entries_) next = std::min(next, entry.deadline);
  return next;
}

void WaitingCalls::TryOne(Ticket ticket, absl::Time now) {
  std::unique_ptr<Call> call;
  {
    absl::MutexLock lock(&mutex_);
    const auto it = entries_.find(ticket);
    if (it == entries_.end()) return;
    call = std::move(it->second.call);
    CAIRN_CHECK(call != nullptr);
  }
  const bool answered = call->TryAnswer();
  Reason reason = Reason::kDeadline;
  {
    absl::MutexLock lock(&mutex_);
    const auto it = entries_.find(ticket);
    CAIRN_CHECK(it != entries_.end());
    Entry& entry = it->second;
    if (!answered && !entry.cancelled && entry.deadline > now) {
      entry.call = std::move(call);
      return;
    }
    if (entry.cancelled) reason = Reason::kCancelled;
    entries_.erase(it);
  }
  if (!answered) call->GiveUp(reason);
}

void WaitingCalls::Stop() {
  absl::btree_map<Ticket, Entry> left;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    left.swap(entries_);
  }
  for (auto& [ticket, entry] : left) entry.call->GiveUp(Reason::kStopped);
}

size_t WaitingCalls::waiting() const {
  absl::MutexLock lock(&mutex_);
  return entries_.size();
}

}  // namespace cairn::node
