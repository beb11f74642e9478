// FeedMessages: what the store has for a watcher, as messages of the contract.
//
// Thread-safe. Borrows the store and the facts, which must outlive it.
#pragma once

#include "cache_node/service/node_facts.h"
#include "cache_node/store/block_store.h"
#include "cairn/v1/feed.pb.h"

namespace cairn::node {

class FeedMessages {
 public:
  FeedMessages(const BlockStore* store, const NodeFacts* facts) : store_(store), facts_(facts) {}

  void Hello(v1::WatchBlocksResponse* response) const;

  enum class Next { kMessage, kIdle, kCut };
  // kMessage: `response` holds it.
  Next Fill(const FeedMessage& message, v1::WatchBlocksResponse* response) const;

 private:
  void Fill(const FeedBatch& batch, v1::BlockBatch* message) const;
  void Fill(const FeedNamespace& record, v1::NamespaceRecord* message) const;
  void Fill(const FeedHeartbeat& heartbeat, v1::Heartbeat* message) const;

  const BlockStore* const store_;
  const NodeFacts* const facts_;
};

}  // namespace cairn::node
