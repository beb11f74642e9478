// ExplainOperation: why the first block that a prompt misses is not held, in steps. Uses and counts
// nothing.
//
// First it walks the prompt, then all blocks of host memory, for those that stand where the missing
// one would (children of the last block that is held; at a region's start, first blocks of its
// scope) and for first blocks of other scopes of the tenant with the same tokens. Blocks that come
// or move while it lets others have the lock may be missed. Sees the tenant's own blocks and public
// ones, no others.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cache_node/store/block_walk.h"
#include "cache_node/store/explain_types.h"
#include "cache_node/store/store_state.h"

namespace cairn::node {

class ExplainOperation {
 public:
  // Blocks that it looks at, at most: a bound on the time of one call.
  static constexpr uint64_t kLookedAtMax = uint64_t{1} << 22;
  static constexpr size_t kStepsPerLook = BlockStore::kStepsPerLock;

  // All that it borrows outlives it.
  ExplainOperation(absl::string_view tenant, const Fingerprint& fingerprint,
                   const ExplainQuery& query);

  // A bounded part, under the shared lock; true when done.
  bool Step(const StoreState& state, absl::Time now);
  ExplainAnswer Take() { return std::move(answer_); }

 private:
  bool Begin(const StoreState& state);
  // False at the first block that is not held, or at the prompt's end.
  bool Advance(const StoreState& state, absl::Time now);
  bool IsHeld(const StoreState& state, PartitionIndex partition, absl::Time now);
  void BeginWalk();
  void Look(const BlockEntry& entry);
  bool StandsThere(const BlockEntry& entry) const;
  void Compare(const BlockEntry& entry);
  absl::Span<const uint32_t> MissingTokens() const;

  const absl::string_view tenant_;
  const Fingerprint& fingerprint_;
  const ExplainQuery& query_;
  ExplainAnswer answer_;

  PartitionIndex own_ = 0;
  PartitionIndex public_ = 0;
  const NamespaceRecord* record_ = nullptr;
  uint64_t epoch_ = 0;
  bool walking_ = false;
  BlockWalk walk_;
  // Of the missing block:
  const ExplainQuery::Region* region_ = nullptr;
  bool at_region_start_ = false;
};

}  // namespace cairn::node
