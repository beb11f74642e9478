#include "tests/sim/simulation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "tests/sim/crash_note.h"
#include "tests/sim/invariants/all_invariants.h"
#include "tests/sim/invariants/quiet_leaves_nothing.h"

namespace cairn::sim {
namespace {

constexpr absl::Duration kLookEach = absl::Milliseconds(1000);
// One request, whatever happens: the sum of its steps' timeouts, and stalls.
constexpr absl::Duration kRequestMost = absl::Seconds(120);
constexpr absl::Duration kRunMost = absl::Minutes(20);
// Leases, tokens, bookings and backoffs of feeds together.
constexpr absl::Duration kRestMost = absl::Seconds(90);
// For records of what was committed to reach the router.
constexpr absl::Duration kFeedsArrive = absl::Seconds(2);
constexpr size_t kLinesShown = 400;
constexpr size_t kFreshBlocks = 4;

}  // namespace

class Simulation::LivesCounter final : public Witness {
 public:
  void OnNodeStarted(const Life& /*node*/) override { ++lives; }
  uint64_t lives = 0;
};

Simulation::Simulation(const SimOptions& options, const NodeMutations& mutations)
    : options_(options),
      world_(options.seed, options.weather),
      workload_(options.workload, options.seed, &book_),
      cluster_(&world_, options, &book_, &workload_, mutations),
      truth_(&book_, &world_.log,
             [this](const Life& life) { return cluster_.node(life.place)->guarded_now(); }),
      scene_{&book_, &truth_, &cluster_, world_.scheduler.clock(), &world_.log, &verdict_},
      lives_(std::make_unique<LivesCounter>()) {
  world_.log.CopyTo(options.log_to);
  world_.witnesses.Add(&truth_);
  world_.witnesses.Add(lives_.get());
  invariants_ =
      AllInvariants(&scene_, {options.store, options.router, options.in_flight_bytes_max});
  for (const auto& invariant : invariants_) world_.witnesses.Add(invariant.get());
}

Simulation::~Simulation() = default;

void Simulation::Violated(const std::string& invariant, const std::string& what) {
  verdict_.broken.insert(invariant);
  if (!verdict_.ok()) return;
  verdict_.invariant = invariant;
  verdict_.what = what;
}

void Simulation::LookSoon() {
  world_.scheduler.After(kLookEach, kWorldHost, [this] {
    world_.witnesses.OnLook();
    const absl::Duration age = world_.scheduler.Now() - cluster_.oldest_job_began_at();
    if (age > kRequestMost) {
      Violated("requests_end", absl::StrCat("a request has run for ", absl::FormatDuration(age)));
    }
    LookSoon();
  });
}

template <typename Enough>
bool Simulation::RunUntil(absl::Duration bound, const Enough& enough) {
  const absl::Time end = world_.scheduler.Now() + bound;
  while (verdict_.ok() && !enough()) {
    if (world_.scheduler.Now() >= end) return false;
    CAIRN_CHECK(world_.scheduler.Step());
  }
  return true;
}

SimResult Simulation::Run() {
  const CrashNote note(options_.seed, &world_.log);
  const absl::Time began = world_.scheduler.Now();
  RunRequestsAndFaults();
  if (verdict_.ok()) ComeToRest();
  if (verdict_.ok()) RequestsHit();
  SimResult result;
  result.seed = options_.seed;
  result.verdict = verdict_;
  result.digest = world_.log.digest();
  result.steps = world_.scheduler.steps();
  result.virtual_time = world_.scheduler.Now() - began;
  result.tally = workload_.tally();
  result.blocks_committed = truth_.blocks_committed();
  result.node_lives = lives_->lives;
  if (!verdict_.ok()) result.last_lines = world_.log.LastLines(kLinesShown);
  return result;
}

void Simulation::RunRequestsAndFaults() {
  cluster_.Start();
  LookSoon();
  stranger_ =
      std::make_unique<Stranger>(&world_,
                                 Stranger::Options{.host = cluster_.stranger_host(),
                                                   .router = cluster_.router_host(),
                                                   .nodes = cluster_.node_hosts(),
                                                   .pause_most = options_.stranger_pause_most},
                                 &book_, &truth_, &cluster_);
  chaos_ =
      std::make_unique<Chaos>(&world_, &cluster_, options_.chaos, options_.nodes, options_.workers);
  const absl::Time faults_end = world_.scheduler.Now() + options_.faults_most;
  const bool ended = RunUntil(kRunMost, [&] {
    return (workload_.AllHandedOut() && cluster_.jobs() == 0) ||
           world_.scheduler.Now() >= faults_end;
  });
  CAIRN_CHECK(ended);
  world_.log.Note("faults end");
  chaos_->Stop();
  stranger_->Stop();
  cluster_.EndFaults();
  world_.weather.Calm();
}

void Simulation::ComeToRest() {
  if (!RunUntil(kRunMost, [&] {
        return workload_.AllHandedOut() && cluster_.jobs() == 0 && cluster_.AllUp();
      })) {
    return Violated("requests_end", absl::StrCat(cluster_.jobs(), " requests do not end"));
  }
  const bool rests = RunUntil(kRestMost, [&] {
    // Looking at all costs more than one event.
    return world_.scheduler.steps() % 64 == 0 && QuietLeavesNothing::WhatIsLeft(cluster_).empty();
  });
  if (!verdict_.ok()) return;
  if (!rests) {
    return Violated("quiet_leaves_nothing",
                    absl::StrCat(absl::FormatDuration(kRestMost), " after the last request: ",
                                 QuietLeavesNothing::WhatIsLeft(cluster_)));
  }
  world_.log.Note("all is quiet");
  world_.witnesses.OnLook();
  world_.witnesses.OnQuiet();
}

void Simulation::RequestsHit() {
  for (size_t name_space = 0; name_space < book_.namespaces().size(); ++name_space) {
    for (const char* tenant : {"acme", "globex"}) {
      if (verdict_.ok()) RequestHits(name_space, tenant);
    }
  }
}

// What is asked for twice is computed once, and the second time the router knew.
void Simulation::RequestHits(size_t name_space, const std::string& tenant) {
  const SimPrompt* prompt = workload_.Fresh(name_space, tenant, kFreshBlocks);
  const RequestJob::Outcome first = ServeAndWait(prompt);
  RunUntil(kFeedsArrive, [] { return false; });
  const RequestJob::Outcome second = ServeAndWait(prompt);
  if (!verdict_.ok()) return;
  const uint64_t tokens = kFreshBlocks * prompt->name_space().block_tokens();
  if (first.hit_blocks == 0 && first.stored.ok() && second.hit_blocks == kFreshBlocks &&
      second.matched_tokens == tokens) {
    return;
  }
  Violated(
      "requests_hit",
      absl::StrCat("of ", kFreshBlocks, " fresh blocks of ", tenant, ", the second request hit ",
                   second.hit_blocks, ", the router matched ", second.matched_tokens, " of ",
                   tokens, " tokens; the first was stored: ", first.stored.ToString()));
}

RequestJob::Outcome Simulation::ServeAndWait(const SimPrompt* prompt) {
  RequestJob::Outcome result;
  bool ended = false;
  cluster_.worker(0)->Serve(prompt, [&](const RequestJob::Outcome& outcome) {
    result = outcome;
    ended = true;
  });
  if (!RunUntil(kRequestMost, [&] { return ended; })) {
    Violated("requests_end", "a request does not end although all is quiet");
  }
  return result;
}

}  // namespace cairn::sim
