// The suites of cairn-bench: one file each, listed in suites.cc.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tests/bench/json_report.h"

namespace cairn::bench {

struct Suite {
  absl::string_view name;
  absl::string_view what;  // One line for the list of suites.
  // Measures, adds its figures to the report; a failure is for what kept it from measuring, never
  // for a slow result.
  absl::Status (*run)(JsonReport* report);
};

absl::Span<const Suite> AllSuites();

absl::Status RunFloodSuite(JsonReport* report);
absl::Status RunHashSuite(JsonReport* report);

}  // namespace cairn::bench
