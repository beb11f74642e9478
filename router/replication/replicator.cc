#include "router/replication/replicator.h"

#include <optional>
#include <utility>

namespace cairn::router {

void Replicator::OnRouted(const RoutedPrompt& prompt) {
  std::optional<CopyOrder> order;
  {
    const absl::Time now = clock_->SteadyNow();
    absl::MutexLock lock(&mutex_);
    order = hot_.Observe(prompt, now);
  }
  if (!order.has_value()) return;
  transport_->Start(*order,
                    [this, order = *order](const CopyResult& result) { OnDone(order, result); });
}

void Replicator::OnDone(const CopyOrder& order, const CopyResult& result) {
  const absl::Time now = clock_->SteadyNow();
  absl::MutexLock lock(&mutex_);
  hot_.EndCopy(order, result, now);
}

HotPrefixes::Counters Replicator::counters() const {
  absl::MutexLock lock(&mutex_);
  return hot_.counters();
}

uint64_t Replicator::outstanding_bytes() const {
  absl::MutexLock lock(&mutex_);
  return hot_.outstanding_bytes();
}

}  // namespace cairn::router
