// BlockMirror: what a node holds, as its feed tells it.
//
// A pure state machine over the messages of one stream (block_watcher.h reads them); time is an
// argument. One mirror a stream: after a broken stream make a new one. It checks what the contract
// promises (sequences without gaps, each key in its shard, digests that agree) and says which
// shards to ask for again; such a shard answers nothing until its snapshot is whole. Soft state: a
// block listed here may be gone by the time that anyone asks the node. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cairn/v1/feed.pb.h"
#include "common/base/bytes16.h"
#include "common/identity/fingerprint.h"

namespace cairn {

struct MirrorOptions {
  // Blocks held; a node with more is refused.
  size_t blocks_max = size_t{64} << 20;
  // Wait before a shard is asked for a second time; doubles up to the bound until its digest
  // agrees.
  absl::Duration resync_backoff_initial = absl::Milliseconds(500);
  absl::Duration resync_backoff_max = absl::Seconds(30);
};

inline constexpr uint32_t kMirrorShardsMax = 1 << 16;
inline constexpr size_t kMirrorOwnersMax = 1 << 16;

class BlockMirror {
 public:
  static constexpr size_t kTierBits = 8;

  // Whose blocks.
  struct Owner {
    Fingerprint fingerprint;
    std::string tenant;
  };
  // Blocks of one shard in one tier, and the sum mod 2^64 of their keys' digests.
  struct TierTotals {
    uint64_t blocks = 0;
    uint64_t key_sum = 0;

    friend bool operator==(const TierTotals&, const TierTotals&) = default;
  };
  using ShardTotals = std::array<TierTotals, kTierBits>;

  explicit BlockMirror(const MirrorOptions& options);

  // Takes the next message. INVALID_ARGUMENT or RESOURCE_EXHAUSTED when it breaks the contract or a
  // bound: the stream is then of no use. Gaps and digests that differ are no error: see
  // TakeResyncs.
  absl::Status Apply(const v1::WatchBlocksResponse& message, absl::Time now);

  // Shards to ask for again now, in order; each comes once until its backoff passed.
  std::vector<uint32_t> TakeResyncs(absl::Time now);

  // Bit (Tier - 1) for each tier that holds the block; 0 when it is not here, its shard is being
  // sent again, or its namespace is retired.
  uint8_t TiersOf(const BlockKey& key) const;
  // Of a block that TiersOf knows.
  std::optional<Owner> OwnerOf(const BlockKey& key) const;

  // Every shard's snapshot is in and no gap is open.
  bool AllShardsIn() const;
  // AllShardsIn, and the last heartbeat's digests agreed for every shard it could be compared with
  // (none, for a watcher that is shown some tenants only).
  bool Exact() const;

  // Nothing before the first message.
  const std::optional<v1::NodeInfo>& node() const { return node_; }
  const std::optional<v1::LoadReport>& load() const { return load_; }
  uint32_t shard_count() const { return static_cast<uint32_t>(shards_.size()); }
  // REQUIRES: shard < shard_count().
  const ShardTotals& TotalsOf(uint32_t shard) const;
  uint64_t SequenceOf(uint32_t shard) const;
  size_t block_count() const { return block_count_; }

  uint64_t gaps_seen() const { return gaps_seen_; }
  uint64_t digest_mismatches_seen() const { return digest_mismatches_seen_; }

 private:
  struct Entry {
    uint8_t tiers = 0;
    uint32_t owner = 0;
  };
  struct Shard {
    absl::flat_hash_map<BlockKey, Entry> blocks;
    ShardTotals totals;
    uint64_t sequence = 0;
    bool started = false;        // Its first snapshot began.
    bool snapshot_open = false;  // More batches of the snapshot follow.
    bool broken = false;         // Waits to be sent again.
    bool agreed = false;         // Since the last snapshot.
    absl::Time ask_at = absl::InfinitePast();
    absl::Duration backoff;
  };

  absl::Status ApplyHello(const v1::NodeInfo& hello);
  absl::Status ApplyBatch(const v1::BlockBatch& batch, absl::Time now);
  absl::Status ApplyNamespace(const v1::NamespaceRecord& record);
  absl::Status ApplyHeartbeat(const v1::Heartbeat& heartbeat, absl::Time now);
  absl::Status CheckBatch(const v1::BlockBatch& batch) const;
  absl::Status CompareDigest(const v1::ShardDigest& digest, absl::Time now);
  absl::StatusOr<uint32_t> InternOwner(const v1::BlockBatch& batch);
  absl::Status Record(const BlockKey& key, uint8_t tiers, uint32_t owner, Shard* shard);
  void Clear(Shard* shard);
  void Break(Shard* shard, absl::Time now);
  const Entry* Find(const BlockKey& key) const;

  MirrorOptions options_;
  std::optional<v1::NodeInfo> node_;
  std::optional<v1::LoadReport> load_;
  std::vector<Shard> shards_;
  std::vector<Owner> owners_;
  absl::flat_hash_map<std::string, uint32_t> owner_index_;  // Fingerprint and tenant to owners_.
  absl::flat_hash_map<Fingerprint, bool> retired_;
  size_t block_count_ = 0;
  uint64_t gaps_seen_ = 0;
  uint64_t digest_mismatches_seen_ = 0;
};

}  // namespace cairn
