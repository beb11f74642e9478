// EvictionPolicy: which block makes room. One instance a slot class; a new policy is one new file.
//
// The store tells it what blocks there are and which may go; it answers who goes first. A block may
// go when it is present, unpinned, and no child of its scope or reservation hangs on it: so
// children leave before parents whatever the policy prefers.
//
// Not thread-safe: called under the store's lock, and each call is at most O(log n).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/strings/string_view.h"
#include "cache_node/store/retention.h"

namespace cairn::node {

// A block as policies see it: a number that the store gives out and reuses after Removed.
using BlockHandle = uint32_t;

// Rises with each request that uses blocks: all blocks of one request carry one stamp.
using UseStamp = uint64_t;

class EvictionPolicy {
 public:
  struct BlockTraits {
    uint32_t depth = 0;  // Blocks before it in its prompt.
    uint32_t tokens = 0;
    uint64_t bytes = 0;
    uint8_t priority = kPriorityDefault;  // Its writer's wish (retention.h).
  };

  virtual ~EvictionPolicy() = default;

  virtual absl::string_view name() const = 0;

  // Whether the tier wants such a block at all. False makes a reserve answer DECLINED.
  virtual bool Admits(const BlockTraits& traits) const = 0;

  // A block became present. It may not go before MayGo.
  virtual void Inserted(BlockHandle block, const BlockTraits& traits, UseStamp stamp) = 0;
  // A request used it.
  virtual void Used(BlockHandle block, UseStamp stamp) = 0;
  // It may go from now on, or no longer. Both are idempotent.
  virtual void MayGo(BlockHandle block) = 0;
  virtual void MustStay(BlockHandle block) = 0;
  // It is unreachable (its parent is gone) and goes before all others; or its parent returned.
  virtual void Orphaned(BlockHandle block, bool orphaned) = 0;
  // Its writer's wish is another from now on.
  virtual void PriorityChanged(BlockHandle block, uint8_t priority) = 0;
  // It left, for whatever reason. The handle may be inserted again later.
  virtual void Removed(BlockHandle block) = 0;

  struct Victim {
    BlockHandle block = 0;
    bool orphaned = false;
    UseStamp stamp = 0;
  };
  // Who would go now; stays until Removed. Nothing when no block may go.
  virtual std::optional<Victim> NextVictim() = 0;
};

// Makes the policy of a new slot class.
class EvictionPolicyFactory {
 public:
  virtual ~EvictionPolicyFactory() = default;
  virtual std::unique_ptr<EvictionPolicy> Make() const = 0;
};

}  // namespace cairn::node
