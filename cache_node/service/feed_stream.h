// FeedStream: one WatchBlocks call.
//
// Says hello, then pulls from the store whenever it has something and the last message is away.
// What a watcher does not read stays in its bounded queue in the store; over that bound shards are
// sent to it anew. One whose message does not leave for `stall_max` is cancelled, so that it cannot
// keep its place for ever; one for which too many namespace records wait is cut with
// RESOURCE_EXHAUSTED. A watcher whose rights end is cut with why.
//
// Owned by gRPC until OnDone, and by whoever calls it at that moment (FeedRouter): hence shared.
// Its borrowed parts must outlive the server.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cache_node/service/feed_filter.h"
#include "cache_node/service/feed_messages.h"
#include "cache_node/service/feed_router.h"
#include "cache_node/service/finish_gate.h"
#include "cache_node/service/rpc_metrics.h"
#include "cache_node/store/block_store.h"
#include "common/base/clock.h"

namespace cairn::node {

class FeedStream final
    : public grpc::ServerBidiReactor<v1::WatchBlocksRequest, v1::WatchBlocksResponse>,
      public FeedRouter::Stream,
      public std::enable_shared_from_this<FeedStream> {
 public:
  struct Parts {
    BlockStore* store = nullptr;
    FeedRouter* router = nullptr;
    const FeedMessages* messages = nullptr;
    const Clock* clock = nullptr;
    uint32_t shards = 0;
    size_t queue_records_max = 0;  // For the message to who is cut.
    absl::Duration stall_max = absl::Seconds(30);
  };

  // Who watches. A feed is long, and rights end: `check` says whether the same watcher may still
  // have it, at each heartbeat.
  struct Watcher {
    Caller caller;
    std::function<absl::Status()> check;
  };

  // The reactor to return; it owns itself until OnDone.
  static grpc::ServerBidiReactor<v1::WatchBlocksRequest, v1::WatchBlocksResponse>* Start(
      const Parts& parts, Watcher watcher, grpc::CallbackServerContext* context,
      RpcMetrics::Call call);

  void OnFeed() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnHeartbeat() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEnd(const absl::Status& status) override;

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCancel() override;
  void OnDone() override;

 private:
  FeedStream(const Parts& parts, Watcher watcher, grpc::CallbackServerContext* context,
             RpcMetrics::Call call);

  void Begin();
  void Read();
  // Sends `response_`. REQUIRES: the caller has `sending_`.
  void Write() ABSL_LOCKS_EXCLUDED(mutex_);
  // Pulls and sends one message, or finds nothing and gives up `sending_`, which the caller has.
  void SendNext() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckRequest() const;
  void End(absl::Status status);
  void FinishIf(std::optional<absl::Status> status);

  const Parts parts_;
  grpc::CallbackServerContext* const context_;  // Valid until OnDone.
  RpcMetrics::Call call_;
  WatcherId watcher_ = 0;  // 0: there was no place.
  FinishGate gate_;
  v1::WatchBlocksRequest request_;
  const std::function<absl::Status()> check_;
  v1::WatchBlocksResponse response_;  // These two are of whoever has `sending_`.
  FeedFilter filter_;
  std::shared_ptr<FeedStream> self_;  // Until OnDone.

  absl::Mutex mutex_;
  bool sending_ ABSL_GUARDED_BY(mutex_) = true;  // The hello.
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;   // While somebody else sends.
  absl::Time sending_since_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::node
