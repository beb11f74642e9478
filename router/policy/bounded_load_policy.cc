#include "router/policy/bounded_load_policy.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "common/identity/rendezvous.h"
#include "router/policy/ranking.h"

namespace cairn::router {

std::vector<RankedChoice> BoundedLoadPolicy::Rank(const RouteSnapshot& snapshot) const {
  const uint64_t place = PlaceOf(snapshot);
  uint64_t queued = snapshot.prompt_tokens;
  size_t available = 0;
  std::vector<std::pair<uint64_t, size_t>> order;
  for (size_t i = 0; i < snapshot.replicas.size(); ++i) {
    const ReplicaView& replica = snapshot.replicas[i];
    order.emplace_back(RendezvousWeight(place, replica.stable_hash), i);
    if (!replica.available) continue;
    queued += replica.queued_prefill_tokens;
    ++available;
  }
  const double bound =
      kFactor * static_cast<double>(queued) / static_cast<double>(std::max<size_t>(1, available));
  std::sort(order.begin(), order.end(), std::greater<>());
  std::vector<double> scores(snapshot.replicas.size());
  for (size_t turn = 0; turn < order.size(); ++turn) {
    const ReplicaView& replica = snapshot.replicas[order[turn].second];
    const uint64_t with_prompt = replica.queued_prefill_tokens + snapshot.prompt_tokens;
    // An idle replica takes any prompt, however large beside the bound.
    const bool over = replica.queued_prefill_tokens > 0 && static_cast<double>(with_prompt) > bound;
    scores[order[turn].second] = static_cast<double>(turn + (over ? order.size() : 0));
  }
  return RankByScore(snapshot, scores);
}

}  // namespace cairn::router
