#include "tests/router/service/scripted_node.h"

#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::router {
namespace {

constexpr absl::Duration kHeartbeat = absl::Milliseconds(100);

}  // namespace

ScriptedNode::ScriptedNode(const ModelHolder::Identity& identity) : identity_(identity) {
  {
    absl::MutexLock lock(&mutex_);
    model_ = std::make_unique<ModelHolder>(identity_);
  }
  Serve();
}

ScriptedNode::~ScriptedNode() { Stop(); }

void ScriptedNode::Serve() {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(target_, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  CAIRN_CHECK(server_ != nullptr && port != 0);
  target_ = absl::StrCat("127.0.0.1:", port);
}

void ScriptedNode::Stop() {
  if (server_ == nullptr) return;
  Cut();
  server_->Shutdown(std::chrono::system_clock::now());
  server_ = nullptr;
}

void ScriptedNode::Restart(char incarnation) {
  Stop();
  {
    absl::MutexLock lock(&mutex_);
    identity_.incarnation = incarnation;
    model_ = std::make_unique<ModelHolder>(identity_);
  }
  Serve();
}

void ScriptedNode::Put(absl::Span<const BlockKey> keys) {
  absl::MutexLock lock(&mutex_);
  Queue(model_->Set(keys, kInHost, ScriptedFingerprint(), "public"));
}

void ScriptedNode::PutUnsaid(absl::Span<const BlockKey> keys) {
  absl::MutexLock lock(&mutex_);
  model_->Set(keys, kInHost, ScriptedFingerprint(), "public");
}

void ScriptedNode::Silence(bool silent) {
  absl::MutexLock lock(&mutex_);
  silent_ = silent;
}

void ScriptedNode::HoldSnapshots(bool hold) {
  absl::MutexLock lock(&mutex_);
  hold_snapshots_ = hold;
}

void ScriptedNode::ShowPart() {
  absl::MutexLock lock(&mutex_);
  part_ = true;
}

void ScriptedNode::Cut() {
  absl::MutexLock lock(&mutex_);
  ++feed_;
}

size_t ScriptedNode::resyncs() const {
  absl::MutexLock lock(&mutex_);
  return resyncs_;
}

int ScriptedNode::feeds() const {
  absl::MutexLock lock(&mutex_);
  return feeds_;
}

void ScriptedNode::Queue(std::vector<ModelHolder::Message> messages) {
  for (ModelHolder::Message& message : messages) queue_.push_back(std::move(message));
}

bool ScriptedNode::HasNews() const {
  return !silent_ && (!queue_.empty() || (snapshots_due_ && !hold_snapshots_));
}

void ScriptedNode::TakeRequest(int feed, const v1::WatchBlocksRequest& request) {
  absl::MutexLock lock(&mutex_);
  if (feed != feed_) return;
  for (const uint32_t shard : request.resync_shards()) {
    ++resyncs_;
    Queue(model_->Snapshot(shard));
  }
}

std::optional<v1::WatchBlocksResponse> ScriptedNode::Next(int feed) {
  absl::MutexLock lock(&mutex_);
  const auto awake = [this, feed] {
    mutex_.AssertReaderHeld();
    return feed != feed_ || HasNews();
  };
  do {
    mutex_.AwaitWithTimeout(absl::Condition(&awake), kHeartbeat);
    if (feed != feed_) return std::nullopt;
  } while (silent_);
  if (snapshots_due_ && !hold_snapshots_) {
    snapshots_due_ = false;
    queue_.clear();  // The snapshots say it all.
    Queue(model_->Snapshots());
  }
  // Before its snapshots a real node withholds records too.
  if (snapshots_due_ || queue_.empty()) {
    v1::WatchBlocksResponse heartbeat = model_->Heartbeat();
    if (part_) {
      heartbeat.mutable_heartbeat()->clear_shards();
      heartbeat.mutable_heartbeat()->set_partial(true);
    }
    return heartbeat;
  }
  v1::WatchBlocksResponse message = std::move(queue_.front());
  queue_.pop_front();
  return message;
}

grpc::Status ScriptedNode::WatchBlocks(grpc::ServerContext* context, Stream* stream) {
  int feed = 0;
  ModelHolder::Message hello;
  {
    absl::MutexLock lock(&mutex_);
    feed = ++feed_;
    ++feeds_;
    model_->NewStream();
    queue_.clear();
    snapshots_due_ = true;
    hello = model_->Hello();
  }
  std::thread reader([this, feed, stream] {
    v1::WatchBlocksRequest request;
    while (stream->Read(&request)) TakeRequest(feed, request);
  });
  bool sent = stream->Write(hello) &&
              stream->Write(ModelHolder::Namespace(ScriptedFingerprint(), kScriptedBlockTokens));
  while (sent) {
    const std::optional<v1::WatchBlocksResponse> message = Next(feed);
    sent = message.has_value() && stream->Write(*message);
  }
  context->TryCancel();  // Ends the reader.
  reader.join();
  return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the feed was cut");
}

}  // namespace cairn::router
