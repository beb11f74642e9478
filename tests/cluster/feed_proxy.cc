#include "tests/cluster/feed_proxy.h"

#include <grpcpp/create_channel.h>

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/block_watcher.h"
#include "common/base/check.h"
#include "common/rpc/channel_options.h"

namespace cairn::testing {
namespace {

// How soon a feed notices what the test says, or that its watcher is gone.
constexpr absl::Duration kPoll = absl::Milliseconds(5);

}  // namespace

FeedProxy::FeedProxy(std::string node) : node_(std::move(node)) {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  CAIRN_CHECK(server_ != nullptr && port != 0);
  address_ = absl::StrCat("127.0.0.1:", port);
}

FeedProxy::~FeedProxy() {
  Cut();
  server_->Shutdown(std::chrono::system_clock::now());
}

void FeedProxy::SetJudge(Judge judge) {
  absl::MutexLock lock(&mutex_);
  judge_ = std::move(judge);
}

void FeedProxy::Hold(bool hold) {
  absl::MutexLock lock(&mutex_);
  held_ = hold;
}

void FeedProxy::Cut() {
  absl::MutexLock lock(&mutex_);
  ++cuts_;
}

FeedProxy::Counts FeedProxy::counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

grpc::Status FeedProxy::WatchBlocks(grpc::ServerContext* context, Stream* stream) {
  Feed feed;
  {
    absl::MutexLock lock(&mutex_);
    ++counts_.feeds;
    feed.cuts_at_begin = cuts_;
  }
  std::thread reader([this, stream, &feed] {
    v1::WatchBlocksRequest request;
    while (stream->Read(&request)) {
      absl::MutexLock lock(&mutex_);
      const auto& shards = request.resync_shards();
      feed.to_ask.insert(feed.to_ask.end(), shards.begin(), shards.end());
      counts_.shards_asked_again += static_cast<uint64_t>(shards.size());
    }
  });
  Relay(context, stream, &feed);
  context->TryCancel();  // Ends the reader.
  reader.join();
  return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the feed is over");
}

void FeedProxy::Relay(grpc::ServerContext* context, Stream* stream, Feed* feed) {
  const std::unique_ptr<v1::CacheNode::Stub> stub = v1::CacheNode::NewStub(
      grpc::CreateCustomChannel(node_, grpc::InsecureChannelCredentials(), MakeChannelArguments()));
  BlockWatcher watcher(stub.get());
  while (!IsOver(*context, *feed)) {
    const std::vector<uint32_t> asked = TakeToAsk(feed);
    if (!asked.empty()) watcher.Resync(asked);
    const absl::StatusOr<std::optional<v1::WatchBlocksResponse>> message = watcher.Next(kPoll);
    if (!message.ok()) return;
    if (!message->has_value()) continue;
    if (!AwaitPassage(*context, *feed)) return;
    for (const v1::WatchBlocksResponse& bent : Bend(**message, feed)) {
      if (!stream->Write(bent)) return;
    }
  }
}

std::vector<v1::WatchBlocksResponse> FeedProxy::Bend(const v1::WatchBlocksResponse& message,
                                                     Feed* feed) {
  if (!message.has_batch()) return {message};
  absl::MutexLock lock(&mutex_);
  ++counts_.batches;
  const uint32_t shard = message.batch().shard();
  const BatchFate fate = judge_ == nullptr ? BatchFate::kPass : judge_(message.batch());
  if (fate == BatchFate::kDrop) {
    ++counts_.dropped;
    return {};
  }
  const auto late = feed->late.find(shard);
  if (fate == BatchFate::kSwap && late == feed->late.end()) {
    feed->late[shard] = message;
    return {};
  }
  std::vector<v1::WatchBlocksResponse> bent = {message};
  if (fate == BatchFate::kTwice) {
    ++counts_.doubled;
    bent.push_back(message);
  }
  if (late != feed->late.end()) {
    ++counts_.swapped;
    bent.push_back(std::move(late->second));
    feed->late.erase(late);
  }
  return bent;
}

bool FeedProxy::IsOver(const grpc::ServerContext& context, const Feed& feed) const {
  if (context.IsCancelled()) return true;
  absl::MutexLock lock(&mutex_);
  return feed.cuts_at_begin != cuts_;
}

bool FeedProxy::AwaitPassage(const grpc::ServerContext& context, const Feed& feed) const {
  while (!IsOver(context, feed)) {
    absl::MutexLock lock(&mutex_);
    const auto open = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !held_; };
    if (mutex_.AwaitWithTimeout(absl::Condition(&open), kPoll)) return true;
  }
  return false;
}

std::vector<uint32_t> FeedProxy::TakeToAsk(Feed* feed) {
  absl::MutexLock lock(&mutex_);
  return std::exchange(feed->to_ask, {});
}

}  // namespace cairn::testing
