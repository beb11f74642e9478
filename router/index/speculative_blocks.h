// SpeculativeBlocks: what booked requests are about to write, kept apart from what feeds said.
//
// A request that was just routed will make its blocks appear at a holder; one that follows it
// closely should be sent there too. Such a mark ends with the next fed record of its key from that
// holder, with its booking, with a new incarnation of the holder, or by its TTL. Over a bound
// nothing is marked: a mark is only a hint. The bound is on all that is remembered: a booking's
// keys are, those fed included, until none of its marks stands. Not thread-safe: under the core's
// lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/hash/hash.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "router/ids.h"
#include "router/index/block_stripe.h"
#include "router/index/partition_table.h"

namespace cairn::router {

struct SpeculationOptions {
  // Guards against requests that are never reported on.
  absl::Duration ttl = absl::Seconds(60);
  // How long a mark outlives its booking's end: a commit comes before the end, but its record
  // travels another way and may come after it.
  absl::Duration linger = absl::Seconds(1);
  size_t marks_max = size_t{1} << 20;
};

class SpeculativeBlocks {
 public:
  // `partitions` outlives it.
  SpeculativeBlocks(const SpeculationOptions& options, size_t holders, PartitionTable* partitions);

  // Makes room for so many holders. REQUIRES: not fewer than now.
  void GrowTo(size_t holders);

  // Marks the keys, as many of the first as there is room for. REQUIRES: a new booking.
  void Mark(const BookingId& booking, HolderIndex holder, PartitionIndex partition,
            absl::Span<const BlockKey> keys, absl::Time now);
  // A record of the key came from the holder.
  void Fed(HolderIndex holder, const BlockKey& key);
  // The booking ended; unknown ones are no error. `written`: the request did what it was to do, so
  // that its marks may linger.
  void End(const BookingId& booking, bool written, absl::Time now);
  // The holder has a new incarnation.
  void EndHolder(HolderIndex holder);
  // Ends what is past its time.
  void Expire(absl::Time now);

  // Calls `visit` for each mark of the key that still stands.
  void Visit(const BlockKey& key, absl::FunctionRef<void(HolderIndex, PartitionIndex)> visit) const;

  bool empty() const { return stands_.empty(); }
  // Those that stand.
  size_t mark_count() const { return mark_count_; }
  // Keys of all bookings that have a mark: what marks_max bounds.
  size_t key_count() const { return key_count_; }

 private:
  using Number = uint32_t;  // Of a speculation; used again when it is over.
  struct Speculation {
    BookingId booking;
    PartitionIndex partition = 0;
    uint32_t generation = 0;  // Of the holder.
    HolderIndex holder = 0;
    std::vector<BlockKey> keys;
    size_t standing = 0;  // Marks of them that stand.
    absl::Time expires;
  };
  // Keys are digests: their bytes are hash enough, without a second round over them.
  struct KeyHash {
    size_t operator()(const BlockKey& key) const { return BlockStripe::HashOf(key, seed); }
    uint64_t seed = absl::HashOf(uint64_t{1});  // Another in each process.
  };
  // Those that stand on a key, each once: a prompt that has one key 65,536 times is walked in as
  // many steps, and not in their square.
  using Stands = absl::InlinedVector<Number, 2>;

  // Erases the key's marks for which the condition holds; those it belonged to are told.
  template <typename Condition>
  void EraseStands(const BlockKey& key, Condition condition);
  void SetDeadline(Number number, absl::Time expires);
  void Drop(Number number);

  const SpeculationOptions options_;
  PartitionTable* const partitions_;
  std::vector<uint32_t> generations_;  // By holder.
  absl::flat_hash_map<BlockKey, Stands, KeyHash> stands_;
  size_t mark_count_ = 0;
  size_t key_count_ = 0;
  std::vector<Speculation> speculations_;  // By number.
  std::vector<Number> free_numbers_;
  absl::flat_hash_map<BookingId, Number> by_booking_;         // One for each speculation.
  absl::btree_set<std::pair<absl::Time, Number>> deadlines_;  // The same.
};

}  // namespace cairn::router
