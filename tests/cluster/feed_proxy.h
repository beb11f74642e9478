// FeedProxy: stands between a node and who watches its feed, and does to batches what a network
// that breaks its promises would. Speaks WatchBlocks only.
//
// Passes on all that it is not told to bend: hellos, namespaces, heartbeats, and what the watcher
// asks. Each feed of a watcher is one feed of the node; when one ends, so does the other.
// Thread-safe.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "cairn/v1/cache_node.grpc.pb.h"

namespace cairn::testing {

// What becomes of a batch on its way.
enum class BatchFate {
  kPass,
  kDrop,
  kTwice,
  kSwap,  // Comes right after the next batch of its shard.
};

class FeedProxy final : public v1::CacheNode::Service {
 public:
  // Asked for each batch, on the proxy's threads, under its lock.
  using Judge = std::function<BatchFate(const v1::BlockBatch&)>;

  struct Counts {
    uint64_t feeds = 0;    // Begun.
    uint64_t batches = 0;  // That came from the node.
    uint64_t dropped = 0;
    uint64_t doubled = 0;
    uint64_t swapped = 0;  // That did come after another.
    uint64_t shards_asked_again = 0;
  };

  // Serves on a free port for the node at `node`.
  explicit FeedProxy(std::string node);
  ~FeedProxy() override;

  // host:port.
  const std::string& address() const { return address_; }

  // Judges batches from now on; null passes all.
  void SetJudge(Judge judge);
  // Passes on nothing at all that comes from now on, until false.
  void Hold(bool hold);
  // Ends the feeds that run; the watcher may come again at once.
  void Cut();

  Counts counts() const;

 private:
  using Stream = grpc::ServerReaderWriter<v1::WatchBlocksResponse, v1::WatchBlocksRequest>;
  // One watcher's feed.
  struct Feed {
    uint64_t cuts_at_begin = 0;
    std::vector<uint32_t> to_ask;                      // Shards; under the proxy's lock.
    std::map<uint32_t, v1::WatchBlocksResponse> late;  // By shard; swapped, not sent yet.
  };

  grpc::Status WatchBlocks(grpc::ServerContext* context, Stream* stream) override;
  // Passes messages on until the feed is over.
  void Relay(grpc::ServerContext* context, Stream* stream, Feed* feed);
  // What is to be sent for a message from the node.
  std::vector<v1::WatchBlocksResponse> Bend(const v1::WatchBlocksResponse& message, Feed* feed);
  bool IsOver(const grpc::ServerContext& context, const Feed& feed) const;
  // Waits while messages are held; false when the feed is over.
  bool AwaitPassage(const grpc::ServerContext& context, const Feed& feed) const;
  std::vector<uint32_t> TakeToAsk(Feed* feed);

  const std::string node_;
  std::string address_;
  mutable absl::Mutex mutex_;
  Judge judge_ ABSL_GUARDED_BY(mutex_);
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t cuts_ ABSL_GUARDED_BY(mutex_) = 0;
  Counts counts_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace cairn::testing
