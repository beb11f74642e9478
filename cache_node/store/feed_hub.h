// FeedHub: the queues of those who watch this node's blocks.
//
// Each watcher has one bounded queue. A shard is sent to it first as a snapshot, then as live
// records; records of a shard that it has not got yet are withheld. A heartbeat is queued like a
// record, so its digests say exactly what all records before it amount to; at most one waits. Of a
// watcher whose queue overflows the shard that has most to send is sent anew (FeedQueue); over too
// many namespace records it is cut: its queue is dropped and Next answers cut for ever after;
// others do not notice.
//
// Not thread-safe: the store calls it under its lock. It knows no transport: the service pulls with
// Next, at first right after Add and then until FeedIdle; from then on TakeWoken, which the store
// asks before it unlocks, says when to pull again. A watcher that is not there (its stream may end
// while a timer still knows it) is not an error: Next answers cut, all else does nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "cache_node/store/feed_message.h"
#include "cache_node/store/feed_queue.h"
#include "cache_node/store/feed_source.h"

namespace cairn::node {

using WatcherId = uint64_t;

class FeedHub {
 public:
  static constexpr uint32_t kWatchersMax = 64;
  static constexpr size_t kBatchRecordsMax = 1024;
  // Upper bound of the memory that one waiting record of a block takes, for the printed sum.
  static constexpr size_t kBytesPerRecord = 160;

  // `queue_records_max`: live records, heartbeats and namespace records that may wait for one
  // watcher; positive. `source` outlives the hub.
  FeedHub(const FeedSource* source, size_t queue_records_max);

  // 0 when kWatchersMax are there. The namespaces known now are queued first.
  WatcherId Add(std::vector<FeedNamespace> known_namespaces);
  void Remove(WatcherId watcher);
  // The watcher asks for these shards from the start again; unknown shards are ignored.
  void Resync(WatcherId watcher, const std::vector<uint32_t>& shards);

  // All watchers get all shards from the start: so much has changed that records would overflow.
  void ResyncAll();

  // Something changed in the index; called after the change.
  void Record(uint32_t shard, const FeedRecord& record);
  void Record(const FeedNamespace& record);
  void QueueHeartbeat(WatcherId watcher);

  // The next message for the watcher, at most kBatchRecordsMax records.
  FeedMessage Next(WatcherId watcher);

  // Watchers that were told FeedIdle when last asked and have something now; each is said once.
  std::vector<WatcherId> TakeWoken();

  // Times that a shard was given up and is sent anew to a watcher that fell behind, since last
  // asked.
  size_t TakeGivenUp() { return std::exchange(given_up_, 0); }

  size_t watcher_count() const { return watchers_.size(); }

 private:
  FeedQueue* Find(WatcherId watcher);
  // After a push: whether it woke, and what it gave up.
  void Note(WatcherId watcher, FeedQueue* queue);

  const FeedSource* const source_;
  const size_t queue_records_max_;
  WatcherId next_id_ = 1;
  // Ordered, so that a simulation under one seed wakes its watchers in one order.
  absl::btree_map<WatcherId, std::unique_ptr<FeedQueue>> watchers_;
  std::vector<WatcherId> woken_;
  size_t given_up_ = 0;
};

}  // namespace cairn::node
