#include "client/cpp/block_watcher.h"

#include <grpc/support/time.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/rpc/status_mapping.h"

namespace cairn {
namespace {

// Tags are never dereferenced.
void* Tag(intptr_t number) { return reinterpret_cast<void*>(number); }
constexpr intptr_t kStartTag = 1;
constexpr intptr_t kWriteTag = 2;
constexpr intptr_t kReadTag = 3;
constexpr intptr_t kFinishTag = 4;

gpr_timespec DeadlineAfter(absl::Duration timeout) {
  if (timeout == absl::InfiniteDuration()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(absl::ToInt64Nanoseconds(timeout), GPR_TIMESPAN));
}

}  // namespace

BlockWatcher::BlockWatcher(v1::CacheNode::Stub* stub, const CallMetadata* metadata) {
  if (metadata != nullptr) metadata->AddTo(&context_);
  call_ = stub->PrepareAsyncWatchBlocks(&context_, &queue_);
  call_->StartCall(Tag(kStartTag));
}

BlockWatcher::~BlockWatcher() {
  context_.TryCancel();
  if (!end_) End();
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

void BlockWatcher::Take(void* tag, bool ok) {
  if (tag == Tag(kStartTag)) {
    started_ = true;
    if (!ok) {
      over_ = true;
      return;
    }
    // The first request, empty, asks for all shards.
    call_->Write(v1::WatchBlocksRequest(), Tag(kWriteTag));
    writing_ = true;
  } else if (tag == Tag(kWriteTag)) {
    writing_ = false;
    if (ok) SendIfIdle();
  } else {
    CAIRN_CHECK(tag == Tag(kReadTag));
    reading_ = false;
    ready_ = ok;
    over_ = !ok;
  }
}

void BlockWatcher::SendIfIdle() {
  if (!started_ || writing_ || over_ || to_ask_.empty()) return;
  v1::WatchBlocksRequest request;
  request.mutable_resync_shards()->Add(to_ask_.begin(), to_ask_.end());
  to_ask_.clear();
  call_->Write(request, Tag(kWriteTag));
  writing_ = true;
}

void BlockWatcher::Resync(absl::Span<const uint32_t> shards) {
  to_ask_.insert(to_ask_.end(), shards.begin(), shards.end());
  std::sort(to_ask_.begin(), to_ask_.end());
  to_ask_.erase(std::unique(to_ask_.begin(), to_ask_.end()), to_ask_.end());
  SendIfIdle();
}

absl::StatusOr<std::optional<v1::WatchBlocksResponse>> BlockWatcher::Next(absl::Duration timeout) {
  const gpr_timespec deadline = DeadlineAfter(timeout);
  while (true) {
    if (end_) return *end_;
    if (over_) {
      End();
      continue;
    }
    if (ready_) {
      ready_ = false;
      return std::move(incoming_);
    }
    if (started_ && !reading_) {
      incoming_.Clear();
      call_->Read(&incoming_, Tag(kReadTag));
      reading_ = true;
    }
    void* tag = nullptr;
    bool ok = false;
    const auto answer = queue_.AsyncNext(&tag, &ok, deadline);
    if (answer == grpc::CompletionQueue::TIMEOUT) return std::nullopt;
    CAIRN_CHECK(answer == grpc::CompletionQueue::GOT_EVENT);
    Take(tag, ok);
  }
}

void BlockWatcher::End() {
  void* tag = nullptr;
  bool ok = false;
  while (!started_ || reading_ || writing_) {
    CAIRN_CHECK(queue_.Next(&tag, &ok));
    if (tag == Tag(kStartTag)) started_ = true;
    if (tag == Tag(kReadTag)) reading_ = false;
    if (tag == Tag(kWriteTag)) writing_ = false;
  }
  over_ = true;
  grpc::Status status;
  call_->Finish(&status, Tag(kFinishTag));
  CAIRN_CHECK(queue_.Next(&tag, &ok) && tag == Tag(kFinishTag));
  end_ = status.ok() ? absl::UnavailableError("the node ended the feed") : FromGrpcStatus(status);
}

}  // namespace cairn
