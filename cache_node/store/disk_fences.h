// DiskFences: which blocks on disk are dead although their records are there, and which scopes are
// being fenced just now.
//
// Known while blocks are being found again: a record whose sequence is not above its namespace's or
// its scope's fence is dead. Held while a fence is made durable and its blocks are removed: no
// block of a held scope is given a sequence meanwhile, so that none is above a fence that it was to
// fall under. Not thread-safe: under the store's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>

#include "absl/container/btree_map.h"
#include "cache_node/tiers/disk/disk_tier.h"

namespace cairn::node {

class DiskFences {
 public:
  void Raise(const DiskTier::Fence& fence);
  // All blocks of any scope up to this sequence are dead.
  void RaiseAll(uint64_t sequence) { all_ = std::max(all_, sequence); }
  // All blocks of the scope up to this sequence are dead.
  uint64_t SequenceOf(const DiskScope& scope) const;
  // All were found: what is dead is not in the index.
  void Forget() {
    raised_.clear();
    all_ = 0;
  }

  // Nested, for calls beside each other.
  void Hold(const DiskTier::Fence& fence);
  void Release(const DiskTier::Fence& fence);
  bool Held(const DiskScope& scope) const;
  // UINT64_MAX when none is held.
  uint64_t OldestHeld() const;

 private:
  // Fingerprint, tenant (empty: the whole namespace), scope.
  using Id = std::tuple<Fingerprint, std::string, BlockKey>;
  static Id IdOf(const DiskTier::Fence& fence);

  struct Holding {
    uint32_t calls = 0;
    uint64_t sequence = UINT64_MAX;  // The least of them, or of earlier ones beside them.
  };

  absl::btree_map<Id, uint64_t> raised_;
  uint64_t all_ = 0;
  absl::btree_map<Id, Holding> held_;
};

}  // namespace cairn::node
