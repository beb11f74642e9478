#include "router/replication/replication_metrics.h"

namespace cairn::router {

ReplicationMetrics::ReplicationMetrics(Metrics* metrics, const Replicator* replicator) {
  using Counters = HotPrefixes::Counters;
  const auto add = [&](absl::string_view name, absl::string_view help,
                       uint64_t (*value)(const Counters&)) {
    callbacks_.push_back(metrics->AddCallback(
        CallbackKind::kCounter, name, help,
        [replicator, value] { return static_cast<double>(value(replicator->counters())); }));
  };
  add("cairn_router_saturated_prompts_total",
      "Prompts all of whose prefix's holders were busier than a copy would cost.",
      [](const Counters& c) { return c.saturated_prompts; });
  add("cairn_router_copies_total", "Copies of hot prefixes that nodes were asked to make.",
      [](const Counters& c) { return c.orders; });
  add("cairn_router_copies_failed_total", "Copies that brought nothing.",
      [](const Counters& c) { return c.failed; });
  add("cairn_router_copies_over_budget_total",
      "Hot prefixes that were not copied for want of budget.",
      [](const Counters& c) { return c.over_budget; });
  add("cairn_router_copied_blocks_total", "Blocks that copies brought.",
      [](const Counters& c) { return c.blocks_copied; });
  add("cairn_router_copied_bytes_total", "Payload bytes that copies moved.",
      [](const Counters& c) { return c.bytes_copied; });
  add("cairn_router_copies_cooled_total", "Prefixes that were copied and that nobody asks for.",
      [](const Counters& c) { return c.cooled; });
  callbacks_.push_back(metrics->AddCallback(
      CallbackKind::kGauge, "cairn_router_copies_outstanding_bytes",
      "Payload bytes of copies under way, as booked.",
      [replicator] { return static_cast<double>(replicator->outstanding_bytes()); }));
}

}  // namespace cairn::router
