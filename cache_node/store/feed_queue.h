// FeedQueue: what one watcher has still to be sent.
//
// Live records wait in runs of one shard each, in the order of the index's changes within a shard;
// of one block the last record of a run is the only one, in the place of the first. A heartbeat or
// namespace record stands between runs and no record passes it. A shard that the watcher has not
// got is read as a snapshot and sent batch by batch, when nothing waits, and at the latest behind
// kLivePerSnapshot messages; what changes meanwhile waits behind it. Records of a shard before its
// snapshot are withheld.
//
// Over `records_max` the shard of which most records wait is given up: they are dropped, and the
// shard is to be sent anew. So a watcher that is slow gets less often what it gets, and nothing
// wrong. Only one for which that many namespace records wait is cut.
//
// Not thread-safe: under the store's lock. Memory: at most `records_max` of what arrives live, the
// namespaces that it was made with, one heartbeat, and one shard's snapshot while that is being
// sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cache_node/store/feed_message.h"
#include "cache_node/store/feed_source.h"

namespace cairn::node {

class FeedQueue {
 public:
  static constexpr uint32_t kLivePerSnapshot = 16;

  // All shards are to be sent; `namespaces` go first and do not count against `records_max`.
  FeedQueue(const FeedSource* source, size_t records_max, std::vector<FeedNamespace> namespaces);

  // What the source now holds of the shard includes the record.
  void Push(uint32_t shard, const FeedRecord& record);
  void Push(const FeedNamespace& record);
  // The digests of all shards sent, as they are now. Nothing when a heartbeat waits already.
  void PushHeartbeat();
  // The shard is to be sent from the start, and what waits of it is void.
  void Resync(uint32_t shard);

  // At most `batch_records_max` records. FeedCut once the queue was cut, for ever after.
  FeedMessage Next(size_t batch_records_max);

  // True once after Next said FeedIdle and there is something to send again.
  bool TakeWoken() { return std::exchange(woken_, false); }
  // Shards given up since last asked.
  size_t TakeGivenUp() { return std::exchange(given_up_, 0); }

 private:
  // Rises when a shard is to be sent anew: a digest of an older epoch is void.
  using Epoch = uint32_t;
  enum class Phase { kUnsent, kSending, kSent };

  struct Run {
    uint32_t shard = 0;
    uint64_t barriers = 0;  // Before it.
    size_t next = 0;
    std::vector<FeedRecord> records;
    // Where the record of a block is, while it takes further records.
    absl::flat_hash_map<std::pair<PartitionIndex, BlockKey>, uint32_t> places;
  };
  struct ShardState {
    Phase phase = Phase::kUnsent;
    Epoch epoch = 0;
    uint64_t sequence = 0;    // Of the last batch.
    size_t waiting = 0;       // Records in runs, not yet taken.
    Run* open_run = nullptr;  // In items_; takes further records if no barrier came behind it.
  };
  struct Heartbeat {
    FeedHeartbeat
        message;  // Sequences are filled in when it is taken: all batches before it are out.
    std::vector<Epoch> epochs;
  };
  struct Snapshot {
    uint32_t shard = 0;
    size_t next = 0;
    std::vector<FeedRecord> records;
  };
  using Item = std::variant<Run, FeedNamespace, Heartbeat>;

  // False when a full queue has no shard of which something waits.
  bool MakeRoom();
  void Cut();
  void PushBarrier(Item item);
  Run* OpenRun(ShardState* state);
  bool SnapshotIsDue() const;
  void StartSnapshot();
  FeedBatch NextOfSnapshot(size_t batch_records_max);
  FeedBatch NextOfRun(size_t batch_records_max);
  FeedHeartbeat TakeHeartbeat(Heartbeat heartbeat) const;

  const FeedSource* const source_;
  const size_t records_max_;
  std::vector<ShardState> shards_;
  std::deque<uint32_t> to_send_;  // Each shard in phase kUnsent, once.
  std::optional<Snapshot> snapshot_;
  uint32_t live_since_snapshot_ = 0;  // Messages.

  std::list<Item> items_;  // A list: shards know their open runs.
  uint64_t barriers_ = 0;
  size_t waiting_ = 0;             // Items and records admitted and not yet taken.
  size_t free_namespaces_ = 0;     // At the front, not counted in waiting_.
  size_t namespaces_waiting_ = 0;  // These, and those counted.
  size_t given_up_ = 0;
  bool heartbeat_waits_ = false;
  bool cut_ = false;
  bool idle_ = false;  // The last Next said so, and nothing came since.
  bool woken_ = false;
};

}  // namespace cairn::node
