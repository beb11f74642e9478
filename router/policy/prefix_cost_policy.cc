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

bool IsOut(const RankedChoice& choice) { return choice.reason == RouteReason::kHolderOut; }

// The queue there as this policy counts it, without the session.
double Wait(const RouteTerms& terms) {
  return terms.queued_seconds + terms.ramp_seconds + terms.label_seconds;
}

}  // namespace

PrefixCostPolicy::PrefixCostPolicy(const PrefixCostOptions& options) : options_(options) {
  CAIRN_CHECK(options.miss_weight >= 1 && options.queue_slack_prompts >= 0 &&
              options.decode_weight >= 0 && options.ramp_seconds >= 0 &&
              options.session_seconds >= 0);
}

// Booked prefill, what running decodes take from it, and the wait for KV that is not free: the part
// that does not fit takes as long to come free as it took to be made. At most what the request
// itself needs: what all that is booked lacks besides is told by the queue, and would outweigh any
// hit where replicas are short of KV (`cairn-bench routing --model decode`, Claude Code at a load
// of 0.1 with 1,000,000 KV tokens: 0.784 hit without this bound, 0.929 with it, first tokens in
// half the time).
double PrefixCostPolicy::QueuedSeconds(const RouteSnapshot& snapshot,
                                       const ReplicaView& replica) const {
  const double running = static_cast<double>(replica.running_kv_tokens);
  double tokens =
      static_cast<double>(replica.queued_prefill_tokens) + options_.decode_weight * running;
  if (replica.kv_tokens_max.has_value()) {
    const double needed = static_cast<double>(snapshot.prompt_tokens + snapshot.output_tokens);
    const double lacking = running + needed - static_cast<double>(*replica.kv_tokens_max);
    tokens += std::clamp(lacking, 0.0, needed);
  }
  return tokens / replica.prefill_tokens_per_second;
}

// Of 1 just started, of 0 nothing is left of its ramp.
double PrefixCostPolicy::RampLeft(const ReplicaView& replica) const {
  if (!replica.age_seconds.has_value() || options_.ramp_seconds <= 0) return 0;
  return std::clamp(1 - *replica.age_seconds / options_.ramp_seconds, 0.0, 1.0);
}

double PrefixCostPolicy::MeanQueuedSeconds(const RouteSnapshot& snapshot) const {
  double seconds = 0;
  size_t count = 0;
  for (const ReplicaView& replica : snapshot.replicas) {
    if (!replica.available || RampLeft(replica) > 0) continue;
    seconds += QueuedSeconds(snapshot, replica);
    ++count;
  }
  return count == 0 ? 0 : seconds / static_cast<double>(count);
}

RankedChoice PrefixCostPolicy::Judge(const RouteSnapshot& snapshot, double mean_queued_seconds,
                                     size_t index) const {
  const ReplicaView& replica = snapshot.replicas[index];
  CAIRN_CHECK(replica.prefill_tokens_per_second > 0);
  RankedChoice choice;
  choice.replica = index;
  choice.terms = TermsOf(snapshot, replica, QueuedSeconds(snapshot, replica), options_.trust);
  RouteTerms& terms = choice.terms;
  terms.ramp_seconds = RampLeft(replica) * mean_queued_seconds;
  terms.label_seconds = replica.lacking_label_seconds;
  if (replica.session_here) {
    const double saved = options_.miss_weight * terms.compute_seconds;
    terms.session_seconds = -std::min(options_.session_seconds, saved);
  }
  const double work = terms.compute_seconds + terms.fetch_seconds;
  choice.score = Wait(terms) + terms.session_seconds + options_.miss_weight * work;
  const bool fetches_remote = replica.remote_tokens > 0 &&
                              replica.remote_tokens_per_second > replica.prefill_tokens_per_second;
  if (!replica.available) {
    choice.reason = RouteReason::kHolderOut;
  } else if (replica.OwnTokens() > 0 || fetches_remote) {
    choice.reason = RouteReason::kPrefix;
  }
  return choice;
}

bool PrefixCostPolicy::MatchIsShort(const RouteSnapshot& snapshot) const {
  double best = 0;
  for (const ReplicaView& replica : snapshot.replicas) {
    if (replica.available) best = std::max(best, TrustedTokens(replica, options_.trust));
  }
  const double prompt_share =
      options_.short_match_share * static_cast<double>(snapshot.prompt_tokens);
  return best < std::min(static_cast<double>(options_.short_match_tokens), prompt_share);
}

// By replica: what it takes longer for the whole prompt than kSlowFactor times the fastest.
std::vector<double> PrefixCostPolicy::SlowSeconds(const RouteSnapshot& snapshot) const {
  double fastest = 0;
  for (const ReplicaView& replica : snapshot.replicas) {
    if (replica.available) fastest = std::max(fastest, replica.prefill_tokens_per_second);
  }
  std::vector<double> seconds(snapshot.replicas.size());
  if (fastest <= 0) return seconds;
  const double allowed = kSlowFactor * Seconds(snapshot.prompt_tokens, fastest);
  for (size_t i = 0; i < seconds.size(); ++i) {
    const double rate = snapshot.replicas[i].prefill_tokens_per_second;
    seconds[i] = std::max(0.0, Seconds(snapshot.prompt_tokens, rate) - allowed);
  }
  return seconds;
}

// One that is silent is chosen only where all are: it may be gone.
void PrefixCostPolicy::ChooseByRendezvous(const RouteSnapshot& snapshot,
                                          std::vector<RankedChoice>* ranked) const {
  const std::vector<double> slow_seconds = SlowSeconds(snapshot);
  const auto wait = [&slow_seconds](const RankedChoice& choice) {
    return Wait(choice.terms) + slow_seconds[choice.replica];
  };
  double least_wait = std::numeric_limits<double>::infinity();
  for (const RankedChoice& choice : *ranked) {
    if (!IsOut(choice)) least_wait = std::min(least_wait, wait(choice));
  }
  auto chosen = ranked->end();
  std::tuple<bool, bool, uint64_t> chosen_rank;
  for (auto choice = ranked->begin(); choice != ranked->end(); ++choice) {
    if (IsOut(*choice)) continue;
    const ReplicaView& replica = snapshot.replicas[choice->replica];
    const double own_compute = Seconds(snapshot.prompt_tokens, replica.prefill_tokens_per_second);
    const double slack = options_.queue_slack_prompts * own_compute - choice->terms.session_seconds;
    if (wait(*choice) > least_wait + slack) continue;
    const std::tuple<bool, bool, uint64_t> rank = {
        replica.session_here, replica.holder_state != HolderState::kDegraded,
        RendezvousWeight(*snapshot.prefix_hash, replica.stable_hash)};
    if (chosen != ranked->end() && rank <= chosen_rank) continue;
    chosen = choice;
    chosen_rank = rank;
  }
  if (chosen == ranked->end()) return;
  const bool by_session = snapshot.replicas[chosen->replica].session_here;
  chosen->reason = by_session ? RouteReason::kSession : RouteReason::kRendezvous;
  std::rotate(ranked->begin(), chosen, chosen + 1);
}

std::vector<RankedChoice> PrefixCostPolicy::Rank(const RouteSnapshot& snapshot) const {
  const double mean_queued_seconds = MeanQueuedSeconds(snapshot);
  std::vector<RankedChoice> ranked;
  ranked.reserve(snapshot.replicas.size());
  for (size_t i = 0; i < snapshot.replicas.size(); ++i) {
    ranked.push_back(Judge(snapshot, mean_queued_seconds, i));
  }
  const auto order = [&snapshot](const RankedChoice& choice) {
    const ReplicaView& replica = snapshot.replicas[choice.replica];
    return std::make_tuple(IsOut(choice), choice.score, !replica.session_here,
                           -static_cast<int>(replica.holder_state),
                           RendezvousWeight(snapshot.random, choice.replica), choice.replica);
  };
  std::sort(ranked.begin(), ranked.end(),
            [&order](const RankedChoice& a, const RankedChoice& b) { return order(a) < order(b); });
  if (snapshot.prefix_hash.has_value() && MatchIsShort(snapshot)) {
    ChooseByRendezvous(snapshot, &ranked);
  } else {
    NoteSession(snapshot, &ranked);
  }
  PutLateOnesAfter(snapshot, &ranked);
  return ranked;
}

// Says so where the session alone put the first one before the next.
void PrefixCostPolicy::NoteSession(const RouteSnapshot& snapshot,
                                   std::vector<RankedChoice>* ranked) const {
  if (ranked->size() < 2 || IsOut((*ranked)[0]) || IsOut((*ranked)[1])) return;
  RankedChoice& first = ranked->front();
  if (!snapshot.replicas[first.replica].session_here) return;
  if (first.score - first.terms.session_seconds >= (*ranked)[1].score) {
    first.reason = RouteReason::kSession;
  }
}

}  // namespace cairn::router
