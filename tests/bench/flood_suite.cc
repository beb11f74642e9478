// A thousand clients with a connection each put 8 MiB at once into a node that may hold 1 GiB and
// pools 256 MiB, and try again as it says for 15 s; a lookup runs beside them. The floor of the
// resident memory is its limit; latency has none but the same lookup on an idle node.
#include <filesystem>
#include <string>

#include "tests/bench/suites.h"
#include "tests/cluster/flood.h"

namespace cairn::bench {
namespace {

// Where this program lies; the node's lies beside it.
absl::StatusOr<std::string> ProgramFolder() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return absl::UnavailableError("cannot tell where cairn-bench lies");
  return self.parent_path().string();
}

}  // namespace

absl::Status RunFloodSuite(const SuiteOptions&, JsonReport* report) {
  const absl::StatusOr<std::string> folder = ProgramFolder();
  if (!folder.ok()) return folder.status();
  testing::FloodOptions options;
  options.programs = *folder;
  const absl::StatusOr<testing::FloodResult> result = testing::RunFlood(options);
  if (!result.ok()) return result.status();
  const auto peak = static_cast<double>(result->rss_peak_bytes);
  const auto limit = static_cast<double>(result->memory_limit_bytes);
  report->Add("clients", options.clients);
  report->Add("memory_limit_bytes", limit);
  report->Add("rss_idle_bytes", static_cast<double>(result->rss_idle_bytes));
  report->Add("rss_peak_bytes", peak);
  report->Add("rss_peak_ratio", peak / limit);
  report->Add("puts_landed", static_cast<double>(result->landed));
  report->Add("puts_refused", static_cast<double>(result->refused));
  report->Add("puts_failed", static_cast<double>(result->failed));
  report->Add("refusals", static_cast<double>(result->refusals));
  report->Add("seconds", result->seconds);
  report->Add("lookups_answered", static_cast<double>(result->lookups));
  report->Add("lookups_failed", static_cast<double>(result->lookups_failed));
  report->Add("lookup_idle_p50_ms", result->lookup_idle_p50_ms);
  report->Add("lookup_p50_ms", result->lookup_p50_ms);
  report->Add("lookup_p99_ms", result->lookup_p99_ms);
  report->Add("lookup_max_ms", result->lookup_max_ms);
  return absl::OkStatus();
}

}  // namespace cairn::bench
