#include "router/policy/ranking.h"

#include <algorithm>
#include <tuple>

#include "common/base/check.h"
#include "common/identity/rendezvous.h"

namespace cairn::router {
namespace {

double Seconds(double tokens, double tokens_per_second) { return tokens / tokens_per_second; }

double StaleDiscount(const ReplicaView& replica, const TrustOptions& options) {
  return 1 - std::clamp(replica.stale_share, 0.0, options.stale_share_most);
}

}  // namespace

double TrustOf(const ReplicaView& replica, const TrustOptions& options) {
  const double discount = StaleDiscount(replica, options);
  switch (replica.holder_state) {
    case HolderState::kExact:
    case HolderState::kOut:  // Nothing of it is matched.
      return discount;
    case HolderState::kRecovering:
      return discount * options.recovering;
    case HolderState::kDegraded:
      return discount * options.degraded;
  }
  CAIRN_CHECK_MSG(false, "a holder's state that does not exist");
  return 0;
}

double TrustedTokens(const ReplicaView& replica, const TrustOptions& options) {
  double fed = 0;
  for (const uint64_t tokens : replica.own_tokens) fed += static_cast<double>(tokens);
  return TrustOf(replica, options) * fed +
         StaleDiscount(replica, options) * static_cast<double>(replica.coming_tokens);
}

RouteTerms TermsOf(const RouteSnapshot& snapshot, const ReplicaView& replica, double queued_seconds,
                   const TrustOptions& options) {
  const double rate = replica.prefill_tokens_per_second;
  CAIRN_CHECK(rate > 0);
  RouteTerms terms;
  terms.queued_seconds = queued_seconds;
  terms.trust = TrustOf(replica, options);
  double computed = static_cast<double>(MissingTokens(snapshot, replica)) +
                    static_cast<double>(replica.OwnTokens()) - TrustedTokens(replica, options);
  for (size_t tier = 0; tier < kTierCount; ++tier) {
    const double tokens = terms.trust * static_cast<double>(replica.own_tokens[tier]);
    if (snapshot.transfer.own[tier] > rate) {
      terms.fetch_seconds += Seconds(tokens, snapshot.transfer.own[tier]);
    } else {
      computed += tokens;
    }
  }
  if (replica.remote_tokens_per_second > rate) {
    const uint64_t remote = std::min(replica.remote_tokens, MissingTokens(snapshot, replica));
    computed -= static_cast<double>(remote);
    terms.fetch_seconds += Seconds(static_cast<double>(remote), replica.remote_tokens_per_second);
  }
  terms.compute_seconds = Seconds(computed, rate);
  terms.expected_ttft_seconds = queued_seconds + terms.compute_seconds + terms.fetch_seconds;
  return terms;
}

std::vector<RankedChoice> RankByScore(const RouteSnapshot& snapshot,
                                      absl::Span<const double> scores) {
  CAIRN_CHECK(scores.size() == snapshot.replicas.size());
  std::vector<RankedChoice> ranked;
  ranked.reserve(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    const ReplicaView& replica = snapshot.replicas[i];
    RankedChoice choice{.replica = i,
                        .score = scores[i],
                        .terms = TermsOf(snapshot, replica, QueuedPrefillSeconds(replica)),
                        .reason = RouteReason::kLoad};
    if (!replica.available) {
      choice.reason = RouteReason::kHolderOut;
    } else if (replica.OwnTokens() > 0) {
      choice.reason = RouteReason::kPrefix;
    }
    ranked.push_back(choice);
  }
  const auto order = [&snapshot](const RankedChoice& choice) {
    return std::make_tuple(choice.reason == RouteReason::kHolderOut, choice.score,
                           RendezvousWeight(snapshot.random, choice.replica), choice.replica);
  };
  std::sort(ranked.begin(), ranked.end(),
            [&order](const RankedChoice& a, const RankedChoice& b) { return order(a) < order(b); });
  PutLateOnesAfter(snapshot, &ranked);
  return ranked;
}

void PutLateOnesAfter(const RouteSnapshot& snapshot, std::vector<RankedChoice>* ranked) {
  if (!snapshot.deadline_seconds.has_value()) return;
  const auto is_in = [](const RankedChoice& choice) {
    return choice.reason != RouteReason::kHolderOut;
  };
  const auto out = std::partition_point(ranked->begin(), ranked->end(), is_in);
  const auto late =
      std::stable_partition(ranked->begin(), out, [&snapshot](const RankedChoice& choice) {
        return choice.terms.expected_ttft_seconds <= *snapshot.deadline_seconds;
      });
  std::stable_sort(late, out, [](const RankedChoice& a, const RankedChoice& b) {
    return a.terms.expected_ttft_seconds < b.terms.expected_ttft_seconds;
  });
}

double QueuedPrefillSeconds(const ReplicaView& replica) {
  CAIRN_CHECK(replica.prefill_tokens_per_second > 0);
  return static_cast<double>(replica.queued_prefill_tokens) / replica.prefill_tokens_per_second;
}

uint64_t MissingTokens(const RouteSnapshot& snapshot, const ReplicaView& replica) {
  return snapshot.prompt_tokens - std::min(replica.OwnTokens(), snapshot.prompt_tokens);
}

uint64_t PlaceOf(const RouteSnapshot& snapshot) {
  return snapshot.prefix_hash.value_or(snapshot.random);
}

}  // namespace cairn::router
