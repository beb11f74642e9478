// LeasedRuns: blocks of leases as kernels see them, pinned while they are asked for.
//
// A step a layer comes for the same lease again and again: its blocks are pinned once, and looked
// at again only when some block of the store was revoked. What was not asked for lately, or whose
// lease is over, is given back at a Tick. Not thread-safe: the engine's, like what it hands out.
// Borrows the store, which must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cache_node/decode/engine/decode_step.h"
#include "cache_node/decode/slot_run.h"
#include "cache_node/store/block_pin.h"
#include "cache_node/store/block_store.h"

namespace cairn::node {

class LeasedRuns {
 public:
  // Prompts of leases, and their blocks, that are pinned at once; the least used go first.
  static constexpr size_t kRunsMax = 512;
  static constexpr size_t kBlocksMax = size_t{1} << 18;
  static constexpr uint64_t kBytesMax = kBlocksMax * (sizeof(BlockPin) + sizeof(void*));
  static constexpr absl::Duration kKeptUnused = absl::Seconds(1);

  LeasedRuns(BlockStore* store, const StoreCounters* counters)
      : store_(store), counters_(counters) {}

  // ABORTED: the lease is unknown, over, another tenant's or of another namespace, or covers less
  // than is asked for. FAILED_PRECONDITION: a block lacks the shape's group, which not all need to
  // have. INVALID_ARGUMENT: it has no such prompt. The run is valid until Tick, Begin, or a Find of
  // another round.
  absl::StatusOr<SlotRun> Find(absl::string_view tenant, const Fingerprint& fingerprint,
                               const LeasedTarget& target, const AttendShape& shape);
  // ABORTED when a block of it is not to be read any more. REQUIRES: Find gave it in this round.
  absl::Status Recheck(absl::string_view tenant, const Fingerprint& fingerprint,
                       const LeasedTarget& target, const SlotRun& run);

  // A round of steps begins: what it finds it finds once.
  void Begin(absl::Time now);
  void Tick(absl::Time now);

  size_t runs() const { return runs_.size(); }
  size_t blocks() const { return blocks_; }

 private:
  struct Key {
    std::string tenant;
    Fingerprint fingerprint;
    LeaseId lease;
    uint32_t prompt = 0;

    friend bool operator==(const Key& a, const Key& b) {
      return a.lease == b.lease && a.prompt == b.prompt && a.fingerprint == b.fingerprint &&
             a.tenant == b.tenant;
    }
    template <typename H>
    friend H AbslHashValue(H state, const Key& key) {
      return H::combine(std::move(state), key.lease, key.prompt);
    }
  };
  struct Run {
    std::vector<BlockPin> pins;
    std::vector<const std::byte*> slots;
    uint64_t revocations = 0;  // All pins were readable then.
    uint64_t round = 0;        // In which it was found last,
    absl::Time used;           // and when that was.
    std::list<Key>::iterator age;
  };

  absl::StatusOr<Run*> FindRun(const Key& key);
  absl::Status Fill(const Key& key, Run* run);
  absl::Status CheckLease(const Key& key) const;
  // The first of `pins` is of block `first_block`.
  static absl::Status CheckStored(absl::Span<const BlockPin> pins, uint32_t first_block,
                                  const AttendShape& shape);
  uint64_t Revocations() const { return counters_->revocations.load(std::memory_order_acquire); }
  void MakeRoom();
  void Drop(const Key& key);

  BlockStore* const store_;
  const StoreCounters* const counters_;
  uint64_t round_ = 0;
  absl::Time now_;
  size_t blocks_ = 0;
  absl::flat_hash_map<Key, Run> runs_;
  std::list<Key> by_age_;  // The least recently used first.
};

}  // namespace cairn::node
