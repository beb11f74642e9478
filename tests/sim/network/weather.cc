#include "tests/sim/network/weather.h"

#include <algorithm>

namespace cairn::sim {
namespace {

// A peer that went mostly closes its connections; else nobody says anything for a while.
constexpr uint32_t kSilentDeathChance = 2000;
constexpr absl::Duration kSilenceLeast = absl::Seconds(3);
constexpr absl::Duration kSilenceMost = absl::Seconds(12);

}  // namespace

Weather::Weather(const WeatherOptions& options, uint64_t seed, const Scheduler* scheduler)
    : options_(options), scheduler_(scheduler), dice_(seed, "weather") {}

absl::Duration Weather::DelayOf(HostId from, HostId to) {
  absl::Duration delay = dice_.Between(options_.delay_least, options_.delay_most);
  if (!calm_ && dice_.Chance(options_.slow_chance)) {
    delay = dice_.Between(options_.delay_most, options_.slow_most);
  }
  const auto blocked = blocked_until_.find({from, to});
  if (blocked == blocked_until_.end()) return delay;
  return std::max(delay, blocked->second - scheduler_->Now());
}

Weather::CallFate Weather::FateOfCall() {
  if (calm_) return CallFate::kArrives;
  if (dice_.Chance(options_.request_lost_chance)) return CallFate::kRequestLost;
  if (dice_.Chance(options_.answer_lost_chance)) return CallFate::kAnswerLost;
  return CallFate::kArrives;
}

Weather::FeedFate Weather::FateOfFeedPacket() {
  if (calm_) return FeedFate::kArrives;
  if (dice_.Chance(options_.feed_lost_chance)) return FeedFate::kLost;
  if (dice_.Chance(options_.feed_repeated_chance)) return FeedFate::kRepeated;
  if (dice_.Chance(options_.feed_swapped_chance)) return FeedFate::kSwapped;
  return FeedFate::kArrives;
}

bool Weather::BreaksStream() { return !calm_ && dice_.Chance(options_.stream_broken_chance); }

absl::Duration Weather::NoticeDelay() {
  if (!calm_ && dice_.Chance(kSilentDeathChance)) return dice_.Between(kSilenceLeast, kSilenceMost);
  return dice_.Between(options_.delay_least, options_.delay_most);
}

void Weather::BlockLink(HostId from, HostId to, absl::Time until) {
  absl::Time& blocked = blocked_until_[{from, to}];
  blocked = std::max(blocked, until);
}

}  // namespace cairn::sim
