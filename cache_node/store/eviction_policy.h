// EvictionPolicy: which block makes room, and which newcomer is not worth it. A new policy is one
// new file in policies/, and one line in its registry.
//
// The store tells it what blocks there are and which may go; it answers who goes first. A block may
// go when it is present, unpinned, and no child of its scope or reservation hangs on it: so
// children leave before parents whatever the policy prefers.
//
// Time is counted in requests: each call carries the stamp of the request that it is for, and
// NextVictim means the newest stamp of any call. The calls of one request, in this order:
//   Missed     for each block of its prompt that is not there, after those that are,
//   Admits     for each block that it brings, then NextVictim and Removed where room is made,
//   Inserted   for each block once it is written,
//   Used       for each block that was there, deepest first, when it is done with it.
// With several requests at once their calls mix. So every use of a block is told once, as Used or
// as Missed, and a policy that remembers keys of blocks that left, or never came, can learn from
// both. A block that a request brings without having asked for it is not Missed before.
//
// One instance a slot class, that is one tenant's blocks of one size: each ranks its own blocks
// only, and goes with the last of them, with what it learnt. What is to be learnt from all classes,
// or to outlive one, is kept by the factory and shared by the policies that it makes: all of one
// factory's are called under one lock.
//
// Deterministic: the same calls give the same answers, under the seed that the factory has, if it
// needs one. Not thread-safe: called under the store's lock, each call at most O(log n), what is
// done now and then for all (say every 256 requests) amortised and bounded. Memory is bounded by
// the blocks that it was told of at one time, which the store's budget for its index counts.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include "absl/strings/string_view.h"
#include "cache_node/store/retention.h"
#include "common/base/bytes16.h"

namespace cairn::node {

// A block as policies see it: a number that the store gives out and reuses after Removed. Small:
// numbers of one class have no large gaps.
using BlockHandle = uint32_t;
inline constexpr BlockHandle kNoBlock = UINT32_MAX;

// The number of a request: rises with each, and all that one request does carries one stamp.
using UseStamp = uint64_t;

// A block's key as policies know it: keys are digests, so a part of one is spread as evenly.
inline uint64_t PolicyKey(const BlockKey& key) {
  uint64_t part = 0;
  std::memcpy(&part, key.bytes.data(), sizeof(part));
  return part;
}

class EvictionPolicy {
 public:
  struct BlockTraits {
    // Stays the block's through removals and returns, and is evenly spread: a hash already.
    uint64_t key = 0;
    uint32_t depth = 0;  // Blocks before it in its prompt.
    uint32_t tokens = 0;
    uint64_t bytes = 0;
    uint8_t priority = kPriorityDefault;  // Its writer's wish (retention.h).
    // The request that asks for it or brings it: blocks of its prompt, 0 when not known (a block
    // that comes from disk), and how many of them were there already. The last one has depth
    // prompt_blocks - 1.
    uint32_t prompt_blocks = 0;
    uint32_t prompt_hits = 0;
    // The block before it, where that is present in the same class; of missed blocks only the first
    // one of a prompt says it.
    BlockHandle parent = kNoBlock;
  };

  struct Victim {
    BlockHandle block = 0;
    bool orphaned = false;
    // Of the last use of the block of the class that was used least recently, or nearly: classes
    // are compared by it, so one whose newest block goes first is not the newer for it.
    UseStamp stamp = 0;
  };

  virtual ~EvictionPolicy() = default;

  virtual absl::string_view name() const = 0;

  // A request asked for a block that is not there.
  virtual void Missed(const BlockTraits& /*block*/, UseStamp /*stamp*/) {}

  // Whether a newcomer is worth its room: asked with null whether it is wanted at all, then, each
  // time that another would leave for it, with that one (NextVictim's answer, not orphaned). False
  // makes a reserve answer DECLINED, and nothing later of that prompt comes. May be asked again
  // about the same newcomer; one that was admitted may never come. Not asked where a lower tier
  // takes what comes in (the disk, at commit): that needs the room for a while.
  virtual bool Admits(const BlockTraits& newcomer, UseStamp stamp, const Victim* displaced) = 0;

  // A block became present. It may not go before MayGo.
  virtual void Inserted(BlockHandle block, const BlockTraits& traits, UseStamp stamp) = 0;
  // A request used it.
  virtual void Used(BlockHandle block, UseStamp stamp) = 0;
  // It may go from now on, or no longer. Both are idempotent.
  virtual void MayGo(BlockHandle block) = 0;
  virtual void MustStay(BlockHandle block) = 0;
  // It is unreachable (its parent is gone) and goes before all others; or its parent returned.
  virtual void Orphaned(BlockHandle block, bool orphaned) = 0;
  // Its writer's wish is another from now on. Among blocks that are not orphans, a lower priority
  // goes before a higher one whatever else the policy prefers.
  virtual void PriorityChanged(BlockHandle block, uint8_t priority) = 0;
  // It left, for whatever reason. The handle may be inserted again later.
  virtual void Removed(BlockHandle block) = 0;

  // Who would go now; stays until a call that changes who. Nothing when no block may go.
  virtual std::optional<Victim> NextVictim() = 0;

  // Bytes that it holds, learnt state with them: for reports. 0: not counted.
  virtual uint64_t MemoryBytes() const { return 0; }
};

// Makes the policy of a new slot class.
class EvictionPolicyFactory {
 public:
  virtual ~EvictionPolicyFactory() = default;
  virtual std::unique_ptr<EvictionPolicy> Make() const = 0;
};

}  // namespace cairn::node
