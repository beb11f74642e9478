// Weather: the fault plan of the network. It decides for each message, under the seed.
//
// Calm, messages are quick and none is lost. Not thread-safe.
#pragma once

#include <cstdint>

#include "absl/container/btree_map.h"
#include "absl/time/time.h"
#include "tests/sim/dice.h"
#include "tests/sim/network/packet.h"
#include "tests/sim/scheduler.h"

namespace cairn::sim {

// Chances in ten thousand.
struct WeatherOptions {
  absl::Duration delay_least = absl::Microseconds(50);
  absl::Duration delay_most = absl::Milliseconds(2);
  // A message that is much later than others.
  uint32_t slow_chance = 300;
  absl::Duration slow_most = absl::Milliseconds(200);
  // A call whose request does not arrive, or whose answer does not come back.
  uint32_t request_lost_chance = 100;
  uint32_t answer_lost_chance = 100;
  // A stream of payload that breaks under a message.
  uint32_t stream_broken_chance = 50;
  // Of a feed's batches and heartbeats.
  uint32_t feed_lost_chance = 30;
  uint32_t feed_repeated_chance = 60;
  uint32_t feed_swapped_chance = 60;
};

class Weather {
 public:
  enum class CallFate { kArrives, kRequestLost, kAnswerLost };
  enum class FeedFate { kArrives, kLost, kRepeated, kSwapped };

  Weather(const WeatherOptions& options, uint64_t seed, const Scheduler* scheduler);

  // From now on all goes well; links that are blocked stay so until their time.
  void Calm() { calm_ = true; }
  bool calm() const { return calm_; }

  absl::Duration DelayOf(HostId from, HostId to);
  CallFate FateOfCall();
  FeedFate FateOfFeedPacket();
  bool BreaksStream();
  // Between a peer that went and the moment when that is noticed.
  absl::Duration NoticeDelay();

  // Nothing arrives from one at the other before `until`.
  void BlockLink(HostId from, HostId to, absl::Time until);

 private:
  const WeatherOptions options_;
  const Scheduler* const scheduler_;
  Dice dice_;
  bool calm_ = false;
  absl::btree_map<std::pair<HostId, HostId>, absl::Time> blocked_until_;
};

}  // namespace cairn::sim
