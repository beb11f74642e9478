#include "router/policy/ranking.h"

#include <algorithm>
#include <tuple>

#include "common/base/check.h"
#include "common/identity/rendezvous.h"

namespace cairn::router {

std::vector<RankedChoice> RankByScore(const RouteSnapshot& snapshot,
                                      absl::Span<const double> scores) {
  CAIRN_CHECK(scores.size() == snapshot.replicas.size());
  std::vector<RankedChoice> ranked;
  ranked.reserve(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    const ReplicaView& replica = snapshot.replicas[i];
    RankedChoice choice{.replica = i,
                        .cost_seconds = scores[i],
                        .queued_seconds = QueuedPrefillSeconds(replica),
                        .reason = RouteReason::kLoad};
    if (!replica.available) {
      choice.reason = RouteReason::kHolderOut;
    } else if (replica.OwnTokens() > 0) {
      choice.reason = RouteReason::kPrefix;
    }
    ranked.push_back(choice);
  }
  const auto order = [&snapshot](const RankedChoice& choice) {
    return std::make_tuple(choice.reason == RouteReason::kHolderOut, choice.cost_seconds,
                           RendezvousWeight(snapshot.random, choice.replica), choice.replica);
  };
  std::sort(ranked.begin(), ranked.end(),
            [&order](const RankedChoice& a, const RankedChoice& b) { return order(a) < order(b); });
  return ranked;
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
