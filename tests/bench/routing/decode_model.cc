#include "tests/bench/routing/decode_model.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "common/base/check.h"
#include "tests/bench/routing/booked_load.h"
#include "tests/bench/routing/ideal_misses.h"
#include "tests/bench/routing/median.h"
#include "tests/bench/routing/replica_engine.h"
#include "tests/bench/routing/route_query.h"

namespace cairn::bench {
namespace {

using Block = BlockTrace::Block;

// Of every so many replicas one is slow: as even as whole numbers allow.
bool IsSlow(uint32_t node, double slow_share) {
  return static_cast<uint64_t>((node + 1) * slow_share) > static_cast<uint64_t>(node * slow_share);
}

double SpeedOf(uint32_t node, const DecodeOptions& options) {
  return IsSlow(node, options.slow_share) ? options.slow_speed : 1;
}

struct Times {
  double arrival_s = 0;
  double first_token_s = 0;
  double end_s = 0;
};

// One run under one seed.
class DecodeRun {
 public:
  DecodeRun(const BlockTrace& trace, const router::RoutePolicy& policy,
            const DecodeOptions& options, uint64_t seed)
      : trace_(trace), policy_(policy), options_(options), random_(seed) {
    for (uint32_t node = 0; node < options.nodes; ++node) {
      engines_.push_back(std::make_unique<ReplicaEngine>(
          &trace, EngineOptions{.speed = SpeedOf(node, options),
                                .kv_tokens_max = options.kv_tokens_max,
                                .capacity = options.capacity}));
      booked_.push_back(
          std::make_unique<BookedLoad>(&trace, ReplicaEngine::kPrefillTokensPerSecond));
      router::ReplicaView replica;
      replica.stable_hash = random_();
      replica.available = true;
      replica.kv_tokens_max = options.kv_tokens_max;
      snapshot_.replicas.push_back(replica);
    }
    prefix_seed_ = random_();
    snapshot_.block_tokens = trace.block_tokens();
    snapshot_.transfer.own = kCachedCostsNothing;
    held_.resize(options.nodes);
    times_.resize(trace.requests().size());
    node_of_.resize(trace.requests().size());
  }

  DecodeFigures Run() {
    const double clock = DecodeClock(trace_, options_);
    for (uint32_t i = 0; i < trace_.requests().size(); ++i) {
      const double now_s =
          (trace_.requests()[i].arrival_s - trace_.requests().front().arrival_s) * clock;
      FinishStepsUntil(now_s);
      Route(i, now_s);
    }
    FinishStepsUntil(std::numeric_limits<double>::infinity());
    return Figures();
  }

 private:
  // Steps end in the order of time, at once in that of replicas.
  void FinishStepsUntil(double now_s) {
    while (true) {
      uint32_t next = options_.nodes;
      double ends_s = std::numeric_limits<double>::infinity();
      for (uint32_t node = 0; node < options_.nodes; ++node) {
        const std::optional<double> step_ends_s = engines_[node]->step_ends_s();
        if (!step_ends_s.has_value() || *step_ends_s > now_s || *step_ends_s >= ends_s) continue;
        next = node;
        ends_s = *step_ends_s;
      }
      if (next == options_.nodes) return;
      events_.clear();
      engines_[next]->FinishStep(&events_);
      for (const EngineEvent& event : events_) Take(next, event, ends_s);
    }
  }

  void Take(uint32_t node, const EngineEvent& event, double now_s) {
    CAIRN_CHECK(node_of_[event.request] == node);
    Times& times = times_[event.request];
    if (event.ended) {
      times.end_s = now_s;
      ++completions_;
      booked_[node]->Ended(event.request);
      return;
    }
    times.first_token_s = now_s;
    hit_blocks_ += event.hit_blocks;
    booked_[node]->FirstToken(event.request, event.computed_tokens, event.compute_s);
  }

  void Route(uint32_t index, double now_s) {
    const BlockTrace::Request& request = trace_.requests()[index];
    trace_.PathOf(request, &path_);
    snapshot_.prompt_tokens = request.tokens;
    snapshot_.output_tokens = request.output_tokens;
    snapshot_.prefix_hash = PrefixHashOf(path_, prefix_seed_);
    snapshot_.random = random_();
    snapshot_.sequence = index;
    for (uint32_t node = 0; node < options_.nodes; ++node) {
      router::ReplicaView& replica = snapshot_.replicas[node];
      const NodeCache& cache = engines_[node]->cache();
      held_[node] = cache.Match(path_);
      const uint64_t held_tokens = trace_.TokensOf(request, held_[node]);
      replica.own_tokens[router::kHostTier] = held_tokens;
      const uint32_t with_coming = booked_[node]->MatchWithComing(path_, cache, held_[node]);
      replica.coming_tokens = trace_.TokensOf(request, with_coming) - held_tokens;
      booked_[node]->Show(&replica);
    }
    const auto node = static_cast<uint32_t>(policy_.Rank(snapshot_).front().replica);
    node_of_[index] = node;
    times_[index].arrival_s = now_s;
    booked_[node]->Book(index, held_[node], snapshot_.replicas[node].OwnTokens());
    engines_[node]->Submit(index, now_s);
  }

  void AddTimes(DecodeFigures* figures) const {
    std::vector<double> ttft_s, tpot_s;
    double last_s = 0;
    uint64_t good = 0;
    for (uint32_t i = 0; i < times_.size(); ++i) {
      const Times& times = times_[i];
      const uint64_t further = ReplicaEngine::AnswerTokens(trace_.requests()[i]) - 1;
      ttft_s.push_back(times.first_token_s - times.arrival_s);
      double each_s = 0;
      if (further > 0) {
        each_s = (times.end_s - times.first_token_s) / static_cast<double>(further);
        tpot_s.push_back(each_s);
      }
      if (ttft_s.back() <= options_.slo_ttft_s && each_s <= options_.slo_tpot_s) ++good;
      last_s = std::max(last_s, times.end_s);
    }
    figures->ttft_mean_s = MeanOf(ttft_s);
    figures->ttft_p50_s = QuantileOf(&ttft_s, 50);
    figures->ttft_p99_s = QuantileOf(&ttft_s, 99);
    figures->tpot_mean_s = MeanOf(tpot_s);
    figures->tpot_p99_s = QuantileOf(&tpot_s, 99);
    figures->goodput_per_second = static_cast<double>(good) / (last_s - times_.front().arrival_s);
  }

  DecodeFigures Figures() const {
    CAIRN_CHECK(completions_ == trace_.requests().size());
    DecodeFigures figures;
    AddTimes(&figures);
    figures.completions = static_cast<double>(completions_);
    figures.hit = static_cast<double>(hit_blocks_) /
                  static_cast<double>(std::max<uint64_t>(1, trace_.block_refs()));
    double all = 0, busiest = 0;
    for (const auto& engine : engines_) {
      const double work = static_cast<double>(engine->prefilled_tokens()) / engine->speed();
      all += work;
      busiest = std::max(busiest, work);
      figures.preemptions += static_cast<double>(engine->preemptions());
      figures.kv_tokens_peak =
          std::max(figures.kv_tokens_peak, static_cast<double>(engine->kv_tokens_peak()));
    }
    figures.busiest_over_mean = busiest * options_.nodes / all;
    double slow = 0;
    for (const uint32_t node : node_of_) slow += IsSlow(node, options_.slow_share) ? 1 : 0;
    figures.slow_request_share = slow / static_cast<double>(node_of_.size());
    return figures;
  }

  const BlockTrace& trace_;
  const router::RoutePolicy& policy_;
  const DecodeOptions& options_;
  std::mt19937_64 random_;
  uint64_t prefix_seed_ = 0;
  router::RouteSnapshot snapshot_;
  std::vector<std::unique_ptr<ReplicaEngine>> engines_;
  std::vector<std::unique_ptr<BookedLoad>> booked_;
  std::vector<uint32_t> held_;     // By node, of the request at hand.
  std::vector<Times> times_;       // By request.
  std::vector<uint32_t> node_of_;  // By request.
  std::vector<EngineEvent> events_;
  uint64_t completions_ = 0;
  uint64_t hit_blocks_ = 0;
  std::vector<Block> path_;  // Of the request at hand.
};

}  // namespace

double DecodeClock(const BlockTrace& trace, const DecodeOptions& options) {
  double speeds = 0;
  for (uint32_t node = 0; node < options.nodes; ++node) speeds += SpeedOf(node, options);
  const double prefill_s = static_cast<double>(IdealMissTokens(trace)) /
                           (ReplicaEngine::kPrefillTokensPerSecond * speeds);
  const double span_s = trace.requests().back().arrival_s - trace.requests().front().arrival_s;
  return prefill_s / options.load / std::max(1.0, span_s);
}

uint64_t LongestKvTokens(const BlockTrace& trace) {
  uint64_t longest = 0;
  for (const BlockTrace::Request& request : trace.requests()) {
    longest = std::max(longest, request.tokens + ReplicaEngine::AnswerTokens(request));
  }
  return longest;
}

DecodeFigures SimulateDecode(const BlockTrace& trace, const router::RoutePolicy& policy,
                             const DecodeOptions& options) {
  CAIRN_CHECK(options.nodes > 0 && options.load > 0 && options.slow_speed > 0 &&
              options.slow_share >= 0 && options.slow_share <= 1 && options.seeds > 0);
  std::vector<DecodeFigures> runs;
  for (uint64_t seed = 1; seed <= options.seeds; ++seed) {
    runs.push_back(DecodeRun(trace, policy, options, seed).Run());
  }
  DecodeFigures median;
  for (double DecodeFigures::*figure :
       {&DecodeFigures::ttft_mean_s, &DecodeFigures::ttft_p50_s, &DecodeFigures::ttft_p99_s,
        &DecodeFigures::tpot_mean_s, &DecodeFigures::tpot_p99_s, &DecodeFigures::goodput_per_second,
        &DecodeFigures::completions, &DecodeFigures::preemptions, &DecodeFigures::hit,
        &DecodeFigures::busiest_over_mean, &DecodeFigures::kv_tokens_peak,
        &DecodeFigures::slow_request_share}) {
    median.*figure = MedianOf(runs, figure);
  }
  return median;
}

}  // namespace cairn::bench
