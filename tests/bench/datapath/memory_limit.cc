// A thousand clients, a quarter of them slow, put 8 MiB each at once into a node that pools 256 MiB
// and may hold 1 GiB: the most that was resident, over that limit.
#include <string>

#include "tests/bench/datapath/bench_node.h"
#include "tests/bench/datapath/figures.h"
#include "tests/cluster/flood.h"

namespace cairn::bench {

absl::Status AddMemory(JsonReport* report) {
  const absl::StatusOr<std::string> programs = ProgramFolder();
  if (!programs.ok()) return programs.status();
  testing::FloodOptions options;
  options.programs = *programs;
  options.slow_percent = 25;
  const absl::StatusOr<testing::FloodResult> result = testing::RunFlood(options);
  if (!result.ok()) return result.status();
  report->Add("rss_over_limit", static_cast<double>(result->rss_peak_bytes) /
                                    static_cast<double>(result->memory_limit_bytes));
  report->Add("rss_peak_bytes", static_cast<double>(result->rss_peak_bytes));
  report->Add("flood_puts_landed", static_cast<double>(result->landed));
  report->Add("flood_puts_refused", static_cast<double>(result->refused));
  report->Add("flood_puts_failed", static_cast<double>(result->failed));
  report->Add("flood_lookups_failed", static_cast<double>(result->lookups_failed));
  report->Add("flood_lookup_p99_ms", result->lookup_p99_ms);
  return absl::OkStatus();
}

}  // namespace cairn::bench
