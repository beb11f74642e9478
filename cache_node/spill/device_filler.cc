#include "cache_node/spill/device_filler.h"

#include <vector>

#include "cache_node/spill/device_transfers.h"

namespace cairn::node {
namespace {

// Copies only read it.
absl::Span<uint8_t> SourceOf(const BlockPin& pin) {
  return {const_cast<uint8_t*>(pin.bytes().data()), pin.bytes().size()};
}

}  // namespace

bool DeviceFiller::Step() {
  if (out_) return false;
  if (tier_->GetStats().failed) {
    out_ = true;
    store_->FailDevice();
    return false;
  }
  const std::vector<UploadTask> tasks = store_->TakeUploads(kBlocksPerStep, kBytesPerStep);
  if (tasks.empty()) return false;
  std::vector<DeviceTransfer> transfers;
  std::vector<uint64_t> ids;
  for (const UploadTask& task : tasks) {
    AddTransfers(*task.map, task.digests, task.address, SourceOf(task.pin), &transfers);
    ids.push_back(task.id);
  }
  store_->FinishUploads(ids, tier_->CopyIn(transfers));
  return true;
}

}  // namespace cairn::node
