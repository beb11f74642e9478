#include "cache_node/local/local_tickets.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/rpc/retry_status.h"

namespace cairn::node {

absl::StatusOr<LocalTicket> LocalTickets::Issue(const Caller& caller) {
  const absl::Time now = time_->Now();
  const LocalTicket ticket = random_->New<LocalTicket>();
  absl::MutexLock lock(&mutex_);
  DropExpired(now);
  const auto own = by_tenant_.find(caller.tenant);
  if (issued_.size() >= kTicketsMax ||
      (own != by_tenant_.end() && own->second >= kTicketsPerTenantMax)) {
    return WithRetryAfter(
        absl::ResourceExhaustedError(absl::StrCat("tickets for the local socket: too many within ",
                                                  absl::FormatDuration(kTimeToLive))),
        kTimeToLive);
  }
  CAIRN_CHECK(issued_.emplace(ticket, Issued{caller, now + kTimeToLive}).second);
  ++by_tenant_[caller.tenant];
  if (order_.size() >= 2 * kTicketsMax) {
    std::erase_if(order_, [this](const auto& one) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !issued_.contains(one.second);
    });
  }
  order_.emplace_back(now + kTimeToLive, ticket);
  return ticket;
}

std::optional<Caller> LocalTickets::Take(absl::string_view ticket) {
  const std::optional<LocalTicket> id = LocalTicket::FromBytes(ticket);
  if (!id.has_value()) return std::nullopt;
  const absl::Time now = time_->Now();
  absl::MutexLock lock(&mutex_);
  DropExpired(now);
  std::optional<Issued> issued = Erase(*id);
  if (!issued.has_value()) return std::nullopt;
  return std::move(issued->caller);
}

void LocalTickets::Clear() {
  absl::MutexLock lock(&mutex_);
  issued_.clear();
  by_tenant_.clear();
  order_.clear();
}

size_t LocalTickets::size() const {
  absl::MutexLock lock(&mutex_);
  return issued_.size();
}

void LocalTickets::DropExpired(absl::Time now) {
  while (!order_.empty() && order_.front().first <= now) {
    Erase(order_.front().second);
    order_.pop_front();
  }
}

std::optional<LocalTickets::Issued> LocalTickets::Erase(const LocalTicket& ticket) {
  auto it = issued_.find(ticket);
  if (it == issued_.end()) return std::nullopt;
  Issued issued = std::move(it->second);
  issued_.erase(it);
  auto own = by_tenant_.find(issued.caller.tenant);
  CAIRN_CHECK(own != by_tenant_.end() && own->second > 0);
  if (--own->second == 0) by_tenant_.erase(own);
  return issued;
}

}  // namespace cairn::node
