#include "cache_node/pull/pull_metrics.h"

#include <string>

namespace cairn::node {

PullMetrics::PullMetrics(Metrics* metrics)
    : bytes(metrics->AddCounter("cairn_pull_bytes_total",
                                "Payload bytes that came from peers and were verified.")),
      dropped_bytes(metrics->AddCounter("cairn_pull_dropped_bytes_total",
                                        "Payload bytes that came from peers and were not kept.")),
      shared(metrics->AddCounter("cairn_pull_shared_blocks_total",
                                 "Blocks asked for while another call had them in hand.")),
      source_failures(metrics->AddCounter("cairn_pull_source_failures_total",
                                          "Transfers that a peer broke off or refused.")),
      seconds(metrics->AddHistogram("cairn_pull_seconds",
                                    "Time from a call to the end of the pull that it began.",
                                    LatencyBucketsSeconds())) {
  for (size_t i = 1; i < kPullOutcomeEnd; ++i) {
    blocks[i] = metrics->AddCounter(
        "cairn_pull_blocks_total", "Blocks that pulls ended, by outcome.",
        {{"outcome", std::string(PullOutcomeName(static_cast<PullOutcome>(i)))}});
  }
}

}  // namespace cairn::node
