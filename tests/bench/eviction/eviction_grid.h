// What a policy hits at one trace and cache size beside the caches that it is compared with, and
// the figures over many of them that policies are judged by.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "cache_node/store/eviction_policy.h"
#include "tests/bench/eviction/block_trace.h"
#include "tests/bench/eviction/hit_counts.h"
#include "tests/bench/eviction/known_traces.h"
#include "tests/bench/json_report.h"

namespace cairn::bench {

struct EvictionCell {
  std::string name;  // Of the trace.
  uint32_t capacity = 0;
  uint64_t block_refs = 0;
  HitCounts unlimited;
  HitCounts belady;
  HitCounts lru;
  HitCounts policy;
  uint64_t declined = 0;  // Requests of which a block was.
  uint64_t evicted = 0;
  double policy_bytes_per_block = 0;
  double seconds = 0;  // Of the simulation with the policy.
  // The most by which a working set's estimate is off LRU's hit rate, at any of a node's factors.
  double working_set_error_points = 0;

  // Share of all blocks that the policy hits, in points, below what LRU hits; negative: above.
  double PointsBelowLru() const;
};

// A new factory, with nothing learnt, for each simulation.
using MakePolicies = absl::FunctionRef<std::unique_ptr<node::EvictionPolicyFactory>()>;

EvictionCell SimulateCell(absl::string_view name, const BlockTrace& trace, uint32_t capacity,
                          MakePolicies make);

// Processor time of a simulation for each block that is asked for: all that the policy is told and
// asked, and the simulator's own part with it. The least of some runs.
double NanosecondsPerBlock(const BlockTrace& trace, uint32_t capacity, MakePolicies make);

double WorkingSetErrorPoints(const BlockTrace& trace, uint32_t capacity);

// The share of the gap between LRU and the best cache that the policy closes, over the cells
// together. Nothing to close: 0.
double GapClosed(const std::vector<const EvictionCell*>& cells);

// A cell's figures, their names after `prefix`.
void AddFigures(const EvictionCell& cell, absl::string_view prefix, JsonReport* report);

// Figures over all cells: gap_closed_mean over the traces with `judged` sizes, gap_closed_agents
// (all agents at 1,024 blocks), worst_points_below_lru and where that is, the largest
// working_set_error_points and where. Those whose cells are not all there are left out.
void AddSummary(const std::vector<EvictionCell>& cells, JsonReport* report);

}  // namespace cairn::bench
