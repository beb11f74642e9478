#include "tests/bench/eviction/eviction_grid.h"

#include <time.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cache_node/store/policies/lru_policy.h"
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

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double EvictionCell::PointsBelowLru() const {
  return 100 * (Share(lru.hit_blocks, block_refs) - Share(policy.hit_blocks, block_refs));
}

EvictionCell SimulateCell(absl::string_view name, const BlockTrace& trace, uint32_t capacity,
                          const node::EvictionPolicyFactory& policies) {
  EvictionCell cell;
  cell.name = std::string(name);
  cell.capacity = capacity;
  cell.block_refs = trace.block_refs();
  cell.unlimited = UnlimitedHits(trace);
  cell.belady = BeladyHits(trace, capacity);
  cell.lru = SimulatedStore(&trace, capacity, node::LruPolicyFactory().Make()).ServeAll();
  SimulatedStore store(&trace, capacity, policies.Make());
  const double begin = ThreadSeconds();
  cell.policy = store.ServeAll();
  cell.seconds = ThreadSeconds() - begin;
  cell.declined = store.declined();
  cell.evicted = store.evicted();
  cell.policy_bytes_per_block = static_cast<double>(store.policy().MemoryBytes()) / capacity;
  return cell;
}

double NanosecondsPerBlock(const BlockTrace& trace, uint32_t capacity,
                           const node::EvictionPolicyFactory& policies) {
  CAIRN_CHECK(trace.block_refs() > 0);
  double least = 0;
  double all = 0;
  for (int run = 0; run < kTimedRuns && all < kTimedSecondsMost; ++run) {
    SimulatedStore store(&trace, capacity, policies.Make());
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
  const auto worst = std::max_element(cells.begin(), cells.end(),
                                      [](const EvictionCell& a, const EvictionCell& b) {
                                        return a.PointsBelowLru() < b.PointsBelowLru();
                                      });
  if (worst == cells.end()) return;
  report->Add("worst_points_below_lru", std::max(0.0, worst->PointsBelowLru()));
  report->Add("worst_cell", absl::StrCat(worst->name, "_", worst->capacity));
}

}  // namespace cairn::bench
