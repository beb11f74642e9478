#include "cache_node/service/device_metrics.h"

namespace cairn::node {

DeviceMetrics::DeviceMetrics(Metrics* metrics, const BlockStore* store,
                             const StoreCounters* counters, const DeviceTier* tier) {
  AddMoves(metrics, *counters);
  AddState(metrics, store);
  AddTier(metrics, tier);
}

void DeviceMetrics::AddMoves(Metrics* metrics, const StoreCounters& c) {
  const auto add = [&](absl::string_view name, absl::string_view help,
                       const StoreCounters::Counter& counter) {
    callbacks_.push_back(metrics->AddCallback(CallbackKind::kCounter, name, help, [&counter] {
      return static_cast<double>(counter.load(std::memory_order_relaxed));
    }));
  };
  add("cairn_device_hit_tokens_total",
      "Tokens that were present as a prefix and only on the device, or loaded from it for this "
      "use.",
      c.hit_tokens_device);
  add("cairn_device_uploaded_blocks_total", "Blocks that became readable on the device.",
      c.uploaded_blocks);
  add("cairn_device_uploaded_bytes_total", "Payload of them.", c.uploaded_bytes);
  add("cairn_device_uploads_too_large_total",
      "Blocks that are larger than a segment of the device, a sixteenth of it, and stay off it.",
      c.uploads_too_large);
  add("cairn_device_uploads_shed_total", "Blocks not copied there, for want of room in the queue.",
      c.uploads_shed);
  add("cairn_device_uploads_declined_total", "Blocks not worth the room of those that are there.",
      c.uploads_declined);
  add("cairn_device_uploads_failed_total", "Copies to the device that became no block there.",
      c.uploads_failed);
  add("cairn_device_demoted_blocks_total", "Blocks that left host memory and stayed on the device.",
      c.device_demoted_blocks);
  add("cairn_device_evicted_blocks_total", "Blocks that left the device for others.",
      c.device_evicted_blocks);
  add("cairn_device_loads_total", "Loads of a block from the device that began.", c.device_loads);
  add("cairn_device_loaded_blocks_total", "Blocks loaded from it into host memory.",
      c.device_loaded_blocks);
  add("cairn_device_loads_damaged_total", "Loads whose bytes were not those of the block.",
      c.device_loads_damaged);
  add("cairn_device_loads_failed_total", "Loads that failed, and no disk had the block.",
      c.device_loads_failed);
}

void DeviceMetrics::AddState(Metrics* metrics, const BlockStore* store) {
  const auto add = [&](absl::string_view name, absl::string_view help, auto StoreStatus::*field) {
    callbacks_.push_back(metrics->AddCallback(CallbackKind::kGauge, name, help, [store, field] {
      return static_cast<double>(store->Status().*field);
    }));
  };
  add("cairn_device_blocks", "Blocks that can be found on the device.",
      &StoreStatus::device_blocks);
  add("cairn_device_bytes", "Bytes of its pool.", &StoreStatus::device_bytes);
  add("cairn_device_used_bytes", "Bytes of its slots in use.", &StoreStatus::device_used_bytes);
  add("cairn_device_index_bytes", "Memory of what is known of its blocks.",
      &StoreStatus::device_index_bytes);
  add("cairn_device_wanted_blocks", "Blocks that wait to be copied there.",
      &StoreStatus::wanted_blocks);
  add("cairn_device_failed", "1 when the device is out until the process ends.",
      &StoreStatus::device_failed);
}

void DeviceMetrics::AddTier(Metrics* metrics, const DeviceTier* tier) {
  const auto add = [&](absl::string_view name, absl::string_view help,
                       uint64_t DeviceTier::Stats::*field) {
    callbacks_.push_back(metrics->AddCallback(CallbackKind::kCounter, name, help, [tier, field] {
      return static_cast<double>(tier->GetStats().*field);
    }));
  };
  add("cairn_device_copied_in_bytes_total", "Bytes copied to the device.",
      &DeviceTier::Stats::copied_in_bytes);
  add("cairn_device_copied_out_bytes_total", "Bytes copied back.",
      &DeviceTier::Stats::copied_out_bytes);
}

}  // namespace cairn::node
