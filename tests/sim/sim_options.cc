#include "tests/sim/sim_options.h"

namespace cairn::sim {
namespace {

// 16 memory segments of 4 KiB are the least.
constexpr uint64_t kPools[] = {uint64_t{64} << 10, uint64_t{128} << 10, uint64_t{512} << 10,
                               uint64_t{2} << 20};
constexpr uint32_t kShards[] = {1, 4, 16};
constexpr size_t kFeedQueues[] = {24, 128, 8192};

// As flags and requests give them: an answer says a time to live in whole ones.
absl::Duration WholeMilliseconds(Dice* dice, uint64_t least, uint64_t most) {
  return absl::Milliseconds(static_cast<int64_t>(dice->Between(least, most)));
}

void DrawWeather(Dice* dice, WeatherOptions* weather) {
  // From a link within a rack to one between sites.
  weather->delay_most = dice->Between(absl::Microseconds(500), absl::Milliseconds(20));
  weather->slow_most = dice->Between(absl::Milliseconds(50), absl::Seconds(2));
  const auto roughness = static_cast<uint32_t>(dice->Below(4));  // 0: nothing is lost.
  weather->request_lost_chance = 60 * roughness;
  weather->answer_lost_chance = 60 * roughness;
  weather->stream_broken_chance = 40 * roughness;
  weather->feed_lost_chance = 30 * roughness;
  weather->feed_repeated_chance = 60 * roughness;
  weather->feed_swapped_chance = 60 * roughness;
}

// Requests follow each other at once, so that a small pool is written over while a frame is on its
// way.
void MakeBusy(Dice* dice, SimOptions* options) {
  options->think_most = absl::Milliseconds(20);
  options->tokens_per_second = 50'000;
  options->workload.requests = dice->Between(200, 500);
  options->stranger_pause_most = absl::Milliseconds(60);
  options->weather.slow_chance = 1000;
  options->chaos.pause_least = absl::Milliseconds(20);
  options->chaos.pause_most = dice->Between(absl::Milliseconds(100), absl::Seconds(1));
}

}  // namespace

SimOptions SimOptions::Of(uint64_t seed) {
  Dice dice(seed, "options");
  SimOptions options;
  options.seed = seed;
  options.workers = dice.Between(2, 5);
  options.jobs_per_worker = dice.Between(1, 3);
  options.pool_bytes = kPools[dice.Below(std::size(kPools))];
  options.in_flight_bytes_max = dice.Between(2, 8) << 20;
  options.workload.requests = dice.Between(80, 200);
  options.chaos.pause_most = dice.Between(absl::Milliseconds(500), absl::Seconds(5));
  if (dice.Below(2) == 0) MakeBusy(&dice, &options);
  options.workload.conversations = dice.Between(2, 16);
  DrawWeather(&dice, &options.weather);
  options.store.feed_shards = kShards[dice.Below(std::size(kShards))];
  options.store.watcher_queue_records = kFeedQueues[dice.Below(std::size(kFeedQueues))];
  options.store.removed_memory_entries = dice.Between(8, 1024);
  // So that dead clients are forgotten while the simulation lasts.
  options.store.lease_ttl_default = WholeMilliseconds(&dice, 100, 8000);
  options.store.token_ttl_default = WholeMilliseconds(&dice, 500, 8000);
  options.router.booking.prefill_ttl = absl::Seconds(20);
  options.router.booking.decode_ttl = absl::Seconds(20);
  options.router.speculation.ttl = absl::Seconds(15);
  return options;
}

}  // namespace cairn::sim
