// SimOptions: everything that one simulation is made of, drawn from its seed.
#pragma once

#include <cstdint>
#include <ostream>

#include "cache_node/store/block_store.h"
#include "router/core/router_options.h"
#include "tests/sim/chaos.h"
#include "tests/sim/network/weather.h"
#include "tests/sim/worker/workload.h"

namespace cairn::sim {

struct SimOptions {
  // Fleets differ by seed: tight pools and roomy ones, short feed queues and long ones, rough
  // weather and fair.
  static SimOptions Of(uint64_t seed);

  uint64_t seed = 1;
  size_t nodes = 3;
  size_t workers = 4;
  size_t jobs_per_worker = 2;
  // Between two requests of one job.
  absl::Duration think_most = absl::Milliseconds(300);
  double tokens_per_second = 2000;
  uint64_t pool_bytes = uint64_t{1} << 20;
  uint64_t in_flight_bytes_max = uint64_t{4} << 20;
  // Faults and strangers act so long at most; requests may be over before.
  absl::Duration faults_most = absl::Seconds(40);
  WorkloadOptions workload;
  WeatherOptions weather;
  ChaosOptions chaos;
  // Between two calls of the stranger.
  absl::Duration stranger_pause_most = absl::Milliseconds(600);
  node::BlockStore::Options store;
  router::RouterOptions router;
  // Gets every event as a line; null: nobody does. Borrowed.
  std::ostream* log_to = nullptr;
};

}  // namespace cairn::sim
