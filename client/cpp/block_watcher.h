// BlockWatcher: reads one feed of a node, message by message, on the thread that asks.
//
// A feed has no deadline: it lasts until it breaks, and each Next() says how long it waits. Feed
// the messages to a BlockMirror and its resyncs back here. Who reads slowly is sent shards anew,
// who reads nothing is cut. A broken feed stays broken. Not thread-safe; the client outlives it.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/v1/cache_node.grpc.pb.h"
#include "common/security/call_metadata.h"

namespace cairn {

class BlockWatcher {
 public:
  // For the client: opens a feed of all shards. `metadata`, where not null, goes along.
  explicit BlockWatcher(v1::CacheNode::Stub* stub, const CallMetadata* metadata = nullptr);
  // Ends the feed.
  ~BlockWatcher();

  BlockWatcher(const BlockWatcher&) = delete;
  BlockWatcher& operator=(const BlockWatcher&) = delete;

  // The next message; nothing when none came within `timeout`; UNAVAILABLE, or what the node said,
  // once the feed is over.
  absl::StatusOr<std::optional<v1::WatchBlocksResponse>> Next(absl::Duration timeout);

  // Asks for these shards again from snapshots. What was not sent yet is joined into one request.
  void Resync(absl::Span<const uint32_t> shards);

 private:
  // Handles one finished operation.
  void Take(void* tag, bool ok);
  void SendIfIdle();
  void End();

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::WatchBlocksRequest, v1::WatchBlocksResponse>>
      call_;
  v1::WatchBlocksResponse incoming_;
  bool ready_ = false;  // incoming_ holds a message.
  bool started_ = false;
  bool reading_ = false;
  bool writing_ = false;
  bool over_ = false;  // No other message comes.
  std::vector<uint32_t> to_ask_;
  std::optional<absl::Status> end_;
};

}  // namespace cairn
