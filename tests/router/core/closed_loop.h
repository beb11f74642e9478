// ClosedLoop: a trace through a real RouterCore, model nodes of unlimited room and model workers,
// in one thread on a fake clock.
//
// `workers` requests are under way at any time, in the trace's order, without its timestamps. A
// worker routes, takes the prefix that its node has or is being written there, computes the rest,
// which is committed when it ends, and reports the end. Feeds arrive late by a constant.
#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "router/core/router_core.h"
#include "router/policy/prefix_cost_policy.h"
#include "tests/router/model_holder.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/seeded_random.h"

namespace cairn::router {

struct LoopRequest {
  std::vector<BlockKey> keys;  // Of the full blocks.
  uint64_t prompt_tokens = 0;
};

struct LoopOptions {
  size_t nodes = 3;
  size_t workers = 16;
  uint32_t block_tokens = 512;
  absl::Duration feed_delay;
  // A request takes so long, beside what it computes: small blocks over loopback.
  absl::Duration request_time = absl::Microseconds(500);
  absl::Duration block_time = absl::Microseconds(40);
  // What a worker computes, one request after the other; 0: no time at all.
  double compute_tokens_per_second = 0;
  // Blocks that another request is writing are waited for; else they are computed again.
  bool waits_for_writers = true;
  uint64_t seed = 1;
  PrefixCostOptions policy;
  RouterOptions router;
};

struct LoopResult {
  uint64_t requests = 0;
  uint64_t prompt_tokens = 0;
  uint64_t hit_tokens = 0;
  uint64_t predicted_tokens = 0;
  double busiest_over_mean = 0;  // Tokens computed by node.
  bool all_exact = false;        // At the end, every holder.
  bool stale_alarm = false;

  double HitRate() const {
    return static_cast<double>(hit_tokens) / static_cast<double>(prompt_tokens);
  }
};

class ClosedLoop {
 public:
  explicit ClosedLoop(const LoopOptions& options);

  // Runs the requests to their end. Once.
  LoopResult Run(const std::vector<LoopRequest>& requests);

 private:
  struct Event {
    absl::Time at;
    uint64_t order = 0;  // Of equal times, the first made comes first.
    // A worker is free, having ended `job`; or messages arrive.
    size_t job = 0;
    HolderIndex node = 0;
    std::vector<v1::WatchBlocksResponse> messages;

    friend bool operator<(const Event& a, const Event& b) {  // For a queue of the earliest.
      return std::make_pair(b.at, b.order) < std::make_pair(a.at, a.order);
    }
  };
  struct Job {  // One request under way.
    const LoopRequest* request = nullptr;
    BookingId booking;
    HolderIndex node = 0;
    uint64_t cached_tokens = 0;
    std::vector<BlockKey> written;
  };
  struct Node {
    std::unique_ptr<ModelHolder> holder;
    absl::flat_hash_map<BlockKey, absl::Time> present_at;
    absl::Time computes_until;
    uint64_t computed_tokens = 0;
  };
  static constexpr size_t kNoJob = SIZE_MAX;

  absl::Time Now() const { return clock_.SteadyNow(); }
  void Push(Event event);
  void PassTimeUntil(absl::Time at);
  void Deliver(HolderIndex node, const std::vector<v1::WatchBlocksResponse>& messages);
  void Start(const LoopRequest& request);
  void End(const Job& job);

  const LoopOptions options_;
  testing::FakeClock clock_;
  testing::SeededRandom random_;
  std::unique_ptr<RouterCore> core_;
  std::vector<Node> nodes_;
  std::vector<Job> jobs_;
  std::priority_queue<Event> events_;
  uint64_t next_order_ = 0;
  absl::Time next_heartbeat_;
  LoopResult result_;
};

}  // namespace cairn::router
