#include "tests/sim/node/feed_session.h"

#include <utility>

#include "common/base/check.h"

namespace cairn::sim {

FeedSession::~FeedSession() {
  if (watcher_ != 0) parts_->store->RemoveWatcher(watcher_);
}

void FeedSession::Begin() {
  watcher_ = parts_->store->AddWatcher();
  if (watcher_ == 0) {
    parts_->world->network.Finish(stream_, absl::ResourceExhaustedError("too many watchers"));
    parts_->over(stream_);
    return;
  }
  v1::WatchBlocksResponse hello;
  parts_->feed_messages->Hello(&hello);
  Send(hello);
}

void FeedSession::OnPacket(StreamId /*stream*/, Packet packet) {
  v1::WatchBlocksRequest request;
  CAIRN_CHECK(request.ParseFromString(packet.bytes));
  if (request.resync_shards().empty()) return;
  parts_->store->ResyncWatcher(watcher_,
                               {request.resync_shards().begin(), request.resync_shards().end()});
}

void FeedSession::OnSent(StreamId /*stream*/) {
  sending_ = false;
  SendNext();
}

void FeedSession::OnClosed(StreamId stream, const absl::Status& /*status*/) {
  parts_->over(stream);
}

void FeedSession::OnHeartbeat() {
  if (watcher_ != 0) parts_->store->QueueHeartbeat(watcher_);
}

void FeedSession::OnFeed(node::WatcherId watcher) {
  if (watcher == watcher_ && !sending_) SendNext();
}

void FeedSession::Send(const v1::WatchBlocksResponse& message) {
  Packet packet;
  packet.bytes = message.SerializeAsString();
  // What a stream began with, and namespaces, come once: nothing would tell that they were lost.
  packet.expendable = message.has_batch() || message.has_heartbeat();
  sending_ = true;
  idle_ = false;
  parts_->world->network.Send(stream_, Network::Side::kServer, std::move(packet));
}

void FeedSession::SendNext() {
  v1::WatchBlocksResponse message;
  switch (parts_->feed_messages->Fill(parts_->store->NextFeedMessage(watcher_), &message)) {
    case node::FeedMessages::Next::kMessage:
      parts_->mutation->OnFeedMessage(&message);
      return Send(message);
    case node::FeedMessages::Next::kCut:
      parts_->world->network.Finish(stream_, absl::ResourceExhaustedError("fell behind"));
      return parts_->over(stream_);
    case node::FeedMessages::Next::kIdle:
      idle_ = true;
      return;
  }
}

}  // namespace cairn::sim
