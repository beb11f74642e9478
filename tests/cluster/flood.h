// Flood: many clients put a large block at once into a node with little memory, with a lookup
// beside.
//
// For the test that holds the node to its memory limit, and for cairn-bench.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace cairn::testing {

struct FloodOptions {
  // Folder of cairn-node and cairn_flood_client.
  std::string programs;
  uint32_t clients = 1000;
  uint32_t processes = 4;
  uint64_t memory_limit_mib = 1024;
  uint64_t host_memory_mib = 256;
  // How long a refused client tries again.
  absl::Duration budget = absl::Seconds(15);
  // Of 100 clients, such as wait between frames as if their connection were slow.
  uint32_t slow_percent = 0;
  // Send payload under tokens that nobody gave out, instead of puts.
  bool blind = false;
};

struct FloodResult {
  uint64_t memory_limit_bytes = 0;
  // Of the node: when it was ready, the most that was sampled, and the most that the kernel saw.
  uint64_t rss_idle_bytes = 0;
  uint64_t rss_sampled_max_bytes = 0;
  uint64_t rss_peak_bytes = 0;
  uint64_t samples = 0;
  // Clients, by how their put ended.
  uint64_t landed = 0;
  uint64_t refused = 0;
  uint64_t unknown = 0;
  uint64_t failed = 0;
  std::string failure;
  // Over all tries.
  uint64_t refusals = 0;
  // The same lookup, before the clients begin.
  double lookup_idle_p50_ms = 0;
  uint64_t lookups = 0;
  uint64_t lookups_failed = 0;
  // How often the health service was asked meanwhile, and did not say within a second that the node
  // serves.
  uint64_t health_asked = 0;
  uint64_t health_failed = 0;
  double lookup_p50_ms = 0;
  double lookup_p99_ms = 0;
  double lookup_max_ms = 0;
  double seconds = 0;
};

// Starts everything, waits for the end. Not OK when something could not be measured.
absl::StatusOr<FloodResult> RunFlood(const FloodOptions& options);

// A few lines for people.
std::string ToText(const FloodResult& result);

}  // namespace cairn::testing
