#include "client/cpp/rendezvous.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/identity/rendezvous.h"

namespace cairn {
std::vector<RoutedReplica> OrderByRendezvous(absl::Span<const BlockKey> keys,
                                             std::vector<RoutedReplica> replicas) {
  if (keys.empty()) return replicas;
  const uint64_t prompt = RendezvousPrompt(keys);
  std::vector<std::pair<uint64_t, RoutedReplica*>> weighed;
  for (RoutedReplica& replica : replicas) {
    weighed.emplace_back(RendezvousWeight(prompt, RendezvousReplica(replica.worker_address)),
                         &replica);
  }
  std::stable_sort(weighed.begin(), weighed.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<RoutedReplica> ordered;
  ordered.reserve(replicas.size());
  for (const auto& [weight, replica] : weighed) ordered.push_back(std::move(*replica));
  return ordered;
}

}  // namespace cairn
