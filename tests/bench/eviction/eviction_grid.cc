#include "tests/bench/eviction/eviction_grid.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_node/store/policies/lru_policy.h"
#include "cache_node/store/tier_working_set.h"
#include "common/base/check.h"
#include "tests/bench/eviction/best_cache.h"
#include "tests/bench/eviction/simulated_store.h"

namespace cairn::bench {
namespace {

constexpr int kTimedRuns = 3;
constexpr double kTimedSecondsMost = 5;
constexpr absl::string_view kAgents = "agents";
constexpr uint32_t kAgentsCapacity = 1024;

double ThreadSeconds() {
  timespec now{};
  CAIRN_CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

const EvictionCell* FindCell(const std::vector<EvictionCell>& cells, absl::string_view name,
                             uint32_t capacity) {
  for (const EvictionCell& cell : cells) {
    if (cell.name == name && cell.capacity == capacity) return &cell;
  }
  return nullptr;
}

// The trace's judged cells; empty when one is not there.
std::vector<const EvictionCell*> JudgedCells(const std::vector<EvictionCell>& cells,
                                             const KnownTrace& trace) {
  std::vector<const EvictionCell*> judged;
  for (const uint32_t capacity : trace.judged) {
    judged.push_back(FindCell(cells, trace.name, capacity));
    if (judged.back() == nullptr) return {};
  }
  return judged;
}

// The cell that has most of something; null without cells.
template <typename Value>
const EvictionCell* Most(const std::vector<EvictionCell>& cells, Value value) {
  const auto most = std::max_element(
      cells.begin(), cells.end(),
      [&](const EvictionCell& a, const EvictionCell& b) { return value(a) < value(b); });
  return most == cells.end() ? nullptr : &*most;
}

std::string NameOf(const EvictionCell& cell) { return absl::StrCat(cell.name, "_", cell.capacity); }

// Of an estimate over the whole trace, by sizes in blocks: so each block is one byte.
std::vector<double> EstimatedHitRates(const BlockTrace& trace, std::vector<uint64_t> sizes) {
  node::WorkingSet set({.sizes_bytes = std::move(sizes), .half_life_blocks = 0});
  std::vector<BlockTrace::Block> path;
  for (const BlockTrace::Request& request : trace.requests()) {
    trace.PathOf(request, &path);
    node::WorkingSet::Prompt prompt;
    for (size_t i = path.size(); i-- > 0;) set.Ask(BlockTrace::KeyOf(path[i]), 1, &prompt);
  }
  std::vector<double> rates;
  for (size_t i = 0; i < set.size_count(); ++i) rates.push_back(set.HitRate(i));
  return rates;
}

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double WorkingSetErrorPoints(const BlockTrace& trace, uint32_t capacity) {
  std::vector<uint64_t> sizes;
  for (const double factor : node::kCapacityFactors) {
    sizes.push_back(std::max<uint64_t>(1, static_cast<uint64_t>(factor * capacity)));
  }
  const std::vector<double> estimated = EstimatedHitRates(trace, sizes);
  double error = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    SimulatedStore store(&trace, static_cast<uint32_t>(sizes[i]), node::LruPolicyFactory().Make());
    const double exact = Share(store.ServeAll().hit_blocks, trace.block_refs());
    error = std::max(error, 100 * std::abs(estimated[i] - exact));
  }
  return error;
}

double EvictionCell::PointsBelowLru() const {
  return 100 * (Share(lru.hit_blocks, block_refs) - Share(policy.hit_blocks, block_refs));
}

EvictionCell SimulateCell(absl::string_view name, const BlockTrace& trace, uint32_t capacity,
                          MakePolicies make) {
  EvictionCell cell;
  cell.name = std::string(name);
  cell.capacity = capacity;
  cell.block_refs = trace.block_refs();
  cell.unlimited = UnlimitedHits(trace);
  cell.belady = BeladyHits(trace, capacity);
  cell.lru = SimulatedStore(&trace, capacity, node::LruPolicyFactory().Make()).ServeAll();
  const std::unique_ptr<node::EvictionPolicyFactory> policies = make();
  SimulatedStore store(&trace, capacity, policies->Make());
  const double begin = ThreadSeconds();
  cell.policy = store.ServeAll();
  cell.seconds = ThreadSeconds() - begin;
  cell.declined = store.declined();
  cell.evicted = store.evicted();
  cell.working_set_error_points = WorkingSetErrorPoints(trace, capacity);
  cell.policy_bytes_per_block = static_cast<double>(store.policy().MemoryBytes()) / capacity;
  return cell;
}

double NanosecondsPerBlock(const BlockTrace& trace, uint32_t capacity, MakePolicies make) {
  CAIRN_CHECK(trace.block_refs() > 0);
  double least = 0;
  double all = 0;
  for (int run = 0; run < kTimedRuns && all < kTimedSecondsMost; ++run) {
    const std::unique_ptr<node::EvictionPolicyFactory> policies = make();
    SimulatedStore store(&trace, capacity, policies->Make());
    const double begin = ThreadSeconds();
    store.ServeAll();
    const double seconds = ThreadSeconds() - begin;
    if (run == 0 || seconds < least) least = seconds;
    all += seconds;
  }
  return 1e9 * least / static_cast<double>(trace.block_refs());
}

double GapClosed(const std::vector<const EvictionCell*>& cells) {
  double gained = 0;
  double gap = 0;
  for (const EvictionCell* cell : cells) {
    const auto lru = static_cast<double>(cell->lru.hit_blocks);
    gained += static_cast<double>(cell->policy.hit_blocks) - lru;
    gap += static_cast<double>(cell->belady.hit_blocks) - lru;
  }
  return gap > 0 ? gained / gap : 0;
}

void AddFigures(const EvictionCell& cell, absl::string_view prefix, JsonReport* report) {
  const auto add = [&](absl::string_view figure, double value) {
    report->Add(absl::StrCat(prefix, figure), value);
  };
  const auto counts = [&](absl::string_view whose, const HitCounts& hits) {
    add(absl::StrCat(whose, "hit_blocks"), static_cast<double>(hits.hit_blocks));
    add(absl::StrCat(whose, "hit"), Share(hits.hit_blocks, cell.block_refs));
    add(absl::StrCat(whose, "saved_prefill_s"), hits.saved_prefill_seconds);
  };
  counts("", cell.policy);
  counts("lru_", cell.lru);
  counts("belady_", cell.belady);
  counts("unlimited_", cell.unlimited);
  add("gap_closed", GapClosed({&cell}));
  add("points_below_lru", cell.PointsBelowLru());
  add("declined_requests", static_cast<double>(cell.declined));
  add("evicted_blocks", static_cast<double>(cell.evicted));
  add("policy_bytes_per_block", cell.policy_bytes_per_block);
  add("simulation_s", cell.seconds);
  add("working_set_error_points", cell.working_set_error_points);
}

void AddSummary(const std::vector<EvictionCell>& cells, JsonReport* report) {
  double sum = 0;
  int traces = 0;
  bool complete = true;
  for (const KnownTrace& trace : KnownTraces()) {
    if (trace.judged.empty()) continue;
    const std::vector<const EvictionCell*> judged = JudgedCells(cells, trace);
    complete = complete && !judged.empty();
    if (judged.empty()) continue;
    report->Add(absl::StrCat("gap_closed_", trace.name), GapClosed(judged));
    sum += GapClosed(judged);
    ++traces;
  }
  if (complete) report->Add("gap_closed_mean", sum / traces);
  if (const EvictionCell* agents = FindCell(cells, kAgents, kAgentsCapacity); agents != nullptr) {
    report->Add("gap_closed_agents", GapClosed({agents}));
  }
  const EvictionCell* worst =
      Most(cells, [](const EvictionCell& cell) { return cell.PointsBelowLru(); });
  if (worst == nullptr) return;
  report->Add("worst_points_below_lru", std::max(0.0, worst->PointsBelowLru()));
  report->Add("worst_cell", NameOf(*worst));
  const EvictionCell* least_known =
      Most(cells, [](const EvictionCell& cell) { return cell.working_set_error_points; });
  report->Add("working_set_error_points", least_known->working_set_error_points);
  report->Add("working_set_error_cell", NameOf(*least_known));
}

}  // namespace cairn::bench
