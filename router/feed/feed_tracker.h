// FeedTracker: the order and the digests of one stream of a holder's feed.
//
// It checks what the contract promises (sequences without gaps, each key in its shard, digests that
// agree) and says which shards to ask for again, with backoff. Records go to a sink and are kept
// nowhere else; here is only what digests need. A record is absolute, so those that arrive after a
// gap are taken too: what was there before the gap stays until the shard's snapshot replaces it.
// One tracker a stream. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cairn/v1/feed.pb.h"
#include "router/feed/block_sink.h"

namespace cairn::router {

struct ResyncOptions {
  // Wait before a shard is asked for a second time; doubles up to the bound until its digest
  // agrees.
  absl::Duration backoff_initial = absl::Milliseconds(500);
  absl::Duration backoff_max = absl::Seconds(30);
};

// A key's shard is its first byte mod their number.
inline constexpr uint32_t kFeedShardsMax = 256;

class FeedTracker {
 public:
  // `sink` outlives the tracker. REQUIRES: 0 < shards <= kFeedShardsMax.
  FeedTracker(const ResyncOptions& options, uint32_t shards, BlockSink* sink);

  // INVALID_ARGUMENT or RESOURCE_EXHAUSTED when the message breaks the contract or a bound: the
  // stream is then of no use. Gaps, repeats and digests that differ are no error.
  absl::Status ApplyBatch(const v1::BlockBatch& batch, absl::Time now);
  // The same in pieces of at most `records_max` records, for who must not hold a lock for long:
  // `taken` is 0 at first, and is left at how many records are done. True when all are. Nothing
  // else may come between the pieces.
  absl::StatusOr<bool> ApplyBatchPiece(const v1::BlockBatch& batch, size_t records_max,
                                       size_t* taken, absl::Time now);
  absl::Status ApplyDigest(const v1::ShardDigest& digest, absl::Time now);
  // All digests of one heartbeat. A shard that agreed and is not named will be sent anew: what is
  // here of it is not exact any more.
  absl::Status ApplyDigests(const google::protobuf::RepeatedPtrField<v1::ShardDigest>& digests,
                            absl::Time now);

  // Shards to ask for again now, in order; each comes once until its backoff passed.
  std::vector<uint32_t> TakeResyncs(absl::Time now);

  // Every shard's snapshot is in and no gap is open.
  bool AllShardsIn() const { return shards_in_ == shards_.size(); }
  // AllShardsIn, and the last digest of every shard agreed.
  bool Exact() const { return shards_agreed_ == shards_.size(); }

  uint64_t gaps_seen() const { return gaps_seen_; }
  uint64_t digest_mismatches_seen() const { return digest_mismatches_seen_; }
  // Records for which the sink had no room.
  uint64_t records_dropped() const { return records_dropped_; }

 private:
  static constexpr size_t kTierBits = 8;
  struct TierTotals {
    uint64_t blocks = 0;
    uint64_t key_sum = 0;
    friend bool operator==(const TierTotals&, const TierTotals&) = default;
  };
  using ShardTotals = std::array<TierTotals, kTierBits>;
  enum class Phase {
    kUnsent,  // Its first snapshot has not begun.
    kOpen,    // More batches of its snapshot follow.
    kIn,      // All of it is here, as far as we know.
    kAgreed,  // And its last digest said so.
    kBroken,  // To be sent again.
  };
  struct Shard {
    ShardTotals totals{};
    uint64_t sequence = 0;  // The highest seen.
    Phase phase = Phase::kUnsent;
    absl::Time ask_at = absl::InfinitePast();
    absl::Duration backoff;
  };

  absl::Status CheckBatch(const v1::BlockBatch& batch) const;
  // False when the batch says nothing new.
  bool BeginBatch(const v1::BlockBatch& batch, Shard* shard, absl::Time now);
  absl::Status TakeRecords(const v1::BlockBatch& batch, size_t first, size_t end, Shard* shard,
                           absl::Time now);
  static void Count(const BlockKey& key, uint8_t tiers, uint64_t sign, ShardTotals* totals);
  void Enter(Phase phase, Shard* shard);
  void Break(Shard* shard, absl::Time now);

  const ResyncOptions options_;
  BlockSink* const sink_;
  std::vector<Shard> shards_;
  size_t shards_in_ = 0;      // In phase kIn or kAgreed.
  size_t shards_agreed_ = 0;  // In phase kAgreed.
  uint64_t gaps_seen_ = 0;
  uint64_t digest_mismatches_seen_ = 0;
  uint64_t records_dropped_ = 0;
};

}  // namespace cairn::router
