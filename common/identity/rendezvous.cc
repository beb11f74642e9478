#include "common/identity/rendezvous.h"

#include <algorithm>

#include "common/identity/segment_digest.h"
#include "common/identity/sha256.h"

namespace cairn {
namespace {

// The finaliser of splitmix64: every bit of the result depends on every bit of `x`.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

uint64_t RendezvousPrompt(absl::Span<const BlockKey> keys) {
  uint64_t hash = 0;
  for (const BlockKey& key : keys.first(std::min(keys.size(), kRendezvousBlocks))) {
    hash = hash * 0x9e3779b97f4a7c15 + FeedKeyDigest(key);
  }
  return hash;
}

uint64_t RendezvousReplica(absl::string_view worker_address) {
  const Sha256Digest digest = Sha256(worker_address);
  uint64_t hash = 0;
  for (size_t i = 0; i < sizeof(hash); ++i) hash |= uint64_t{digest[i]} << (8 * i);
  return hash;
}

uint64_t RendezvousWeight(uint64_t prompt, uint64_t replica) { return Mix(prompt ^ Mix(replica)); }

}  // namespace cairn
