#include "router/policy/preble_policy.h"

#include <algorithm>

#include "router/policy/ranking.h"

namespace cairn::router {

std::vector<RankedChoice> PreblePolicy::Rank(const RouteSnapshot& snapshot) const {
  uint64_t most = 0;
  double queued = 0;
  size_t available = 0;
  for (const ReplicaView& replica : snapshot.replicas) {
    if (!replica.available) continue;
    most = std::max(most, std::min(replica.OwnTokens(), snapshot.prompt_tokens));
    queued += QueuedPrefillSeconds(replica);
    ++available;
  }
  const double mean = available == 0 ? 0 : queued / static_cast<double>(available);
  const bool exploits = most > snapshot.prompt_tokens - most;
  std::vector<double> scores;
  double dearest = 0;
  for (const ReplicaView& replica : snapshot.replicas) {
    scores.push_back(QueuedPrefillSeconds(replica) +
                     static_cast<double>(MissingTokens(snapshot, replica)) /
                         replica.prefill_tokens_per_second);
    dearest = std::max(dearest, scores.back());
  }
  if (!exploits) return RankByScore(snapshot, scores);
  for (size_t i = 0; i < scores.size(); ++i) {
    const ReplicaView& replica = snapshot.replicas[i];
    const double wait = QueuedPrefillSeconds(replica);
    const bool has_it = std::min(replica.OwnTokens(), snapshot.prompt_tokens) == most;
    // Those that have it stand before all others, by their load.
    if (has_it && wait <= kImbalance * mean) scores[i] = wait - dearest - 1;
  }
  return RankByScore(snapshot, scores);
}

}  // namespace cairn::router
