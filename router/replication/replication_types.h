// What replication is told, decides, and hears of it. Values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/bytes16.h"
#include "common/identity/fingerprint.h"
#include "router/core/router_types.h"

namespace cairn::router {

struct ReplicationOptions {
  // Of all copies together; 0: none are made. Half of what a node pulls by default, so that copies
  // made ahead never take all of it.
  uint64_t bytes_per_second = uint64_t{64} << 20;
  // Of copies that are under way: this many seconds' worth.
  double outstanding_seconds = 4;
  // As fast as a node brings a copy in: what a copy costs.
  double pull_bytes_per_second = 128.0 * (1 << 20);
  // Until a pull of the namespace says how many they are.
  double bytes_per_token = 128.0 * 1024;
  // Shorter prefixes are as soon computed.
  uint64_t prefix_tokens_min = 1024;
  // A holder that is waited for less is not worth a copy, however cheap.
  absl::Duration wait_min = absl::Milliseconds(100);
  // What counts is what came within about so long: of so many prompts at least, at least this
  // share found all holders saturated.
  absl::Duration window = absl::Seconds(2);
  double prompts_min = 8;
  double saturated_share = 0.5;
};

// A prompt that was just routed. Borrowed.
struct RoutedPrompt {
  absl::string_view tenant;
  Fingerprint fingerprint;
  absl::Span<const BlockKey> keys;
  size_t public_blocks = 0;  // Leading ones, which are the tenant `public`'s.
  uint32_t block_tokens = 0;
  absl::Span<const RankedReplica> replicas;
};

// Blocks that one node is to copy from another.
struct CopyOrder {
  uint64_t id = 0;
  std::string tenant;
  Fingerprint fingerprint;
  uint32_t block_tokens = 0;
  std::vector<BlockKey> keys;  // From the prompt's start.
  size_t public_blocks = 0;    // Leading ones, which are the tenant `public`'s.
  std::string source_node_id;
  std::string node_id;
  std::vector<std::string> node_addresses;
  uint64_t bytes = 0;  // As booked against the budget.
};

struct CopyResult {
  // How the calls ended; OK also where the node did not copy all.
  absl::Status status;
  uint64_t blocks_pulled = 0;
  uint64_t blocks_present = 0;
  uint64_t bytes_pulled = 0;
};

}  // namespace cairn::router
