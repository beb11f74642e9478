// World: what all parts of one simulation share. Borrowed by them; outlives them.
#pragma once

#include <cstdint>

#include "tests/sim/event_log.h"
#include "tests/sim/network/network.h"
#include "tests/sim/network/weather.h"
#include "tests/sim/scheduler.h"
#include "tests/sim/witnesses.h"

namespace cairn::sim {

struct World {
  World(uint64_t seed_in, const WeatherOptions& weather_options)
      : seed(seed_in),
        weather(weather_options, seed_in, &scheduler),
        log(scheduler.clock()),
        network(&scheduler, &weather, &log) {}

  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const uint64_t seed;
  Scheduler scheduler;
  Weather weather;
  EventLog log;
  Network network;
  Witnesses witnesses;
};

}  // namespace cairn::sim
