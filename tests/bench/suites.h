// The suites of cairn-bench: one file each, listed in suites.cc.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tests/bench/json_report.h"

namespace cairn::bench {

struct SuiteOptions {
  // Where suites that need a disk put their files, in a folder that they remove; empty: among the
  // system's temporary files.
  std::string dir;
  // Of the suites that read traces (eviction_suite.cc says which takes which).
  std::string trace;   // A file,
  std::string traces;  // or a folder of them.
  std::string source;
  std::string policy;
  uint32_t capacity = 0;
  uint32_t nodes = 8;
  uint32_t routers = 1;
  uint32_t seeds = 9;
  double stale_seconds = 0;
  double lose_batches = 0;
  // Of the routing model with answers (routing/decode_model.h).
  std::string model;
  uint32_t kv_tokens = 400'000;
  double load = 0.5;
  double slow_share = 0.5;
  double slow_speed = 0.5;
  double slo_ttft_seconds = 5;
  double slo_tpot_ms = 100;
  std::string only;  // Of datapath one family of figures, of hit one transport; empty: all.
  bool partial = false;
  bool grid = false;
};

struct Suite {
  absl::string_view name;
  absl::string_view what;  // One line for the list of suites.
  // Measures, adds its figures to the report; a failure is for what kept it from measuring, never
  // for a slow result.
  absl::Status (*run)(const SuiteOptions& options, JsonReport* report);
};

absl::Span<const Suite> AllSuites();

absl::Status RunCopyDigestSuite(const SuiteOptions& options, JsonReport* report);
absl::Status RunDatapathSuite(const SuiteOptions& options, JsonReport* report);
absl::Status RunDecodeSuite(const SuiteOptions& options, JsonReport* report);
absl::Status RunEvictionSuite(const SuiteOptions& options, JsonReport* report);
absl::Status RunFloodSuite(const SuiteOptions& options, JsonReport* report);
absl::Status RunHashSuite(const SuiteOptions& options, JsonReport* report);
absl::Status RunHitSuite(const SuiteOptions& options, JsonReport* report);
absl::Status RunIndexSuite(const SuiteOptions& options, JsonReport* report);
absl::Status RunPressureSuite(const SuiteOptions& options, JsonReport* report);
absl::Status RunQuantizationSuite(const SuiteOptions& options, JsonReport* report);
absl::Status RunRouteSuite(const SuiteOptions& options, JsonReport* report);
absl::Status RunRoutingSuite(const SuiteOptions& options, JsonReport* report);
absl::Status RunServedDecodeSuite(const SuiteOptions& options, JsonReport* report);
absl::Status RunSpillSuite(const SuiteOptions& options, JsonReport* report);

}  // namespace cairn::bench
