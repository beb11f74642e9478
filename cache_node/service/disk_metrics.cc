#include "cache_node/service/disk_metrics.h"

namespace cairn::node {
namespace {

using Health = DiskTier::Health;

CallbackMetric AddRising(Metrics* metrics, absl::string_view name, absl::string_view help,
                         const StoreCounters::Counter& counter) {
  return metrics->AddCallback(CallbackKind::kCounter, name, help, [&counter] {
    return static_cast<double>(counter.load(std::memory_order_relaxed));
  });
}

}  // namespace

DiskMetrics::DiskMetrics(Metrics* metrics, const BlockStore* store, const StoreCounters* counters,
                         const DiskTier* tier)
    : load_seconds_(metrics->AddHistogram("cairn_disk_load_seconds",
                                          "Time to read one block from disk and verify it.",
                                          LatencyBucketsSeconds())) {
  AddSpills(metrics, *counters);
  AddLoads(metrics, *counters);
  AddRecovery(metrics, *counters);
  AddState(metrics, store);
  AddTier(metrics, tier);
}

void DiskMetrics::AddSpills(Metrics* metrics, const StoreCounters& c) {
  const auto add = [&](absl::string_view name, absl::string_view help,
                       const StoreCounters::Counter& counter) {
    callbacks_.push_back(AddRising(metrics, name, help, counter));
  };
  add("cairn_disk_spilled_blocks_total", "Blocks that became readable on disk.", c.spilled_blocks);
  add("cairn_disk_spilled_bytes_total", "Payload of them.", c.spilled_bytes);
  add("cairn_disk_spills_shed_total", "Blocks not queued for writing, for want of room.",
      c.spills_shed);
  add("cairn_disk_spills_late_total", "Blocks evicted before their turn to be written.",
      c.spills_late);
  add("cairn_disk_spills_too_large_total", "Committed blocks beyond --spill-block-bytes.",
      c.spills_too_large);
  add("cairn_disk_spills_over_quota_total", "Blocks not written as their tenants' disk is used up.",
      c.spills_over_quota);
  add("cairn_disk_spills_failed_total", "Blocks taken for writing that were not written.",
      c.spills_failed);
  add("cairn_disk_reinserted_blocks_total", "Blocks written again because their file left.",
      c.reinserted_blocks);
  add("cairn_disk_reinserted_bytes_total", "Payload of them.", c.reinserted_bytes);
  add("cairn_disk_reclaimed_files_total", "Files that made room.", c.reclaimed_files);
  add("cairn_disk_reclaimed_blocks_total", "Blocks that left the disk with their file.",
      c.reclaimed_blocks);
}

void DiskMetrics::AddLoads(Metrics* metrics, const StoreCounters& c) {
  const auto add = [&](absl::string_view name, absl::string_view help,
                       const StoreCounters::Counter& counter) {
    callbacks_.push_back(AddRising(metrics, name, help, counter));
  };
  add("cairn_disk_hit_tokens_total",
      "Tokens that were present as a prefix and on disk, or loaded from it for this use.",
      c.hit_tokens_disk);
  add("cairn_disk_demoted_blocks_total", "Blocks that left host memory and stayed on disk.",
      c.demoted_blocks);
  add("cairn_disk_loads_total", "Loads of a block that began.", c.loads);
  add("cairn_disk_loaded_blocks_total", "Blocks loaded into host memory.", c.loaded_blocks);
  add("cairn_disk_loads_damaged_total", "Loads whose bytes were not those of the block.",
      c.loads_damaged);
  add("cairn_disk_loads_failed_total", "Loads that failed for another reason.", c.loads_failed);
  add("cairn_disk_loads_refused_total", "Loads that did not begin, for want of room.",
      c.loads_refused);
}

void DiskMetrics::AddRecovery(Metrics* metrics, const StoreCounters& c) {
  callbacks_.push_back(AddRising(metrics, "cairn_disk_recovered_blocks_total",
                                 "Blocks found again after the start.", c.recovered_blocks));
  callbacks_.push_back(AddRising(metrics, "cairn_disk_recovery_ignored_total",
                                 "Records found at the start that are not to be used.",
                                 c.recovery_ignored));
}

void DiskMetrics::AddState(Metrics* metrics, const BlockStore* store) {
  const auto add = [&](absl::string_view name, absl::string_view help, auto StoreStatus::*field) {
    callbacks_.push_back(metrics->AddCallback(CallbackKind::kGauge, name, help, [store, field] {
      return static_cast<double>(store->Status().*field);
    }));
  };
  add("cairn_disk_recovering", "1 while blocks are still being found again after the start.",
      &StoreStatus::recovering);
  add("cairn_disk_blocks", "Blocks that can be found on disk.", &StoreStatus::disk_blocks);
  add("cairn_disk_payload_bytes", "Payload of them.", &StoreStatus::disk_payload_bytes);
  add("cairn_disk_index_bytes", "Memory of the index of blocks on disk.",
      &StoreStatus::disk_index_bytes);
  add("cairn_disk_spill_queue_blocks", "Blocks that wait to be written.",
      &StoreStatus::spill_queue_blocks);
  add("cairn_disk_spill_queue_bytes", "Payload of them.", &StoreStatus::spill_queue_bytes);
  add("cairn_disk_missed_spill_blocks", "Blocks whose write failed and is to be tried again.",
      &StoreStatus::missed_spill_blocks);
  add("cairn_disk_load_queue_blocks", "Blocks that are being loaded, or wait for it.",
      &StoreStatus::loads);
}

void DiskMetrics::AddTier(Metrics* metrics, const DiskTier* tier) {
  const auto add = [&](CallbackKind kind, absl::string_view name, absl::string_view help,
                       auto DiskTier::Stats::*field) {
    callbacks_.push_back(metrics->AddCallback(
        kind, name, help, [tier, field] { return static_cast<double>(tier->GetStats().*field); }));
  };
  using Stats = DiskTier::Stats;
  add(CallbackKind::kGauge, "cairn_disk_bytes", "Bytes that the disk tier takes on disk.",
      &Stats::bytes_used);
  add(CallbackKind::kGauge, "cairn_disk_bytes_max", "Bytes that it may take.", &Stats::bytes_max);
  add(CallbackKind::kGauge, "cairn_disk_files", "Files of blocks.", &Stats::files);
  add(CallbackKind::kCounter, "cairn_disk_written_bytes_total", "Bytes written to disk.",
      &Stats::written_bytes);
  add(CallbackKind::kCounter, "cairn_disk_read_bytes_total", "Bytes read from disk.",
      &Stats::read_bytes);
  add(CallbackKind::kCounter, "cairn_disk_read_errors_total", "Reads that the device failed.",
      &Stats::read_errors);
  add(CallbackKind::kCounter, "cairn_disk_write_errors_total", "Writes that the device failed.",
      &Stats::write_errors);
  add(CallbackKind::kCounter, "cairn_disk_damaged_records_total",
      "Records that were not what was written.", &Stats::damaged_records);
  add(CallbackKind::kCounter, "cairn_disk_damaged_files_total",
      "Files that were not what was written.", &Stats::damaged_files);
  callbacks_.push_back(metrics->AddCallbackSeries(
      CallbackKind::kGauge, "cairn_disk_health",
      "1 for the state of the disk tier: serving, full (takes no writes) or failing (taken out).",
      "state", 3, [tier] {
        const Health health = tier->GetStats().health;
        return std::vector<CallbackSample>{{"serving", health == Health::kServing ? 1.0 : 0.0},
                                           {"full", health == Health::kFull ? 1.0 : 0.0},
                                           {"failing", health == Health::kFailing ? 1.0 : 0.0}};
      }));
}

}  // namespace cairn::node
