#include "cache_node/pull/pull_board.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/rpc/retry_status.h"

namespace cairn::node {
namespace {

constexpr absl::Duration kFullRetryAfter = absl::Milliseconds(500);

absl::Status Full(absl::string_view what, size_t max) {
  return WithRetryAfter(absl::ResourceExhaustedError(absl::StrCat(
                            "blocks that are being pulled", what, ": over ", max, " with these")),
                        kFullRetryAfter);
}

}  // namespace

absl::StatusOr<PullBoard::Joined> PullBoard::Join(const PullTarget& target,
                                                  absl::Span<const BlockKey> keys) {
  Joined joined;
  joined.own.assign(keys.size(), false);
  absl::MutexLock lock(&mutex_);
  size_t fresh = 0;
  for (const BlockKey& key : keys) {
    const auto found = in_hand_.find(Id{target.tenant, target.fingerprint, key});
    joined.flights.push_back(found == in_hand_.end() ? nullptr : found->second);
    if (found == in_hand_.end()) ++fresh;
  }
  if (in_hand_.size() + fresh > kBlocksMax) return Full("", kBlocksMax);
  const auto of_tenant = by_tenant_.find(target.tenant);
  if ((of_tenant == by_tenant_.end() ? 0 : of_tenant->second) + fresh > kBlocksPerTenantMax) {
    return Full(" for the tenant", kBlocksPerTenantMax);
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    if (joined.flights[i] != nullptr) continue;
    joined.flights[i] = std::make_shared<Flight>();
    joined.own[i] = true;
    in_hand_.emplace(Id{target.tenant, target.fingerprint, keys[i]}, joined.flights[i]);
  }
  if (fresh > 0) by_tenant_[target.tenant] += fresh;
  return joined;
}

void PullBoard::End(const PullTarget& target, const BlockKey& key, PullOutcome outcome,
                    std::shared_ptr<const std::string> why) {
  absl::MutexLock lock(&mutex_);
  const auto found = in_hand_.find(Id{target.tenant, target.fingerprint, key});
  CAIRN_CHECK_MSG(found != in_hand_.end(), "a pull ends a block that none has in hand");
  found->second->over = true;
  found->second->outcome = outcome;
  found->second->why = std::move(why);
  in_hand_.erase(found);
  const auto of_tenant = by_tenant_.find(target.tenant);
  CAIRN_CHECK(of_tenant != by_tenant_.end() && of_tenant->second > 0);
  if (--of_tenant->second == 0) by_tenant_.erase(of_tenant);
}

std::optional<PullOutcome> PullBoard::OutcomeOf(const FlightRef& flight) const {
  absl::ReaderMutexLock lock(&mutex_);
  if (!flight->over) return std::nullopt;
  return flight->outcome;
}

std::shared_ptr<const std::string> PullBoard::WhyOf(const FlightRef& flight) const {
  absl::ReaderMutexLock lock(&mutex_);
  return flight->why;
}

PullOutcome PullBoard::Await(const FlightRef& flight) const {
  absl::MutexLock lock(&mutex_);
  const auto over = [this, &flight]()
                        ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return flight->over || stopped_; };
  mutex_.Await(absl::Condition(&over));
  return flight->outcome;
}

void PullBoard::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

size_t PullBoard::blocks() const {
  absl::ReaderMutexLock lock(&mutex_);
  return in_hand_.size();
}

}  // namespace cairn::node
