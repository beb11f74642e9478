// BlockStore: what the movers of the device ask and report, and pins on it.
#include <utility>

#include "cache_node/store/block_store.h"
#include "cache_node/store/device_load_operations.h"
#include "cache_node/store/lookup_operation.h"
#include "cache_node/store/run_steps.h"
#include "cache_node/store/store_state.h"
#include "cache_node/store/upload_operations.h"
#include "common/base/check.h"

namespace cairn::node {

std::vector<UploadTask> BlockStore::TakeUploads(size_t blocks_max, uint64_t bytes_max) {
  std::vector<UploadTask> tasks;
  Section section(this);
  size_t steps = kStepsPerLock;
  uint64_t bytes = 0;
  while (tasks.size() < blocks_max && bytes < bytes_max) {
    std::optional<UploadOperations::Taken> taken = UploadOperations::Take(&*state_, &steps);
    if (!taken.has_value()) break;
    BlockEntry* entry = taken->entry;
    bytes += entry->block_bytes();
    state_->Pin(entry);
    taken->task.pin = BlockPin(this, entry, state_->slots.Bytes(*entry));
    tasks.push_back(std::move(taken->task));
  }
  if (steps == 0) state_->uploads_queued = true;  // It stopped only to let others in.
  return tasks;
}

void BlockStore::FinishUploads(absl::Span<const uint64_t> ids, const absl::Status& status) {
  size_t next = 0;
  RunSteps([&](StoreState* state, absl::Time) {
    for (size_t i = 0; i < kStepsPerLock && next < ids.size(); ++i, ++next) {
      UploadOperations::Finish(state, ids[next], status);
    }
    return next == ids.size();
  });
  RunChores();
}

std::vector<DeviceLoadTask> BlockStore::TakeDeviceLoads(size_t blocks_max, uint64_t bytes_max) {
  std::vector<DeviceLoadTask> tasks;
  Section section(this);
  uint64_t bytes = 0;
  while (tasks.size() < blocks_max && bytes < bytes_max) {
    std::optional<DeviceLoadTask> task = DeviceLoadOperations::Take(&*state_);
    if (!task.has_value()) break;
    bytes += task->map->block_bytes();
    tasks.push_back(*std::move(task));
  }
  return tasks;
}

void BlockStore::FinishDeviceLoad(const DeviceLoadTask& task, const absl::Status& status) {
  {
    Section section(this);
    DeviceLoadOperations::Finish(&*state_, task, status);
  }
  RunChores();
}

void BlockStore::FailDevice() {
  DiskHandle next = 1;
  RunSteps([&next](StoreState* state, absl::Time) {
    DeviceState& device = state->device;
    if (!device.enabled()) return true;
    device.failed = true;
    device.wanted.clear();
    size_t steps = kStepsPerLock;
    for (; steps > 0 && device.load_queue.front() != nullptr; --steps) {
      state->LoadElsewhere(device.load_queue.front());
      state->settled = true;
    }
    for (; steps > 0 && next < device.index.handle_end(); --steps, ++next) {
      if (device.index.IsLive(next)) state->RemoveFromDevice(next, RemovalReason::kEvicted);
    }
    return device.load_queue.front() == nullptr && next >= device.index.handle_end();
  });
  RunChores();
}

BlockStore::DevicePinAnswer BlockStore::PinOnDevice(absl::string_view tenant,
                                                    const Fingerprint& fingerprint,
                                                    const BlockKey& key) {
  Section section(this);
  const StoreState& state = *state_;
  DevicePinAnswer answer;
  const NamespaceRecord* record = state.namespaces.FindLive(fingerprint);
  if (record == nullptr) {
    answer.state = BlockState::kNamespaceUnknown;
    return answer;
  }
  for (const absl::string_view owner : {tenant, absl::string_view(kPublicTenant)}) {
    const TenantIndex index = state.ledger.Find(owner);
    const PartitionIndex partition =
        index == 0 ? 0 : state.namespaces.FindPartition(*record, index);
    const DiskHandle handle =
        partition == 0 || !state.device.serves() ? 0 : state.device.Find(partition, key);
    if (handle == 0) continue;
    DeviceBlock* block = state.device.At(handle);
    state_->device.Pin(block);
    answer.pin = DevicePin(this, block);
    answer.state = BlockState::kDevice;
    return answer;
  }
  return answer;
}

void BlockStore::UnpinOnDevice(DeviceBlock* block) {
  Section section(this);
  state_->device.Unpin(block, &state_->ledger);
}

DevicePin::DevicePin(DevicePin&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)), block_(std::exchange(other.block_, nullptr)) {}

DevicePin& DevicePin::operator=(DevicePin&& other) noexcept {
  if (this == &other) return *this;
  if (block_ != nullptr) store_->UnpinOnDevice(block_);
  store_ = std::exchange(other.store_, nullptr);
  block_ = std::exchange(other.block_, nullptr);
  return *this;
}

DevicePin::~DevicePin() {
  if (block_ != nullptr) store_->UnpinOnDevice(block_);
}

const PayloadMap& DevicePin::map() const {
  CAIRN_CHECK(block_ != nullptr);
  return *block_->map;
}

const std::byte* DevicePin::address() const {
  CAIRN_CHECK(block_ != nullptr);
  return block_->address;
}

const std::byte* DevicePin::SegmentAddress(size_t segment) const {
  const PayloadMap::Part& part = map().parts()[map().PartOfSegment(segment)];
  return RecordHasPart(part, block_->digests) ? address() + map().SegmentOffset(segment) : nullptr;
}

absl::Span<const uint64_t> DevicePin::digests() const {
  CAIRN_CHECK(block_ != nullptr);
  return block_->digests;
}

}  // namespace cairn::node
