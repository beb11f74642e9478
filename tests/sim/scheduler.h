// Scheduler: virtual time, and what happens in it, one event after the other.
//
// Events of equal times happen in the order in which they were made, so one seed gives one history.
// Each belongs to a host: a host that stalls finds all of its events late, in their order; one that
// dies loses them. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "tests/testing/fake_clock.h"

namespace cairn::sim {

// A process of the simulated fleet.
using HostId = uint32_t;
// Events of the simulation itself: this host neither stalls nor dies.
inline constexpr HostId kWorldHost = 0;

class Scheduler {
 public:
  // Times in the past count as now.
  void At(absl::Time at, HostId host, std::function<void()> run);
  void After(absl::Duration wait, HostId host, std::function<void()> run) {
    At(Now() + wait, host, std::move(run));
  }

  // What was to happen at the host does not happen any more; it is not stalled either.
  void Forget(HostId host);
  // Nothing happens at the host before `until`, or the end of a longer stall. REQUIRES: not the
  // world's.
  void Stall(HostId host, absl::Time until);
  bool Stalled(HostId host) const;

  // Lets the next event happen; false when there is none.
  bool Step();

  absl::Time Now() const { return clock_.SteadyNow(); }
  const Clock* clock() const { return &clock_; }
  uint64_t steps() const { return steps_; }

 private:
  struct Event {
    HostId host = 0;
    uint64_t life = 0;
    std::function<void()> run;
  };
  struct Host {
    uint64_t life = 0;
    absl::Time stalled_until = absl::InfinitePast();
  };

  Host& HostOf(HostId host);

  testing::FakeClock clock_;
  absl::btree_map<std::pair<absl::Time, uint64_t>, Event> events_;
  std::vector<Host> hosts_;
  uint64_t next_number_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace cairn::sim
