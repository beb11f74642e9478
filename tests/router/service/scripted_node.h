// ScriptedNode: a cache node that has only a feed, on a loopback port, and does what a test says.
// Fake: correct unless told otherwise, in memory, with a real gRPC server.
//
// It sends a heartbeat every 100 ms on its own. One watcher at a time: a new one ends the last
// one's feed. Thread-safe.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "cairn/v1/cache_node.grpc.pb.h"
#include "tests/router/model_holder.h"

namespace cairn::router {

class ScriptedNode final : public v1::CacheNode::Service {
 public:
  // Serves on a free port, with one namespace of blocks of 16 tokens.
  explicit ScriptedNode(const ModelHolder::Identity& identity);
  ~ScriptedNode() override;

  // host:port, the same for its whole life.
  const std::string& target() const { return target_; }

  // Ends the server and its feed.
  void Stop();
  // Serves again at the same port, as another run without blocks.
  void Restart(char incarnation);

  // Puts blocks and says so.
  void Put(absl::Span<const BlockKey> keys);
  // Puts blocks and loses the records.
  void PutUnsaid(absl::Span<const BlockKey> keys);
  // Says nothing at all, as one that is stopped, until false.
  void Silence(bool silent);
  // Sends no snapshots, until false; what else there is it sends.
  void HoldSnapshots(bool hold);
  // As a node that takes its watcher for a worker.
  void ShowPart();
  // Ends the feed.
  void Cut();

  // Shards that were asked for again, over all feeds.
  size_t resyncs() const;
  int feeds() const;

 private:
  using Stream = grpc::ServerReaderWriter<v1::WatchBlocksResponse, v1::WatchBlocksRequest>;

  void Serve();
  grpc::Status WatchBlocks(grpc::ServerContext* context, Stream* stream) override;
  void TakeRequest(int feed, const v1::WatchBlocksRequest& request);
  // What is to be sent next; nothing when the feed is over. Waits for it.
  std::optional<v1::WatchBlocksResponse> Next(int feed);
  bool HasNews() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Queue(std::vector<ModelHolder::Message> messages) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ModelHolder::Identity identity_;
  std::string target_ = "127.0.0.1:0";
  std::unique_ptr<grpc::Server> server_;

  mutable absl::Mutex mutex_;
  std::unique_ptr<ModelHolder> model_ ABSL_GUARDED_BY(mutex_);
  std::deque<ModelHolder::Message> queue_ ABSL_GUARDED_BY(mutex_);
  int feed_ ABSL_GUARDED_BY(mutex_) = 0;  // The one that runs; older ones end.
  int feeds_ ABSL_GUARDED_BY(mutex_) = 0;
  bool silent_ ABSL_GUARDED_BY(mutex_) = false;
  bool part_ ABSL_GUARDED_BY(mutex_) = false;
  bool hold_snapshots_ ABSL_GUARDED_BY(mutex_) = false;
  bool snapshots_due_ ABSL_GUARDED_BY(mutex_) = false;
  size_t resyncs_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The namespace of all scripted nodes.
inline Fingerprint ScriptedFingerprint() { return NumberedFingerprint(1); }
inline constexpr uint32_t kScriptedBlockTokens = 16;

}  // namespace cairn::router
