// PublicSweep: finds the public tenant's blocks that are on the way to no listed prefix, in
// batches.
//
// Walks all blocks once to keep those that a listed key names and all before them, then again and
// again to find the rest, until a pass finds nothing: what it found is to be deleted before it goes
// on. Those that are just being written it removes itself. Where an engine names the blocks (key
// scheme 2) a key says nothing of those before it: then only listed ones are kept. A block on the
// way to a listed one that is not there (any more) is not known to be, and goes too. What is
// reserved once the sweep has begun was let in by the same list, or a later one, and is not looked
// at: so a sweep ends, and takes nothing from writers of what is listed. Under the store's lock.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "cache_node/store/block_walk.h"
#include "cache_node/store/store_state.h"

namespace cairn::node {

class PublicSweep {
 public:
  static constexpr size_t kBatchBlocks = 1024;

  // Begins `now`. The keys outlive it.
  PublicSweep(const absl::flat_hash_set<BlockKey>& last_keys, absl::Time now)
      : last_keys_(last_keys), began_(now) {}

  // A bounded part; true when there is a batch, or nothing is left.
  bool Step(StoreState* state);
  // Found since the last call; to be deleted now.
  std::vector<ParentId> TakeBatch();
  bool done() const { return done_; }
  // Removed by the sweep itself.
  uint64_t reservations() const { return reservations_; }

 private:
  // The block at the walk's place, if it is the public tenant's.
  std::optional<ParentId> PublicAt(const StoreState& state) const;
  bool IsPublic(const StoreState& state, PartitionIndex partition) const;
  // It was reserved after the sweep began.
  bool IsNew(const StoreState& state, const ParentId& block) const;
  std::optional<ParentId> ParentOf(const StoreState& state, const ParentId& block) const;
  // One block of the way to a listed one.
  void Climb(const StoreState& state);
  void Look(StoreState* state);

  const absl::flat_hash_set<BlockKey>& last_keys_;
  const absl::Time began_;
  BlockWalk walk_;
  absl::flat_hash_set<ParentId> kept_;
  std::optional<ParentId> climb_;  // Next to be kept.
  bool all_kept_ = false;
  std::vector<ParentId> batch_;
  uint64_t reservations_ = 0;
  bool pass_found_ = false;
  bool done_ = false;
};

}  // namespace cairn::node
