#include "cache_node/local/local_metrics.h"

#include <functional>
#include <utility>

#include "absl/strings/string_view.h"

namespace cairn::node {

LocalMetrics::LocalMetrics(Metrics* metrics, const BlockStore* store, const LocalCounters* counters,
                           const StagingBudget* staging) {
  const auto add = [&](CallbackKind kind, absl::string_view name, absl::string_view help,
                       const LocalCounters::Counter& counter, const MetricLabels& labels = {}) {
    callbacks_.push_back(metrics->AddCallback(
        kind, name, help,
        [&counter] { return static_cast<double>(counter.load(std::memory_order_relaxed)); },
        labels));
  };
  const auto loans = [&](absl::string_view name, absl::string_view help,
                         uint64_t SegmentLoans::Counts::*field) {
    callbacks_.push_back(metrics->AddCallback(CallbackKind::kGauge, name, help, [store, field] {
      return static_cast<double>(store->Loans().*field);
    }));
  };
  const LocalCounters& c = *counters;
  add(CallbackKind::kGauge, "cairn_local_connections", "Connections on the local socket.",
      c.connections);
  add(CallbackKind::kCounter, "cairn_local_connections_total", "Connections that were let in.",
      c.connected);
  add(CallbackKind::kCounter, "cairn_local_refused_tickets_total",
      "Connections whose ticket was unknown, used or too old.", c.refused_tickets);
  add(CallbackKind::kCounter, "cairn_local_accepts_failed_total",
      "Times that connections had to wait because the process had no descriptors left.",
      c.accepts_failed);
  constexpr absl::string_view kCuts = "cairn_local_cuts_total";
  constexpr absl::string_view kCutsHelp = "Connections that the node ended, by why.";
  add(CallbackKind::kCounter, kCuts, kCutsHelp, c.cut_bad_packet, {{"reason", "bad_packet"}});
  add(CallbackKind::kCounter, kCuts, kCutsHelp, c.cut_not_reading, {{"reason", "not_reading"}});
  add(CallbackKind::kCounter, kCuts, kCutsHelp, c.cut_not_returning, {{"reason", "not_returning"}});
  add(CallbackKind::kCounter, kCuts, kCutsHelp, c.cut_silent, {{"reason", "silent"}});
  add(CallbackKind::kCounter, "cairn_local_reads_total", "Requests for places of blocks.", c.reads);
  add(CallbackKind::kCounter, "cairn_local_blocks_read_total", "Blocks whose place was answered.",
      c.places);
  add(CallbackKind::kCounter, "cairn_local_segments_given_total",
      "Memory segments whose descriptors were passed.", c.segments_given);
  add(CallbackKind::kGauge, "cairn_local_shares", "Shares of leases that are read in place.",
      c.shares);
  add(CallbackKind::kCounter, "cairn_local_puts_total", "Requests to take in staged segments.",
      c.puts);
  add(CallbackKind::kCounter, "cairn_local_landed_bytes_total",
      "Payload bytes that were taken in from staging memory.", c.landed_bytes);
  callbacks_.push_back(metrics->AddCallback(
      CallbackKind::kGauge, "cairn_local_staging_bytes", "Staging memory of all connections.",
      [staging] { return static_cast<double>(staging->bytes()); }));
  using Counts = SegmentLoans::Counts;
  loans("cairn_local_lent_segments", "Memory segments that clients may have mapped.",
        &Counts::lent_segments);
  loans("cairn_local_recalled_bytes", "Bytes of the pool that clients were asked to unmap.",
        &Counts::recalled_bytes);
  loans("cairn_local_unreturned_bytes",
        "Bytes of the pool that clients which are gone did not say they unmapped.",
        &Counts::unreturned_bytes);
}

}  // namespace cairn::node
