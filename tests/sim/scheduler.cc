#include "tests/sim/scheduler.h"

#include <algorithm>

#include "common/base/check.h"

namespace cairn::sim {

Scheduler::Host& Scheduler::HostOf(HostId host) {
  if (host >= hosts_.size()) hosts_.resize(host + size_t{1});
  return hosts_[host];
}

void Scheduler::At(absl::Time at, HostId host, std::function<void()> run) {
  const uint64_t life = HostOf(host).life;
  events_.emplace(std::make_pair(std::max(at, Now()), next_number_++),
                  Event{host, life, std::move(run)});
}

void Scheduler::Forget(HostId host) {
  CAIRN_CHECK(host != kWorldHost);
  Host& forgotten = HostOf(host);
  ++forgotten.life;
  forgotten.stalled_until = absl::InfinitePast();
}

void Scheduler::Stall(HostId host, absl::Time until) {
  CAIRN_CHECK(host != kWorldHost);
  Host& stalled = HostOf(host);
  stalled.stalled_until = std::max(stalled.stalled_until, until);
}

bool Scheduler::Stalled(HostId host) const {
  return host < hosts_.size() && hosts_[host].stalled_until > Now();
}

bool Scheduler::Step() {
  while (!events_.empty()) {
    const auto first = events_.begin();
    const auto [at, number] = first->first;
    Event event = std::move(first->second);
    events_.erase(first);
    const Host& host = HostOf(event.host);
    if (event.life != host.life) continue;
    if (host.stalled_until > at) {
      events_.emplace(std::make_pair(host.stalled_until, number), std::move(event));
      continue;
    }
    if (at > Now()) clock_.Advance(at - Now());
    ++steps_;
    event.run();
    return true;
  }
  return false;
}

}  // namespace cairn::sim
