#include "tests/sim/node/sim_node.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_node/store/policies/lru_policy.h"
#include "common/base/check.h"
#include "tests/sim/dice.h"
#include "tests/sim/node/feed_session.h"
#include "tests/sim/node/get_session.h"
#include "tests/sim/node/write_session.h"

namespace cairn::sim {
namespace {

uint64_t SeedOf(const World& world, const SimNodeOptions& options, const Life& life) {
  return Dice(world.seed, absl::StrCat(options.node_id, " life ", life.number)).Next();
}

std::unique_ptr<node::HostMemory> MakeMemory(uint64_t pool_bytes) {
  auto memory = node::HostMemory::Create(pool_bytes);
  CAIRN_CHECK_OK(memory.status());
  return *std::move(memory);
}

}  // namespace

SimNode::SimNode(World* world, const SimNodeOptions& options, const Life& life,
                 NodeMutation* mutation)
    : world_(world),
      mutation_(mutation),
      random_(SeedOf(*world, options, life)),
      time_(world->scheduler.clock(), kTickAdvanceMax),
      store_(std::make_unique<node::BlockStore>(
          options.store, &time_, &random_, &counters_, MakeMemory(options.pool_bytes),
          std::make_unique<node::LruPolicyFactory>(),
          node::BlockStore::Signals{
              .settled = [this] { SweepLookupsSoon(); },
              .feed =
                  [this](const std::vector<node::WatcherId>& watchers) { WakeFeeds(watchers); }})),
      in_flight_({.bytes_max = options.in_flight_bytes_max}, world->scheduler.clock()),
      memory_(node::RequestMemory::Options{}),
      facts_({.node_id = options.node_id,
              .incarnation = random_.New<Incarnation>(),
              .worker_address = options.worker_address,
              .shards = options.store.feed_shards},
             {}, store_.get(), &in_flight_, &counters_, /*disk=*/nullptr),
      feed_messages_(store_.get(), &facts_),
      calls_({.store = store_.get(),
              .counters = &counters_,
              .hasher = &hasher_,
              .clock = world->scheduler.clock(),
              .memory = &memory_,
              .facts = &facts_,
              .fences = mutation->NotesFences() ? &fences_ : nullptr}),
      parts_({.world = world,
              .host = options.host,
              .life = life,
              .store = store_.get(),
              .in_flight = &in_flight_,
              .feed_messages = &feed_messages_,
              .get_pins = &get_pins_,
              .mutation = mutation,
              .over = [this](StreamId stream) { BurySoon(stream); }}),
      unary_(
          &world->network, [this](UnaryServer::Request request) { Handle(std::move(request)); },
          [this](StreamId stream) { waiting_.erase(stream); }) {
  facts_.SetAddresses({options.address});
  Tick();
  Heartbeat();
}

SimNode::~SimNode() {
  waiting_.clear();
  for (const auto& [stream, session] : sessions_) {
    session->OnClosed(stream, absl::CancelledError("the process ends"));
  }
  sessions_.clear();
  CAIRN_CHECK_MSG(get_pins_.pins() == 0, "frames of a node that is gone are still on their way");
}

StreamEnd* SimNode::Accept(StreamId stream, Method method, const Caller& caller) {
  switch (method) {
    case Method::kGet: {
      const auto session = std::make_shared<GetSession>(&parts_, caller);
      sessions_[stream] = session;
      return session.get();
    }
    case Method::kWrite: {
      const auto session = std::make_shared<WriteSession>(&parts_, caller, stream, next_writer_++);
      sessions_[stream] = session;
      session->Begin();
      return session.get();
    }
    case Method::kWatchBlocks: {
      const auto session = std::make_shared<FeedSession>(&parts_, stream);
      sessions_[stream] = session;
      session->Begin();
      return session.get();
    }
    default:
      return unary_.Accept(stream, method, caller);
  }
}

void SimNode::Tick() {
  time_.Tick();
  store_->Tick();
  store_->EndRetention(world_->scheduler.clock()->WallNow());
  in_flight_.Tick();
  SweepLookups();
  world_->scheduler.After(kTick, parts_.host, [this] { Tick(); });
}

void SimNode::Heartbeat() {
  for (const auto& [stream, session] : sessions_) session->OnHeartbeat();
  world_->scheduler.After(kHeartbeat, parts_.host, [this] { Heartbeat(); });
}

// The store signals from within its callers' calls, where nothing may call it back.
void SimNode::WakeFeeds(const std::vector<node::WatcherId>& watchers) {
  ++wakes_coming_;
  world_->scheduler.After(absl::ZeroDuration(), parts_.host, [this, watchers] {
    --wakes_coming_;
    for (const node::WatcherId watcher : watchers) {
      for (const auto& [stream, session] : sessions_) session->OnFeed(watcher);
    }
  });
}

bool SimNode::FeedsAreIdle() const {
  return wakes_coming_ == 0 &&
         std::all_of(sessions_.begin(), sessions_.end(),
                     [](const auto& session) { return session.second->FeedIsIdle(); });
}

void SimNode::BurySoon(StreamId stream) {
  world_->scheduler.After(absl::ZeroDuration(), parts_.host,
                          [this, stream] { sessions_.erase(stream); });
}

void SimNode::SweepLookupsSoon() {
  if (std::exchange(sweep_is_coming_, true)) return;
  world_->scheduler.After(absl::ZeroDuration(), parts_.host, [this] { SweepLookups(); });
}

}  // namespace cairn::sim
