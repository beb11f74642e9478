#include "cache_node/service/feed_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/rpc/retry_status.h"
#include "common/rpc/status_mapping.h"

namespace cairn::node {
namespace {

// A watcher without a place, or that was cut, should not come back at once.
constexpr absl::Duration kRetryAfter = absl::Seconds(1);

}  // namespace

grpc::ServerBidiReactor<v1::WatchBlocksRequest, v1::WatchBlocksResponse>* FeedStream::Start(
    const Parts& parts, Watcher watcher, grpc::CallbackServerContext* context,
    RpcMetrics::Call call) {
  std::shared_ptr<FeedStream> stream(
      new FeedStream(parts, std::move(watcher), context, std::move(call)));
  stream->self_ = stream;
  stream->Begin();
  return stream.get();  // gRPC calls OnDone after it got this, not before.
}

FeedStream::FeedStream(const Parts& parts, Watcher watcher, grpc::CallbackServerContext* context,
                       RpcMetrics::Call call)
    : parts_(parts),
      context_(context),
      call_(std::move(call)),
      check_(std::move(watcher.check)),
      filter_(std::move(watcher.caller), parts.shards),
      // A heartbeat may ask before the hello is on its way.
      sending_since_(parts.clock->SteadyNow()) {}

void FeedStream::Begin() {
  watcher_ = parts_.store->AddWatcher();
  if (watcher_ == 0) {
    End(WithRetryAfter(absl::ResourceExhaustedError(
                           absl::StrCat("watchers: ", FeedHub::kWatchersMax, " are here already")),
                       kRetryAfter));
    return;
  }
  parts_.messages->Hello(&response_);
  // From here on the store may wake it; it pulls when the hello is away.
  parts_.router->Add(watcher_, shared_from_this());
  Read();
  Write();
}

void FeedStream::OnFeed() {
  {
    absl::MutexLock lock(&mutex_);
    if (sending_) {
      woken_ = true;
      return;
    }
    sending_ = true;
  }
  // Inside the gate the watcher is there: it goes in OnDone.
  if (!gate_.Enter()) return;
  SendNext();
  FinishIf(gate_.Leave());
}

void FeedStream::OnHeartbeat() {
  if (!gate_.Enter()) return;
  if (absl::Status rights = check_(); !rights.ok()) {
    FinishIf(gate_.Leave());
    return End(std::move(rights));
  }
  bool stalled = false;
  {
    absl::MutexLock lock(&mutex_);
    stalled = sending_ && parts_.clock->SteadyNow() - sending_since_ > parts_.stall_max;
  }
  if (stalled) {
    context_->TryCancel();  // A status would wait behind the message that nobody reads.
  } else {
    parts_.store->QueueHeartbeat(watcher_);
  }
  FinishIf(gate_.Leave());
}

void FeedStream::OnEnd(const absl::Status& status) { End(status); }

void FeedStream::OnReadDone(bool ok) {
  // A client that will ask for nothing more may still listen.
  if (!ok) return;
  absl::Status status = CheckRequest();
  if (!status.ok()) return End(std::move(status));
  const std::vector<uint32_t> shards(request_.resync_shards().begin(),
                                     request_.resync_shards().end());
  if (!shards.empty()) parts_.store->ResyncWatcher(watcher_, shards);
  Read();
}

void FeedStream::OnWriteDone(bool ok) {
  if (!ok) return End(absl::CancelledError("the client is gone"));
  SendNext();
}

void FeedStream::OnCancel() { End(absl::CancelledError("the client is gone")); }

void FeedStream::OnDone() {
  if (watcher_ != 0) {
    parts_.router->Remove(watcher_);
    parts_.store->RemoveWatcher(watcher_);
  }
  const std::shared_ptr<FeedStream> self = std::move(self_);
}

void FeedStream::Read() {
  if (!gate_.Enter()) return;
  StartRead(&request_);
  FinishIf(gate_.Leave());
}

void FeedStream::Write() {
  {
    absl::MutexLock lock(&mutex_);
    CAIRN_CHECK(sending_);
    sending_since_ = parts_.clock->SteadyNow();
  }
  if (!gate_.Enter()) return;
  StartWrite(&response_);
  FinishIf(gate_.Leave());
}

void FeedStream::SendNext() {
  while (true) {
    response_.Clear();
    switch (parts_.messages->Fill(parts_.store->NextFeedMessage(watcher_), &response_)) {
      case FeedMessages::Next::kMessage:
        if (!filter_.Admit(&response_)) continue;
        return Write();
      case FeedMessages::Next::kCut:
        return End(
            WithRetryAfter(absl::ResourceExhaustedError(absl::StrCat(
                               "the watcher fell behind: over ", parts_.queue_records_max,
                               " records waited for it; watch again to start from a snapshot")),
                           kRetryAfter));
      case FeedMessages::Next::kIdle:
        break;
    }
    absl::MutexLock lock(&mutex_);
    if (!std::exchange(woken_, false)) {
      sending_ = false;
      return;
    }
  }
}

absl::Status FeedStream::CheckRequest() const {
  if (static_cast<uint32_t>(request_.resync_shards_size()) > parts_.shards) {
    return absl::InvalidArgumentError(absl::StrCat("resync_shards: ", request_.resync_shards_size(),
                                                   ", the node has ", parts_.shards));
  }
  for (const uint32_t shard : request_.resync_shards()) {
    if (shard < parts_.shards) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("resync_shards: ", shard, ", must be under ", parts_.shards));
  }
  return absl::OkStatus();
}

void FeedStream::End(absl::Status status) { FinishIf(gate_.End(std::move(status))); }

void FeedStream::FinishIf(std::optional<absl::Status> status) {
  if (!status.has_value()) return;
  call_.End(status->code());
  Finish(ToGrpcStatus(*status));
}

}  // namespace cairn::node
