// Removal operations: a scope, a namespace, or blocks by key, in steps.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache_node/store/store_state.h"
#include "cache_node/store/store_types.h"

namespace cairn::node {

// Removes what is left of the partitions of a namespace that was retired (NamespaceTable::Retire).
class RetireSweep {
 public:
  explicit RetireSweep(std::vector<PartitionIndex> partitions)
      : partitions_(std::move(partitions)) {}

  // A bounded part; true when done.
  bool Step(StoreState* state);
  const RemovedBlocks& removed() const { return removed_; }

 private:
  std::vector<PartitionIndex> partitions_;
  RemovedBlocks removed_;
};

// Removes the blocks that a scope has when it begins, in whatever state and tier. None of the scope
// is spilled meanwhile (DiskFences::Hold).
class ClearSweep {
 public:
  ClearSweep(PartitionIndex partition, const BlockKey& scope_digest)
      : partition_(partition), scope_digest_(scope_digest) {}

  bool Step(StoreState* state);
  const RemovedBlocks& removed() const { return removed_; }

 private:
  const PartitionIndex partition_;
  const BlockKey scope_digest_;
  std::optional<uint64_t> left_;
  RemovedBlocks removed_;
};

// Removes readable blocks of one partition by key, in rounds: StepCollect says where they are on
// disk, those places are marked dead outside the lock, then StepRemove removes the blocks that are
// nowhere else. A block that was written to another place meanwhile is left for the next round.
class DeleteSweep {
 public:
  DeleteSweep(PartitionIndex partition, absl::Span<const BlockKey> keys)
      : partition_(partition), keys_(keys), removed_(keys.size()), done_(keys.size()) {}

  bool StepCollect(StoreState* state);
  bool StepRemove(StoreState* state);
  // The round's places could not be marked: all is as it was.
  bool StepGiveUp(StoreState* state);

  // Of this round; taken as marked by StepRemove.
  const std::vector<DiskPlace>& places() const { return places_; }
  bool complete() const { return left_ == 0; }
  std::vector<bool> TakeRemoved() { return std::move(removed_); }

 private:
  void PlacesOf(const StoreState& state, const BlockKey& key, std::vector<DiskPlace>* places) const;
  bool Next(const std::function<void(size_t)>& look);

  const PartitionIndex partition_;
  const absl::Span<const BlockKey> keys_;
  std::vector<bool> removed_;
  std::vector<bool> done_;
  size_t next_ = 0;
  size_t left_ = 0;
  std::vector<DiskPlace> places_;
  absl::flat_hash_set<std::pair<uint64_t, uint32_t>> marked_;  // Of all rounds.
};

}  // namespace cairn::node
