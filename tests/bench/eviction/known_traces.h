// The traces and cache sizes that eviction policies are judged on.
//
// Traces are looked for in one folder under the names that they are published with, plain or
// gzipped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cairn::bench {

struct KnownTrace {
  absl::string_view name;         // Of its figures.
  absl::string_view file;         // Without .gz.
  absl::string_view source = "";  // Of the requests in it. Empty: all.
  bool partial = false;           // Last blocks that are not full count.
  std::vector<uint32_t> capacities;
  // Of these the gap to the best cache is summed for the mean over traces. May be empty.
  std::vector<uint32_t> judged = {};
};

std::vector<KnownTrace> KnownTraces();

// The path of the trace in `folder`, or nothing.
std::optional<std::string> FindTrace(const std::string& folder, absl::string_view file);

}  // namespace cairn::bench
