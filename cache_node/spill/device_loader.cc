#include "cache_node/spill/device_loader.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cache_node/spill/device_transfers.h"
#include "cache_node/store/disk_task.h"
#include "common/base/hex.h"
#include "common/identity/segment_digest.h"

namespace cairn::node {
namespace {

absl::Status Verify(const DeviceLoadTask& task) {
  for (const PayloadMap::Part& part : task.map->parts()) {
    if (!RecordHasPart(part, task.digests)) continue;
    for (size_t i = part.first_segment; i < part.first_segment + part.layers; ++i) {
      const absl::Span<const uint8_t> bytes =
          task.destination.subspan(task.map->SegmentOffset(i), task.map->SegmentBytesAt(i));
      if (SegmentDigest(task.key, task.map->SegmentAt(i), bytes) == task.digests[i]) continue;
      return absl::DataLossError(absl::StrCat("block ", ToHex(task.key.view()), " on the device: ",
                                              "segment ", i, " has another digest"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool DeviceLoader::Step() {
  const std::vector<DeviceLoadTask> tasks = store_->TakeDeviceLoads(kBlocksPerStep, kBytesPerStep);
  if (tasks.empty()) return false;
  std::vector<DeviceTransfer> transfers;
  for (const DeviceLoadTask& task : tasks) {
    AddTransfers(*task.map, task.digests, task.address, task.destination, &transfers);
  }
  const absl::Status copied = tier_->CopyOut(transfers);
  for (const DeviceLoadTask& task : tasks) {
    store_->FinishDeviceLoad(task, copied.ok() ? Verify(task) : copied);
  }
  return true;
}

}  // namespace cairn::node
