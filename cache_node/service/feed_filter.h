// FeedFilter: what one watcher is shown of the feed: its own tenants' records and public ones, or
// all of them for routers and admins.
//
// What it leaves out it leaves no trace of: batches are numbered anew, those that only others have
// a part in are not sent (but for the first and the last of a snapshot, empty), and heartbeats
// carry no sums, which would say what others hold. Not thread-safe: of whoever sends on the stream.
#pragma once

#include <cstdint>
#include <vector>

#include "cairn/v1/feed.pb.h"
#include "common/rpc/caller_identity.h"

namespace cairn::node {

class FeedFilter {
 public:
  FeedFilter(Caller caller, uint32_t shards);

  // False: nothing of it is the watcher's to see. May change the message.
  bool Admit(v1::WatchBlocksResponse* message);

 private:
  struct Shard {
    uint64_t sequence = 0;  // Of the last batch sent.
    bool open = false;      // More of its snapshot follows.
  };

  bool AdmitBatch(v1::BlockBatch* batch);

  const Caller caller_;
  const bool sees_all_;
  std::vector<Shard> shards_;
};

}  // namespace cairn::node
