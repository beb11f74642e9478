// FeedQueue: what one watcher has still to be sent.
//
// Live records wait in runs of one shard each, in the order of the index's changes within a shard;
// a heartbeat or namespace record stands between runs and no record passes it. When nothing waits,
// the next shard that the watcher has not got is read as a snapshot and sent batch by batch; what
// changes meanwhile waits behind it. Records of a shard before its snapshot are withheld.
//
// Not thread-safe: under the store's lock. Memory: at most `records_max` of what arrives live, the
// namespaces that it was made with, one heartbeat, and one shard's snapshot while that is being
// sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <variant>
#include <vector>

#include "cache_node/store/feed_message.h"
#include "cache_node/store/feed_source.h"

namespace cairn::node {

class FeedQueue {
 public:
  // All shards are to be sent; `namespaces` go first and do not count against `records_max`.
  FeedQueue(const FeedSource* source, size_t records_max, std::vector<FeedNamespace> namespaces);

  // What the source now holds of the shard includes the record.
  void Push(uint32_t shard, const FeedRecord& record);
  void Push(const FeedNamespace& record);
  // The digests of all shards sent, as they are now. Nothing when a heartbeat waits already.
  void PushHeartbeat();
  // The shard is to be sent from the start, and what waits of it is void.
  void Resync(uint32_t shard);

  // At most `batch_records_max` records. FeedCut once the queue has overflowed, for ever after.
  FeedMessage Next(size_t batch_records_max);

  // True once after Next said FeedIdle and there is something to send again.
  bool TakeWoken();

 private:
  // A shard's epoch rises when it is to be sent anew: what an older one left in the queue is void.
  using Epoch = uint32_t;
  enum class Phase { kUnsent, kSending, kSent };

  struct ShardState {
    Phase phase = Phase::kUnsent;
    Epoch epoch = 0;
    uint64_t sequence = 0;  // Of the last batch.
    uint64_t open_run = 0;  // Position of the run that takes further records.
  };
  struct Run {
    uint32_t shard = 0;
    Epoch epoch = 0;
    size_t next = 0;
    std::vector<FeedRecord> records;
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

  // False when the queue is cut, now or before.
  bool Admit();
  void PushBarrier(Item item);
  bool StartSnapshot();
  FeedBatch NextOfSnapshot(size_t batch_records_max);
  std::optional<FeedBatch> NextOfRun(size_t batch_records_max);
  FeedHeartbeat TakeHeartbeat(Heartbeat heartbeat) const;
  uint64_t end_position() const { return front_position_ + items_.size(); }

  const FeedSource* const source_;
  const size_t records_max_;
  std::vector<ShardState> shards_;
  std::deque<uint32_t> to_send_;  // Each shard in phase kUnsent, once.
  std::optional<Snapshot> snapshot_;

  std::deque<Item> items_;
  uint64_t front_position_ = 1;  // Of items_.front(); positions are never used again.
  uint64_t open_from_ = 1;       // Runs from here on may take records: behind the last barrier.
  size_t waiting_ = 0;           // Items and records admitted and not yet taken.
  size_t free_namespaces_ = 0;   // At the front, not counted in waiting_.
  bool heartbeat_waits_ = false;
  bool cut_ = false;
  bool idle_ = false;  // The last Next said so, and nothing came since.
  bool woken_ = false;
};

}  // namespace cairn::node
