#include "tests/sim/cluster.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_node/store/scope_digest.h"
#include "common/base/check.h"

namespace cairn::sim {
namespace {

// For one that a node has something of.
constexpr int kPromptsTried = 8;

std::string AddressOf(size_t place) { return absl::StrCat("10.0.0.", place, ":7000"); }

}  // namespace

Cluster::Cluster(World* world, const SimOptions& options, const PromptBook* book,
                 Workload* workload, const NodeMutations& mutations)
    : world_(world),
      options_(options),
      book_(book),
      workload_(workload),
      mutations_(mutations),
      dice_(world->seed, "cluster"),
      nodes_(options.nodes),
      workers_(options.workers) {
  HostId host = kFirstNodeHost;
  for (size_t place = 0; place < nodes_.size(); ++place) {
    nodes_[place].host = host++;
    nodes_[place].name = absl::StrCat("node-", place);
    fleet_.node_by_address[AddressOf(place)] = nodes_[place].host;
  }
  for (size_t place = 0; place < workers_.size(); ++place) {
    workers_[place].host = host++;
    workers_[place].name = absl::StrCat("worker-", place);
  }
  router_.host = fleet_.router = kRouterHost;
  fleet_.tokens_per_second = options.tokens_per_second;
  router_.name = "router";
  world_->network.Attach(kStrangerHost, "stranger", nullptr);
}

Cluster::~Cluster() {
  for (Slot<SimWorker>& worker : workers_) Kill(&worker);
  Kill(&router_);
  for (Slot<SimNode>& node : nodes_) Kill(&node);
}

void Cluster::Start() {
  for (size_t place = 0; place < nodes_.size(); ++place) StartNode(place);
  StartRouter();
  for (size_t place = 0; place < workers_.size(); ++place) StartWorker(place);
}

void Cluster::StartNode(size_t place) {
  Slot<SimNode>& slot = nodes_[place];
  CAIRN_CHECK(slot.process == nullptr);
  const Life life{place, ++slot.lives};
  const SimNodeOptions options{.host = slot.host,
                               .node_id = slot.name,
                               .address = AddressOf(place),
                               .worker_address = absl::StrCat("10.0.0.", place, ":8000"),
                               .pool_bytes = options_.pool_bytes,
                               .in_flight_bytes_max = options_.in_flight_bytes_max,
                               .store = options_.store};
  NodeMutation* mutation = place < mutations_.size() ? mutations_[place] : nullptr;
  if (mutation == nullptr) mutation = &sound_;
  slot.process = std::make_unique<SimNode>(world_, options, life, mutation);
  slot.changed_at = world_->scheduler.Now();
  world_->network.Attach(slot.host, slot.name, slot.process.get());
  world_->log.Note(absl::StrCat(slot.name, " starts, life ", life.number));
  world_->witnesses.OnNodeStarted(life);
}

void Cluster::StartRouter() {
  SimRouterOptions options{.host = router_.host, .nodes = node_hosts(), .core = options_.router};
  for (size_t place = 0; place < nodes_.size(); ++place) {
    options.core.holder_addresses.push_back(AddressOf(place));
  }
  world_->network.Attach(router_.host, router_.name, nullptr);
  router_.process = std::make_unique<SimRouter>(world_, options, Life{0, ++router_.lives});
  router_.changed_at = world_->scheduler.Now();
  world_->network.Serve(router_.host, router_.process.get());
  world_->log.Note(absl::StrCat("the router starts, life ", router_.lives));
}

void Cluster::StartWorker(size_t place) {
  Slot<SimWorker>& slot = workers_[place];
  world_->network.Attach(slot.host, slot.name, nullptr);
  slot.process = std::make_unique<SimWorker>(
      world_,
      SimWorker::Options{
          .host = slot.host, .jobs = options_.jobs_per_worker, .think_most = options_.think_most},
      Life{place, ++slot.lives}, &fleet_, workload_);
  slot.changed_at = world_->scheduler.Now();
}

// Its streams go first, then what it was, then what it would have done.
template <typename Process>
void Cluster::Kill(Slot<Process>* slot) {
  if (slot->process == nullptr) return;
  world_->log.Note(absl::StrCat(slot->name, " dies"));
  world_->network.Detach(slot->host);
  slot->process = nullptr;
  world_->scheduler.Forget(slot->host);
  slot->changed_at = world_->scheduler.Now();
}

void Cluster::KillNode(size_t place, absl::Duration down_for) {
  if (!faults_end_) TakeDown(place, down_for);
}

void Cluster::TakeDown(size_t place, absl::Duration down_for) {
  Slot<SimNode>& slot = nodes_[place];
  if (slot.process == nullptr) return;
  const Life life = slot.process->life();
  Kill(&slot);
  world_->witnesses.OnNodeDied(life);
  world_->scheduler.After(down_for, kWorldHost, [this, place] { StartNode(place); });
}

void Cluster::DrainNode(size_t place, absl::Duration grace, absl::Duration down_for) {
  Slot<SimNode>& slot = nodes_[place];
  if (slot.process == nullptr || faults_end_) return;
  world_->log.Note(absl::StrCat(slot.name, " drains"));
  slot.process->Drain();
  const Life life = slot.process->life();
  world_->scheduler.After(grace, kWorldHost, [this, place, life, down_for] {
    const SimNode* drained = node(place);
    if (drained != nullptr && drained->life() == life) TakeDown(place, down_for);
  });
}

void Cluster::StallNode(size_t place, absl::Duration stall) {
  world_->log.Note(absl::StrCat(nodes_[place].name, " stalls"));
  world_->scheduler.Stall(nodes_[place].host, world_->scheduler.Now() + stall);
}

void Cluster::DamageNode(size_t place) {
  const SimNode* process = node(place);
  if (process == nullptr || book_->keys().empty()) return;
  auto it = book_->keys().begin();
  std::advance(it, static_cast<ptrdiff_t>(dice_.Below(book_->keys().size())));
  for (size_t tries = book_->keys().size(); tries > 0; --tries, ++it) {
    if (it == book_->keys().end()) it = book_->keys().begin();
    const auto& [key, facts] = *it;
    const auto answer = process->store()->PinForRead(
        facts.scope.tenant, facts.name_space->fingerprint(), std::nullopt, key);
    if (!answer.ok() || !answer->pin) continue;
    const PayloadMap& map = facts.name_space->payload_map();
    const size_t segment = dice_.Below(map.segment_count());
    if (!answer->pin.SegmentPresent(segment)) continue;
    const uint64_t at = map.SegmentOffset(segment) + dice_.Below(map.SegmentBytesAt(segment));
    // As a cosmic ray would.
    const_cast<uint8_t&>(answer->pin.bytes()[at]) ^= static_cast<uint8_t>(1 + dice_.Below(255));
    world_->log.Note(absl::StrCat(nodes_[place].name, " is damaged"));
    world_->witnesses.OnDamaged(process->life(), key);
    return;
  }
}

SimNode::PullWish Cluster::AnyRegionOf(const SimNode& node) {
  SimNode::PullWish wish;
  for (int tries = 0; tries < kPromptsTried; ++tries) {
    const size_t count = book_->prompts().size();
    const size_t back = dice_.Below(std::min<size_t>(count, dice_.Chance(8000) ? 30 : count));
    const SimPrompt& prompt = book_->prompts()[count - 1 - back];
    const std::vector<BlockKey>& keys = prompt.prompt().keys();
    wish = {.name_space = &prompt.name_space(),
            .scope = book_->Find(keys[dice_.Below(keys.size())])->scope,
            .keys = {}};
    const BlockKey digest = node::ScopeDigest(wish.scope);
    for (const BlockKey& key : keys) {
      if (book_->Find(key)->scope_digest == digest) wish.keys.push_back(key);
    }
    const node::BlockRecords there = node.store()->DescribeBlocks(
        wish.scope.tenant, wish.name_space->fingerprint(), {&wish.keys.front(), 1}, 0);
    if (there.blocks[0].state == node::BlockState::kHost) break;
  }
  return wish;
}

void Cluster::PullBetween(size_t from, size_t to) {
  if (from == to || faults_end_ || book_->prompts().empty()) return;
  // By the node itself, when it runs.
  world_->scheduler.After(absl::ZeroDuration(), nodes_[to].host, [this, from, to] {
    SimNode* here = nodes_[to].process.get();
    const SimNode* there = node(from);
    if (here == nullptr || there == nullptr) return;
    world_->log.Note(absl::StrCat(nodes_[to].name, " pulls from ", nodes_[from].name));
    here->Pull(*there, AnyRegionOf(*there), &dice_);
  });
}

void Cluster::KillRouter(absl::Duration down_for) {
  if (router_.process == nullptr || faults_end_) return;
  Kill(&router_);
  world_->scheduler.After(down_for, kWorldHost, [this] { StartRouter(); });
}

void Cluster::StallRouter(absl::Duration stall) {
  world_->log.Note("the router stalls");
  router_stalled_until_ = std::max(router_stalled_until_, world_->scheduler.Now() + stall);
  world_->scheduler.Stall(router_.host, router_stalled_until_);
}

bool Cluster::router_stalled_within(absl::Duration span) const {
  return world_->scheduler.Now() - router_stalled_until_ < span;
}

void Cluster::KillWorker(size_t place, absl::Duration down_for) {
  if (workers_[place].process == nullptr || faults_end_) return;
  Kill(&workers_[place]);
  world_->scheduler.After(down_for, kWorldHost, [this, place] { StartWorker(place); });
}

void Cluster::StallWorker(size_t place, absl::Duration stall) {
  world_->log.Note(absl::StrCat(workers_[place].name, " stalls"));
  world_->scheduler.Stall(workers_[place].host, world_->scheduler.Now() + stall);
}

void Cluster::BlockNodeAndRouter(size_t place, bool both_ways, absl::Duration block) {
  Block(nodes_[place].host, router_.host, both_ways, block);
}

void Cluster::BlockNodeAndWorker(size_t place, size_t worker, bool both_ways,
                                 absl::Duration block) {
  Block(nodes_[place].host, workers_[worker].host, both_ways, block);
}

void Cluster::Block(HostId a, HostId b, bool both_ways, absl::Duration block) {
  world_->log.Note(absl::StrCat("the link from host ", a, " to ", b, " is blocked"));
  const absl::Time until = world_->scheduler.Now() + block;
  world_->weather.BlockLink(a, b, until);
  if (both_ways) world_->weather.BlockLink(b, a, until);
}

std::vector<HostId> Cluster::node_hosts() const {
  std::vector<HostId> hosts;
  for (const Slot<SimNode>& node : nodes_) hosts.push_back(node.host);
  return hosts;
}

bool Cluster::AllUp() const {
  const auto up = [](const auto& slot) { return slot.process != nullptr; };
  return up(router_) && std::all_of(nodes_.begin(), nodes_.end(), up) &&
         std::all_of(workers_.begin(), workers_.end(), up) &&
         std::none_of(nodes_.begin(), nodes_.end(),
                      [](const Slot<SimNode>& slot) { return slot.process->draining(); });
}

size_t Cluster::jobs() const {
  size_t jobs = 0;
  for (const Slot<SimWorker>& worker : workers_) {
    if (worker.process != nullptr) jobs += worker.process->jobs();
  }
  return jobs;
}

absl::Time Cluster::oldest_job_began_at() const {
  absl::Time oldest = absl::InfiniteFuture();
  for (const Slot<SimWorker>& worker : workers_) {
    if (worker.process != nullptr) oldest = std::min(oldest, worker.process->oldest_job_began_at());
  }
  return oldest;
}

}  // namespace cairn::sim
