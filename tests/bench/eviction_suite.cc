// Eviction policies of the store, simulated over traces beside LRU and the best caches.
//
// One cell: --trace FILE --capacity BLOCKS [--policy NAME] [--partial] [--source NAME]. The table
// that policies are judged by: --grid --traces DIR [--policy NAME]; traces that are not in DIR are
// passed over, and a figure that needs them is left out.
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache_node/store/policies/policy_registry.h"
#include "client/replay/open_trace.h"
#include "tests/bench/eviction/block_trace.h"
#include "tests/bench/eviction/eviction_grid.h"
#include "tests/bench/eviction/known_traces.h"
#include "tests/bench/suites.h"

namespace cairn::bench {
namespace {

constexpr absl::string_view kTimedTrace = "conversation";
constexpr uint32_t kTimedCapacity = 5859;

absl::StatusOr<BlockTrace> ReadTrace(const std::string& path, const BlockTraceOptions& options) {
  absl::StatusOr<std::unique_ptr<replay::TraceReader>> reader = replay::OpenTrace(path);
  if (!reader.ok()) return reader.status();
  absl::StatusOr<BlockTrace> trace = BlockTrace::Read(reader->get(), options);
  if (trace.ok() && trace->requests().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": no request", options.source.empty() ? "" : " of source ", options.source));
  }
  return trace;
}

absl::Status RunCell(const SuiteOptions& options, MakePolicies policies, JsonReport* report) {
  if (options.trace.empty() || options.capacity == 0) {
    return absl::InvalidArgumentError(
        "eviction needs --trace FILE and --capacity BLOCKS, or --grid and --traces DIR");
  }
  const absl::StatusOr<BlockTrace> trace =
      ReadTrace(options.trace, {.partial = options.partial, .source = options.source});
  if (!trace.ok()) return trace.status();
  report->Add("requests", static_cast<double>(trace->requests().size()));
  report->Add("blocks", static_cast<double>(trace->block_refs()));
  report->Add("distinct_blocks", trace->block_count());
  AddFigures(SimulateCell("", *trace, options.capacity, policies), "", report);
  report->Add("policy_ns_per_block", NanosecondsPerBlock(*trace, options.capacity, policies));
  return absl::OkStatus();
}

absl::Status RunGrid(const SuiteOptions& options, MakePolicies policies, JsonReport* report) {
  std::vector<EvictionCell> cells;
  for (const KnownTrace& known : KnownTraces()) {
    const std::optional<std::string> path = FindTrace(options.traces, known.file);
    if (!path.has_value()) continue;
    const absl::StatusOr<BlockTrace> trace =
        ReadTrace(*path, {.partial = known.partial, .source = std::string(known.source)});
    if (!trace.ok()) return trace.status();
    for (const uint32_t capacity : known.capacities) {
      cells.push_back(SimulateCell(known.name, *trace, capacity, policies));
      AddFigures(cells.back(), absl::StrCat(known.name, "_", capacity, "_"), report);
      std::fprintf(stderr, "%s %u: %.4f\n", cells.back().name.c_str(), capacity,
                   GapClosed({&cells.back()}));
    }
    if (known.name != kTimedTrace) continue;
    report->Add("policy_ns_per_block", NanosecondsPerBlock(*trace, kTimedCapacity, policies));
  }
  if (cells.empty()) {
    return absl::NotFoundError(absl::StrCat("no known trace in \"", options.traces,
                                            "\": name its folder with --traces DIR"));
  }
  AddSummary(cells, report);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunEvictionSuite(const SuiteOptions& options, JsonReport* report) {
  const std::string name =
      options.policy.empty() ? std::string(node::kDefaultEvictionPolicy) : options.policy;
  if (absl::Status known = node::MakeEvictionPolicies(name).status(); !known.ok()) return known;
  const auto policies = [&name] { return *node::MakeEvictionPolicies(name); };
  report->Add("policy", name);
  return options.grid ? RunGrid(options, policies, report) : RunCell(options, policies, report);
}

}  // namespace cairn::bench
