#include "tests/sim/router/sim_follower.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::sim {

SimFollower::SimFollower(World* world, router::RouterCore* core, router::HolderIndex holder,
                         HostId router, HostId node, uint64_t seed)
    : world_(world),
      core_(core),
      holder_(holder),
      router_(router),
      node_(node),
      dice_(seed, absl::StrCat("follower ", holder)) {
  Connect();
}

SimFollower::~SimFollower() {
  if (stream_ != 0) world_->network.Drop(stream_);
}

void SimFollower::Connect() {
  began_at_ = last_heard_at_ = world_->scheduler.Now();
  last_heartbeat_sent_at_ = absl::InfinitePast();
  stream_ =
      world_->network.Open(router_, node_, Method::kWatchBlocks,
                           Caller{.id = "router", .tenant = kPublicTenant, .roles = RoleSet::All()},
                           this, absl::InfiniteDuration());
  WatchSilence(stream_);
}

void SimFollower::WatchSilence(StreamId stream) {
  world_->scheduler.After(absl::Seconds(1), router_, [this, stream] {
    if (stream != stream_) return;
    if (world_->scheduler.Now() - last_heard_at_ < kSilenceMax) return WatchSilence(stream);
    world_->network.Drop(stream);
    Ended(absl::UnavailableError("nothing was heard"));
  });
}

void SimFollower::OnPacket(StreamId stream, Packet packet) {
  CAIRN_CHECK(stream == stream_);
  last_heard_at_ = world_->scheduler.Now();
  v1::WatchBlocksResponse message;
  CAIRN_CHECK(message.ParseFromString(packet.bytes));
  const absl::StatusOr<std::vector<uint32_t>> resyncs = core_->OnFeed(holder_, message);
  if (!resyncs.ok()) {
    world_->network.Drop(stream);
    return Ended(resyncs.status());
  }
  if (message.has_heartbeat()) last_heartbeat_sent_at_ = packet.sent_at;
  if (resyncs->empty()) return;
  resyncs_asked_ += resyncs->size();
  v1::WatchBlocksRequest request;
  request.mutable_resync_shards()->Add(resyncs->begin(), resyncs->end());
  Packet asked;
  asked.bytes = request.SerializeAsString();
  world_->network.Send(stream, Network::Side::kClient, std::move(asked));
}

void SimFollower::OnClosed(StreamId stream, const absl::Status& status) {
  CAIRN_CHECK(stream == stream_);
  Ended(status);
}

void SimFollower::Ended(const absl::Status& why) {
  stream_ = 0;
  core_->OnFeedBroken(holder_);
  world_->log.Note(absl::StrCat("feed of holder ", holder_, " ends: ", why.message()));
  if (world_->scheduler.Now() - began_at_ > kBackoffMax) backoff_ = kBackoffInitial;
  world_->scheduler.After(dice_.Between(backoff_ / 2, backoff_), router_, [this] { Connect(); });
  backoff_ = std::min(backoff_ * 2, kBackoffMax);
}

bool SimFollower::UpToDate() const {
  return stream_ != 0 && world_->network.RestsWhole(stream_) &&
         last_heartbeat_sent_at_ > world_->network.LastFeedFault(stream_);
}

}  // namespace cairn::sim
