#include "tests/bench/routing/routing_model.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "common/base/check.h"
#include "tests/bench/routing/ideal_misses.h"
#include "tests/bench/routing/median.h"
#include "tests/bench/routing/node_cache.h"
#include "tests/bench/routing/route_query.h"
#include "tests/bench/routing/stale_view.h"

namespace cairn::bench {
namespace {

using Block = BlockTrace::Block;

constexpr double kLoadWithIdealHits = 0.7;

// One run under one seed.
class RoutingRun {
 public:
  RoutingRun(const BlockTrace& trace, const router::RoutePolicy& policy,
             const RoutingOptions& options, uint64_t seed)
      : trace_(trace), policy_(policy), options_(options), random_(seed) {
    const double tokens_per_second = NodeTokensPerSecond(trace, options.nodes);
    for (uint32_t node = 0; node < options.nodes; ++node) {
      caches_.push_back(std::make_unique<NodeCache>(trace.block_count(), options.capacity));
      router::ReplicaView replica;
      replica.stable_hash = random_();
      replica.available = true;
      replica.prefill_tokens_per_second = tokens_per_second;
      snapshot_.replicas.push_back(replica);
    }
    if (options.stale_s > 0 || options.lost_batches > 0) {
      for (uint32_t view = 0; view < options.routers * options.nodes; ++view) {
        views_.push_back(std::make_unique<StaleView>(&trace, options.capacity, options.stale_s));
      }
    }
    free_at_s_.resize(options.nodes);
    computed_.resize(options.nodes);
    prefix_seed_ = random_();
    snapshot_.block_tokens = trace.block_tokens();
    snapshot_.transfer.own = kCachedCostsNothing;
  }

  RoutingFigures Run() {
    for (uint32_t i = 0; i < trace_.requests().size(); ++i) Serve(i);
    return Figures();
  }

 private:
  StaleView& ViewOf(uint32_t router, uint32_t node) {
    return *views_[router * options_.nodes + node];
  }

  void Look(const BlockTrace::Request& request, uint32_t router) {
    snapshot_.prompt_tokens = request.tokens;
    snapshot_.prefix_hash = PrefixHashOf(path_, prefix_seed_);
    snapshot_.random = random_();
    for (uint32_t node = 0; node < options_.nodes; ++node) {
      router::ReplicaView& replica = snapshot_.replicas[node];
      uint32_t match = 0;
      if (views_.empty()) {
        match = caches_[node]->Match(path_);
      } else {
        ViewOf(router, node).Advance(request.arrival_s);
        match = ViewOf(router, node).Match(path_);
      }
      replica.own_tokens[router::kHostTier] = trace_.TokensOf(request, match);
      const double queued_s = std::max(0.0, free_at_s_[node] - request.arrival_s);
      replica.queued_prefill_tokens =
          static_cast<uint64_t>(std::llround(queued_s * replica.prefill_tokens_per_second));
    }
  }

  void Serve(uint32_t index) {
    const BlockTrace::Request& request = trace_.requests()[index];
    trace_.PathOf(request, &path_);
    const uint32_t router = index % options_.routers;
    snapshot_.sequence = index / options_.routers;
    Look(request, router);
    const auto node = static_cast<uint32_t>(policy_.Rank(snapshot_).front().replica);
    const uint32_t hits = caches_[node]->Match(path_);
    const uint64_t hit_tokens = trace_.TokensOf(request, hits);
    const uint64_t missing = request.tokens - hit_tokens;
    const double starts_s = std::max(request.arrival_s, free_at_s_[node]);
    free_at_s_[node] = starts_s + static_cast<double>(missing) /
                                      snapshot_.replicas[node].prefill_tokens_per_second;
    waits_s_.push_back(free_at_s_[node] - request.arrival_s);
    computed_[node] += static_cast<double>(missing);
    hit_blocks_ += hits;
    hit_tokens_ += hit_tokens;
    caches_[node]->Use(path_);
    if (views_.empty()) return;
    const bool lost = std::uniform_real_distribution<>(0, 1)(random_) < options_.lost_batches;
    for (uint32_t other = 0; other < options_.routers; ++other) {
      ViewOf(other, node).Served(request.arrival_s, index, path_, other == router, lost);
    }
  }

  RoutingFigures Figures() {
    RoutingFigures figures;
    figures.hit = static_cast<double>(hit_blocks_) / static_cast<double>(trace_.block_refs());
    figures.token_hit = static_cast<double>(hit_tokens_) / static_cast<double>(trace_.tokens());
    double all = 0;
    for (const double tokens : computed_) all += tokens;
    if (all > 0) {
      figures.busiest_over_mean =
          *std::max_element(computed_.begin(), computed_.end()) * options_.nodes / all;
    }
    figures.mean_wait_s = MeanOf(waits_s_);
    figures.p50_wait_s = QuantileOf(&waits_s_, 50);
    figures.p99_wait_s = QuantileOf(&waits_s_, 99);
    return figures;
  }

  const BlockTrace& trace_;
  const router::RoutePolicy& policy_;
  const RoutingOptions& options_;
  std::mt19937_64 random_;
  uint64_t prefix_seed_ = 0;
  router::RouteSnapshot snapshot_;
  std::vector<std::unique_ptr<NodeCache>> caches_;
  std::vector<std::unique_ptr<StaleView>> views_;  // By router, then node; none: they are exact.
  std::vector<double> free_at_s_;
  std::vector<double> computed_;
  std::vector<double> waits_s_;
  uint64_t hit_blocks_ = 0;
  uint64_t hit_tokens_ = 0;
  std::vector<Block> path_;  // Of the request at hand.
};

}  // namespace

double NodeTokensPerSecond(const BlockTrace& trace, uint32_t nodes) {
  CAIRN_CHECK(nodes > 0 && !trace.requests().empty());
  const double span_s = std::max(1.0, trace.requests().back().arrival_s);
  return static_cast<double>(IdealMissTokens(trace)) / span_s / nodes / kLoadWithIdealHits;
}

RoutingFigures SimulateRouting(const BlockTrace& trace, const router::RoutePolicy& policy,
                               const RoutingOptions& options) {
  CAIRN_CHECK(options.capacity > 0 && options.routers > 0 && options.seeds > 0);
  std::vector<RoutingFigures> runs;
  for (uint64_t seed = 1; seed <= options.seeds; ++seed) {
    runs.push_back(RoutingRun(trace, policy, options, seed).Run());
  }
  RoutingFigures median;
  for (double RoutingFigures::*figure :
       {&RoutingFigures::hit, &RoutingFigures::token_hit, &RoutingFigures::busiest_over_mean,
        &RoutingFigures::mean_wait_s, &RoutingFigures::p50_wait_s, &RoutingFigures::p99_wait_s}) {
    median.*figure = MedianOf(runs, figure);
  }
  return median;
}

}  // namespace cairn::bench
