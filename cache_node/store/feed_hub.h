// FeedHub: the queues of those who watch this node's blocks.
//
// Each watcher has one bounded queue. A shard is sent to it first as a snapshot, taken when its queue
// has run empty, then as live records; records of a shard that it has not got yet are withheld. A
// heartbeat is queued like a record, so its digests say exactly what all records before it amount to.
// A watcher whose queue overflows is cut: its queue is dropped and Next answers cut for ever after.
//
// Not thread-safe: the store calls it under its lock. It knows no transport: the service pulls with
// Next. It says that there is something to pull by Wanted(), which the store reads before it unlocks.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cache_node/store/feed_source.h"

namespace cairn::node {

using WatcherId = uint64_t;

// One batch of one shard and partition.
struct FeedBatch {
  uint32_t shard = 0;
  uint64_t sequence = 0;  // By shard and watcher, from 1.
  bool replaces = false;
  bool more = false;
  std::vector<FeedRecord> records;  // All of one partition; empty for an empty snapshot.
};

// A namespace registered or retired.
struct FeedNamespace {
  uint32_t namespace_index = 0;
  std::string tenant;
  std::string name;
  bool retired = false;
};

struct FeedHeartbeat {
  struct Shard {
    uint32_t shard = 0;
    uint64_t sequence = 0;
    ShardSums sums;
  };
  std::vector<Shard> shards;  // Those that the watcher has got.
};

struct FeedCut {};   // The watcher fell behind: end the stream.
struct FeedIdle {};  // Nothing to send now.

using FeedMessage = std::variant<FeedIdle, FeedBatch, FeedNamespace, FeedHeartbeat, FeedCut>;

class FeedHub {
 public:
  static constexpr uint32_t kWatchersMax = 64;
  static constexpr size_t kBatchRecordsMax = 1024;

  // `queue_records_max`: live records that may wait for one watcher.
  FeedHub(const FeedSource* source, size_t queue_records_max);

  // 0 when kWatchersMax are there. The namespaces known now are queued first.
  WatcherId Add(std::vector<FeedNamespace> known_namespaces);
  void Remove(WatcherId watcher);
  // The watcher asks for these shards from the start again; unknown shards are ignored.
  void Resync(WatcherId watcher, const std::vector<uint32_t>& shards);

  // Something changed in the index; called after the change.
  void Record(uint32_t shard, const FeedRecord& record);
  void Record(const FeedNamespace& record);
  void QueueHeartbeat(WatcherId watcher);

  // The next message for the watcher, at most kBatchRecordsMax records.
  FeedMessage Next(WatcherId watcher);

  // Watchers that had nothing to send when last asked and have something now; each is said once.
  std::vector<WatcherId> TakeWoken();

  size_t watcher_count() const { return watchers_.size(); }

 private:
  struct Watcher;
  const FeedSource* const source_;
  const size_t queue_records_max_;
  WatcherId next_id_ = 1;
  absl::flat_hash_map<WatcherId, std::unique_ptr<Watcher>> watchers_;
  std::vector<WatcherId> woken_;
};

}  // namespace cairn::node
