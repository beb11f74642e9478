// PullMetrics: what pulls count. Handles, copied freely; default-constructed ones record nothing.
#pragma once

#include <array>
#include <cstdint>

#include "cache_node/pull/pull_types.h"
#include "common/metrics/metric_handles.h"
#include "common/metrics/metrics.h"

namespace cairn::node {

struct PullMetrics {
  PullMetrics() = default;
  explicit PullMetrics(Metrics* metrics);

  void Ended(PullOutcome outcome) const { blocks[static_cast<size_t>(outcome)].Increment(); }

  // By outcome: blocks that pulls of this node ended; those that several calls asked for count
  // once.
  std::array<Counter, kPullOutcomeEnd> blocks;
  Counter bytes;            // Payload that came and was verified.
  Counter dropped_bytes;    // Payload that came and was of no use.
  Counter shared;           // Blocks asked for while another call had them in hand.
  Counter source_failures;  // Transfers that the source broke off or refused.
  Histogram seconds;        // From a call's begin to the end of its pull.
};

}  // namespace cairn::node
