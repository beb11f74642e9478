// FeedMessage: what a watcher of this node's blocks is sent, as values without a transport.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "cache_node/store/feed_source.h"

namespace cairn::node {

// One batch of one shard and partition.
struct FeedBatch {
  uint32_t shard = 0;
  uint64_t sequence = 0;            // By shard and watcher, from 1.
  bool replaces = false;            // First batch of a snapshot.
  bool more = false;                // More batches of the same snapshot follow.
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
    uint64_t sequence = 0;  // Of the last batch that the sums include.
    ShardSums sums;
  };
  std::vector<Shard> shards;  // Those that the watcher has got, ascending.
};

struct FeedCut {};   // The watcher fell behind: end the stream.
struct FeedIdle {};  // Nothing to send now.

using FeedMessage = std::variant<FeedIdle, FeedBatch, FeedNamespace, FeedHeartbeat, FeedCut>;

}  // namespace cairn::node
