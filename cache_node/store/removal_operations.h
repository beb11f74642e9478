// Removal operations: a scope, a namespace, or blocks by key, in steps.
#pragma once

#include <cstdint>
#include <vector>

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

// Removes the blocks that a scope has when it begins, in whatever state.
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

// Removes present blocks of one partition by key.
class DeleteSweep {
 public:
  DeleteSweep(PartitionIndex partition, absl::Span<const BlockKey> keys)
      : partition_(partition), keys_(keys), removed_(keys.size()) {}

  bool Step(StoreState* state);
  std::vector<bool> TakeRemoved() { return std::move(removed_); }

 private:
  const PartitionIndex partition_;
  const absl::Span<const BlockKey> keys_;
  std::vector<bool> removed_;
  size_t next_ = 0;
};

}  // namespace cairn::node
