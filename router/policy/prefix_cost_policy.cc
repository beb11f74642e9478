#include "router/policy/prefix_cost_policy.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "common/base/check.h"
#include "common/identity/rendezvous.h"

namespace cairn::router {
namespace {

double Seconds(uint64_t tokens, double tokens_per_second) {
  return static_cast<double>(tokens) / tokens_per_second;
}

// What the own node has and gives no slower than it is computed.
double OwnSeconds(const TransferRates& rates, const ReplicaView& replica) {
  double seconds = 0;
  for (size_t tier = 0; tier < kTierCount; ++tier) {
    const double rate = std::max(rates.own[tier], replica.prefill_tokens_per_second);
    seconds += Seconds(replica.own_tokens[tier], rate);
  }
  return seconds;
}

}  // namespace

PrefixCostPolicy::PrefixCostPolicy(const PrefixCostOptions& options) : options_(options) {
  CAIRN_CHECK(options.miss_weight >= 1 && options.queue_slack_prompts >= 0 &&
              options.decode_weight >= 0);
}

// Booked prefill, what running decodes take from it, and the wait for KV that is not free: the part
// that does not fit takes as long to come free as it took to be made.
double PrefixCostPolicy::QueuedSeconds(const RouteSnapshot& snapshot,
                                       const ReplicaView& replica) const {
  const double running = static_cast<double>(replica.running_kv_tokens);
  double tokens =
      static_cast<double>(replica.queued_prefill_tokens) + options_.decode_weight * running;
  if (replica.kv_tokens_max.has_value()) {
    const double needed = static_cast<double>(snapshot.prompt_tokens + snapshot.output_tokens);
    tokens += std::max(0.0, running + needed - static_cast<double>(*replica.kv_tokens_max));
  }
  return tokens / replica.prefill_tokens_per_second;
}

RankedChoice PrefixCostPolicy::Judge(const RouteSnapshot& snapshot, size_t index) const {
  const ReplicaView& replica = snapshot.replicas[index];
  CAIRN_CHECK(replica.prefill_tokens_per_second > 0);
  const double rate = replica.prefill_tokens_per_second;
  const uint64_t own = std::min(replica.OwnTokens(), snapshot.prompt_tokens);
  const uint64_t remote = std::min(replica.remote_tokens, snapshot.prompt_tokens - own);
  const double work = OwnSeconds(snapshot.transfer, replica) +
                      Seconds(remote, std::max(rate, replica.remote_tokens_per_second)) +
                      Seconds(snapshot.prompt_tokens - own - remote, rate);
  RankedChoice choice;
  choice.replica = index;
  choice.queued_seconds = QueuedSeconds(snapshot, replica);
  choice.cost_seconds = choice.queued_seconds + options_.miss_weight * work;
  if (!replica.available) {
    choice.reason = RouteReason::kHolderOut;
  } else if (own > 0 || (remote > 0 && replica.remote_tokens_per_second > rate)) {
    choice.reason = RouteReason::kPrefix;
  }
  return choice;
}

bool PrefixCostPolicy::MatchIsShort(const RouteSnapshot& snapshot) const {
  uint64_t best = 0;
  for (const ReplicaView& replica : snapshot.replicas) {
    if (replica.available) best = std::max(best, replica.OwnTokens());
  }
  const double prompt_share =
      options_.short_match_share * static_cast<double>(snapshot.prompt_tokens);
  return static_cast<double>(best) <
         std::min(static_cast<double>(options_.short_match_tokens), prompt_share);
}

void PrefixCostPolicy::ChooseByRendezvous(const RouteSnapshot& snapshot,
                                          std::vector<RankedChoice>* ranked) const {
  double least_queued = std::numeric_limits<double>::infinity();
  for (const RankedChoice& choice : *ranked) {
    if (choice.reason == RouteReason::kHolderOut) continue;
    least_queued = std::min(least_queued, choice.queued_seconds);
  }
  auto chosen = ranked->end();
  uint64_t chosen_weight = 0;
  for (auto choice = ranked->begin(); choice != ranked->end(); ++choice) {
    if (choice->reason == RouteReason::kHolderOut) continue;
    const ReplicaView& replica = snapshot.replicas[choice->replica];
    const double own_compute = Seconds(snapshot.prompt_tokens, replica.prefill_tokens_per_second);
    if (choice->queued_seconds > least_queued + options_.queue_slack_prompts * own_compute) {
      continue;
    }
    const uint64_t weight = RendezvousWeight(*snapshot.prefix_hash, replica.stable_hash);
    if (chosen != ranked->end() && weight <= chosen_weight) continue;
    chosen = choice;
    chosen_weight = weight;
  }
  if (chosen == ranked->end()) return;
  chosen->reason = RouteReason::kRendezvous;
  std::rotate(ranked->begin(), chosen, chosen + 1);
}

std::vector<RankedChoice> PrefixCostPolicy::Rank(const RouteSnapshot& snapshot) const {
  std::vector<RankedChoice> ranked;
  ranked.reserve(snapshot.replicas.size());
  for (size_t i = 0; i < snapshot.replicas.size(); ++i) ranked.push_back(Judge(snapshot, i));
  const auto order = [&snapshot](const RankedChoice& choice) {
    return std::make_tuple(choice.reason == RouteReason::kHolderOut, choice.cost_seconds,
                           RendezvousWeight(snapshot.random, choice.replica), choice.replica);
  };
  std::sort(ranked.begin(), ranked.end(),
            [&order](const RankedChoice& a, const RankedChoice& b) { return order(a) < order(b); });
  if (snapshot.prefix_hash.has_value() && MatchIsShort(snapshot)) {
    ChooseByRendezvous(snapshot, &ranked);
  }
  return ranked;
}

}  // namespace cairn::router
