#include "client/cpp/rendezvous.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "common/identity/segment_digest.h"
#include "common/identity/sha256.h"

namespace cairn {
namespace {

constexpr size_t kRendezvousBlocks = 4;

// The finaliser of splitmix64: every bit of the result depends on every bit of `x`.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

uint64_t PrefixHash(absl::Span<const BlockKey> keys) {
  uint64_t hash = 0;
  for (const BlockKey& key : keys.first(std::min(keys.size(), kRendezvousBlocks))) {
    hash = hash * 0x9e3779b97f4a7c15 + FeedKeyDigest(key);
  }
  return hash;
}

uint64_t WorkerHash(absl::string_view worker_address) {
  const Sha256Digest digest = Sha256(worker_address);
  uint64_t hash = 0;
  std::memcpy(&hash, digest.data(), sizeof(hash));
  return hash;
}

}  // namespace

std::vector<RoutedReplica> OrderByRendezvous(absl::Span<const BlockKey> keys,
                                             std::vector<RoutedReplica> replicas) {
  if (keys.empty()) return replicas;
  const uint64_t prefix_hash = PrefixHash(keys);
  std::vector<std::pair<uint64_t, RoutedReplica*>> weighed;
  for (RoutedReplica& replica : replicas) {
    weighed.emplace_back(Mix(prefix_hash ^ Mix(WorkerHash(replica.worker_address))), &replica);
  }
  std::stable_sort(weighed.begin(), weighed.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<RoutedReplica> ordered;
  ordered.reserve(replicas.size());
  for (const auto& [weight, replica] : weighed) ordered.push_back(std::move(*replica));
  return ordered;
}

}  // namespace cairn
