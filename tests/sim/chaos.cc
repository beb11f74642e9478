#include "tests/sim/chaos.h"

#include <iterator>
#include <vector>

namespace cairn::sim {

Chaos::Chaos(World* world, FaultTarget* target, const ChaosOptions& options, size_t nodes,
             size_t workers)
    : world_(world),
      target_(target),
      options_(options),
      nodes_(nodes),
      workers_(workers),
      dice_(world->seed, "chaos") {
  ActSoon();
}

void Chaos::ActSoon() {
  world_->scheduler.After(Span(options_.pause_least, options_.pause_most), kWorldHost,
                          [this] { Act(); });
}

void Chaos::Act() {
  if (stopped_) return;
  ActSoon();
  const uint32_t weights[] = {options_.kill_node,
                              options_.drain_node,
                              options_.stall_node,
                              options_.damage_node,
                              options_.kill_router,
                              options_.stall_router,
                              options_.kill_worker,
                              options_.stall_worker,
                              options_.block_feed_link,
                              options_.block_worker_link,
                              options_.cut_feed,
                              options_.cut_payload,
                              options_.pull};
  uint32_t sum = 0;
  for (const uint32_t weight : weights) sum += weight;
  if (sum == 0) return;
  uint64_t left = dice_.Below(sum);
  size_t kind = 0;
  while (left >= weights[kind]) left -= weights[kind++];
  Harm(kind);
}

void Chaos::Harm(size_t kind) {
  const size_t node = dice_.Below(nodes_);
  const size_t worker = dice_.Below(workers_);
  const bool both_ways = dice_.Below(2) == 0;
  const absl::Duration down = Span(absl::Milliseconds(50), absl::Seconds(5));
  const absl::Duration stall = Span(absl::Milliseconds(50), absl::Seconds(4));
  switch (kind) {
    case 0:
      return target_->KillNode(node, down);
    case 1:
      return target_->DrainNode(node, Span(absl::Milliseconds(100), absl::Seconds(3)), down);
    case 2:
      return target_->StallNode(node, stall);
    case 3:
      return target_->DamageNode(node);
    case 4:
      return target_->KillRouter(down);
    case 5:
      return target_->StallRouter(stall);
    case 6:
      return target_->KillWorker(worker, down);
    case 7:
      return target_->StallWorker(worker, stall);
    case 8:
      return target_->BlockNodeAndRouter(node, both_ways, stall);
    case 9:
      return target_->BlockNodeAndWorker(node, worker, both_ways, stall);
    case 10:
      return CutOne(Method::kWatchBlocks);
    case 11:
      return CutOne(dice_.Below(2) == 0 ? Method::kGet : Method::kWrite);
    default:
      return target_->PullBetween(node, dice_.Below(nodes_));
  }
}

void Chaos::CutOne(Method method) {
  const std::vector<StreamId> open = world_->network.OpenStreams(method);
  if (!open.empty()) world_->network.Break(open[dice_.Below(open.size())]);
}

}  // namespace cairn::sim
