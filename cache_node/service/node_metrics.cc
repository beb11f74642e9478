#include "cache_node/service/node_metrics.h"

#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace cairn::node {

NodeMetrics::NodeMetrics(Metrics* metrics, const BlockStore* store, const StoreCounters* counters,
                         const InFlightBytes* in_flight, const TenantRates* rates) {
  AddCounters(metrics, counters);
  AddRefusals(metrics, counters, rates);
  AddState(metrics, store);
  AddAdmission(metrics, in_flight);
  AddHitRates(metrics, store);
}

void NodeMetrics::AddCounters(Metrics* metrics, const StoreCounters* counters) {
  const auto add = [&](absl::string_view name, absl::string_view help,
                       const StoreCounters::Counter& counter) {
    callbacks_.push_back(metrics->AddCallback(CallbackKind::kCounter, name, help, [&counter] {
      return static_cast<double>(counter.load(std::memory_order_relaxed));
    }));
  };
  const StoreCounters& c = *counters;
  add("cairn_node_lookups_total", "Lookups answered.", c.lookups);
  add("cairn_node_looked_up_tokens_total", "Tokens of full blocks that were looked up.",
      c.looked_up_tokens);
  add("cairn_node_hit_tokens_total", "Tokens of them that were present as a prefix.", c.hit_tokens);
  add("cairn_node_evicted_blocks_total", "Blocks that made room.", c.evicted_blocks);
  add("cairn_node_shrunk_blocks_total", "Of these: their tenants' quotas were lowered.",
      c.shrunk_blocks);
  add("cairn_node_pins_ended_total", "Blocks no longer pinned by wish, as quotas were lowered.",
      c.stays_ended);
  add("cairn_node_committed_blocks_total", "Blocks that became present.", c.committed_blocks);
  add("cairn_node_reserved_blocks_total", "Blocks reserved.", c.reserved_blocks);
  add("cairn_node_refused_no_space_total", "Blocks refused for want of space.", c.refused_no_space);
  add("cairn_node_declined_newcomers_total",
      "Blocks that the eviction policy did not let in: no error.", c.declined_newcomers);
  add("cairn_node_expired_blocks_total", "Blocks removed at the time that their writers said.",
      c.expired_blocks);
  add("cairn_node_refused_quota_total", "Blocks refused by a budget.", c.refused_quota);
  add("cairn_node_token_collisions_total", "Lookups with other tokens under a stored key.",
      c.token_collisions);
  add("cairn_node_key_mismatches_total", "Reserves whose key the node computes otherwise.",
      c.key_mismatches);
  add("cairn_node_digest_mismatches_total", "Written segments without their writer's digest.",
      c.digest_mismatches);
  add("cairn_node_reported_mismatches_total", "Segments that readers reported.",
      c.reported_mismatches);
  add("cairn_node_quarantined_blocks_total", "Blocks whose own copy was bad.",
      c.quarantined_blocks);
  add("cairn_node_expired_tokens_total", "Write tokens that expired.", c.expired_tokens);
  add("cairn_node_expired_shares_total", "Shares of leases that expired.", c.expired_shares);
  add("cairn_node_watchers_cut_total", "Watchers that fell too far behind.", c.watchers_cut);
  add("cairn_node_feed_shards_given_up_total",
      "Times that a shard was sent anew to a watcher that fell behind.", c.feed_shards_given_up);
  add("cairn_node_segment_remakes_total", "Memory segments that changed their class.",
      c.segment_remakes);
}

// What each tenant and the node may take, and how often more was asked for.
void NodeMetrics::AddRefusals(Metrics* metrics, const StoreCounters* counters,
                              const TenantRates* rates) {
  const auto add = [&](absl::string_view reason, std::function<uint64_t()> count) {
    callbacks_.push_back(
        metrics->AddCallback(CallbackKind::kCounter, "cairn_node_refusals_total",
                             "Requests, blocks or leases of blocks refused by a limit, by which.",
                             [count = std::move(count)] { return static_cast<double>(count()); },
                             {{"reason", std::string(reason)}}));
  };
  const auto of = [](const StoreCounters::Counter& counter) {
    return [&counter] { return counter.load(std::memory_order_relaxed); };
  };
  add("request_rate", [rates] { return rates->refused().over_requests; });
  add("byte_rate", [rates] { return rates->refused().over_bytes; });
  add("host_bytes", of(counters->refused_quota_host));
  add("reserved_bytes", of(counters->refused_quota_reserved));
  add("leased_bytes", of(counters->refused_leased));
  add("pinned_bytes", of(counters->stays_refused));
  add("disk_bytes", of(counters->spills_over_quota));
  add("tokens", of(counters->refused_tokens));
  add("no_space", of(counters->refused_no_space));
}

void NodeMetrics::AddState(Metrics* metrics, const BlockStore* store) {
  const auto add = [&](absl::string_view name, absl::string_view help, auto StoreStatus::*field) {
    callbacks_.push_back(metrics->AddCallback(CallbackKind::kGauge, name, help, [store, field] {
      return static_cast<double>(store->Status().*field);
    }));
  };
  add("cairn_node_host_bytes", "Bytes of the host pool.", &StoreStatus::host_bytes);
  add("cairn_node_host_used_bytes", "Bytes of slots in use.", &StoreStatus::host_used_bytes);
  add("cairn_node_pinned_bytes", "Bytes of slots that are pinned.", &StoreStatus::pinned_bytes);
  add("cairn_node_reserved_bytes", "Bytes of slots that are reserved.",
      &StoreStatus::reserved_bytes);
  add("cairn_node_pin_budget_used_bytes", "Bytes of blocks that are pinned by wish.",
      &StoreStatus::stays_bytes);
  add("cairn_node_index_bytes", "Bytes of the index.", &StoreStatus::index_bytes);
  add("cairn_node_blocks", "Blocks present.", &StoreStatus::blocks);
  add("cairn_node_pins", "Pins of readers and writers.", &StoreStatus::pins);
  add("cairn_node_leases", "Open leases.", &StoreStatus::leases);
  add("cairn_node_tokens", "Open write tokens.", &StoreStatus::tokens);
  add("cairn_node_watchers", "Watchers of the feed.", &StoreStatus::watchers);
}

void NodeMetrics::AddHitRates(Metrics* metrics, const BlockStore* store) {
  const std::vector<HitRateAtCapacity> rates = store->HitRates();
  for (size_t i = 0; i < rates.size(); ++i) {
    callbacks_.push_back(metrics->AddCallback(
        CallbackKind::kGauge, "cairn_hit_rate_at_capacity",
        "Share of the blocks asked for lately that an LRU so many times as large as the tier would "
        "hold; from a sample.",
        [store, i] { return store->HitRates()[i].hit_rate; },
        {{"tier", std::string(rates[i].tier)}, {"factor", absl::StrCat(rates[i].factor)}}));
  }
}

void NodeMetrics::AddAdmission(Metrics* metrics, const InFlightBytes* in_flight) {
  const auto add = [&](CallbackKind kind, absl::string_view name, absl::string_view help,
                       auto InFlightBytes::Counts::*field) {
    callbacks_.push_back(metrics->AddCallback(kind, name, help, [in_flight, field] {
      return static_cast<double>(in_flight->counts().*field);
    }));
  };
  using Counts = InFlightBytes::Counts;
  add(CallbackKind::kGauge, "cairn_node_in_flight_bytes", "Payload bytes admitted, not landed.",
      &Counts::bytes);
  add(CallbackKind::kGauge, "cairn_node_writers_waiting", "Writers that wait for admission.",
      &Counts::waiting);
  add(CallbackKind::kCounter, "cairn_node_writers_refused_queue_full_total",
      "Writers refused because the queue was full.", &Counts::refused_queue_full);
  add(CallbackKind::kCounter, "cairn_node_writers_refused_after_wait_total",
      "Writers refused after the longest wait.", &Counts::refused_after_wait);
  add(CallbackKind::kCounter, "cairn_node_writers_stalled_total",
      "Writers cut because they were admitted and sent nothing.", &Counts::stalled);
}

}  // namespace cairn::node
