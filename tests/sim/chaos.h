// Chaos: the fault plan of processes and links. Now and then it does one harm, under the seed,
// until it is stopped. FaultTarget: what it can do harm to.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "tests/sim/dice.h"
#include "tests/sim/world.h"

namespace cairn::sim {

class FaultTarget {
 public:
  virtual ~FaultTarget() = default;
  // A place that is down already is left alone.
  virtual void KillNode(size_t place, absl::Duration down_for) = 0;
  virtual void DrainNode(size_t place, absl::Duration grace, absl::Duration down_for) = 0;
  virtual void StallNode(size_t place, absl::Duration stall) = 0;
  // Flips a bit of some block that is there.
  virtual void DamageNode(size_t place) = 0;
  // No harm: one copies something from the other.
  virtual void PullBetween(size_t from, size_t to) = 0;
  virtual void KillRouter(absl::Duration down_for) = 0;
  virtual void StallRouter(absl::Duration stall) = 0;
  virtual void KillWorker(size_t place, absl::Duration down_for) = 0;
  virtual void StallWorker(size_t place, absl::Duration stall) = 0;
  virtual void BlockNodeAndRouter(size_t place, bool both_ways, absl::Duration block) = 0;
  virtual void BlockNodeAndWorker(size_t place, size_t worker, bool both_ways,
                                  absl::Duration block) = 0;
};

struct ChaosOptions {
  absl::Duration pause_least = absl::Milliseconds(200);
  absl::Duration pause_most = absl::Milliseconds(2500);
  // How often each harm is chosen, against the sum of all.
  uint32_t kill_node = 2;
  uint32_t drain_node = 1;
  uint32_t stall_node = 3;
  uint32_t damage_node = 1;
  uint32_t kill_router = 1;
  uint32_t stall_router = 2;
  uint32_t kill_worker = 1;
  uint32_t stall_worker = 2;
  uint32_t block_feed_link = 2;
  uint32_t block_worker_link = 2;
  uint32_t cut_feed = 3;
  uint32_t cut_payload = 2;
  uint32_t pull = 8;
};

class Chaos {
 public:
  // Borrows world and target.
  Chaos(World* world, FaultTarget* target, const ChaosOptions& options, size_t nodes,
        size_t workers);

  void Stop() { stopped_ = true; }

 private:
  void ActSoon();
  void Act();
  void Harm(size_t kind);
  void CutOne(Method method);
  absl::Duration Span(absl::Duration least, absl::Duration most) {
    return dice_.Between(least, most);
  }

  World* const world_;
  FaultTarget* const target_;
  const ChaosOptions options_;
  const size_t nodes_;
  const size_t workers_;
  Dice dice_;
  bool stopped_ = false;
};

}  // namespace cairn::sim
