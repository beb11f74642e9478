#include "cache_node/store/upload_operations.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/check.h"

namespace cairn::node {
namespace {

bool IsWanted(const BlockEntry* entry) {
  return entry != nullptr && entry->life == BlockEntry::Life::kPresent && entry->device == 0 &&
         !entry->uploading && !entry->orphan;
}

// The parent of which the block counts as a child on the device: one in its own partition.
BlockEntry* OwnParentOf(const BlockEntry& entry) {
  if (entry.family == nullptr || entry.family->id.partition != entry.partition) return nullptr;
  return entry.family->parent;
}

// Whether what comes before the block in its prompt is on the device, or on its way there.
bool MayFollow(const StoreState& state, const BlockEntry& entry) {
  if (entry.family == nullptr || entry.family->id.partition != entry.partition) return true;
  const BlockEntry* parent = entry.family->parent;
  if (parent != nullptr && parent->uploading) return true;
  return state.device.Find(entry.partition, entry.family->id.key) != 0;
}

// Puts the block back, and behind it those before it that lack a copy, the first of them last, so
// that it is taken first. A long prompt is walked in several turns.
void QueueWithAncestors(StoreState* state, BlockEntry* entry, size_t* steps) {
  std::vector<BlockEntry*> path = {entry};
  while (*steps > 0) {
    BlockEntry* parent = OwnParentOf(*path.back());
    if (!IsWanted(parent)) break;
    path.push_back(parent);
    --*steps;
  }
  for (BlockEntry* block : path) {
    const bool cut = block == path.back() && *steps == 0;
    state->device.wanted.push_back({.block = {block->partition, block->key}, .walked = !cut});
    block->wanted_on_device = true;
  }
  state->BoundWanted();
}

DeviceState::Worth WorthOf(const BlockEntry& entry) {
  const bool kept = entry.retention.priority_until_unix_ms == 0;
  return {.priority = kept ? entry.retention.priority : kPriorityDefault, .stamp = entry.stamp};
}

// A free slot, for a block that the index has room for beside those on their way; or null.
DeviceBlock* TakeKnown(StoreState* state, const BlockEntry& entry, const DiskScope& scope) {
  constexpr uint64_t kBytesPerUpload = DiskIndex::kBytesPerBlock + DiskIndex::kBytesPerExpiry +
                                       DiskIndex::kBytesPerWaitingParent + DiskFiles::kBytesPerSlot;
  DeviceState& device = state->device;
  DeviceBlock* block = device.Take(*entry.map, &state->ledger, entry.space->slot_class.tenant);
  if (block == nullptr) return nullptr;
  const uint64_t coming_bytes = (device.uploads.size() + 1) * kBytesPerUpload;
  if (device.HasIndexRoom(*block, scope) &&
      device.bytes() + DiskScopes::BytesOf(scope) + coming_bytes <=
          device.options.index_bytes_max) {
    return block;
  }
  device.Pin(block);
  device.Unpin(block, &state->ledger);  // Its slot is free again.
  return nullptr;
}

// A slot, for which others of less worth leave; null when there is none.
DeviceBlock* MakeRoom(StoreState* state, const BlockEntry& entry, size_t* steps) {
  DeviceState& device = state->device;
  const DiskScope scope = state->DiskScopeOf(entry);
  for (;;) {
    DeviceBlock* block = TakeKnown(state, entry, scope);
    if (block != nullptr || !entry.used || *steps == 0) return block;
    // Of its own size first: one of these is enough. Others leave until a segment is empty.
    DeviceBlock* victim = device.Victim(entry.block_bytes(), /*other_sizes=*/false);
    if (victim == nullptr) victim = device.Victim(entry.block_bytes(), /*other_sizes=*/true);
    if (victim == nullptr || !(DeviceState::WorthOf(*victim) < WorthOf(entry))) return nullptr;
    --*steps;
    state->counters->device_evicted_blocks.fetch_add(1, std::memory_order_relaxed);
    state->RemoveFromDevice(victim->handle, RemovalReason::kEvicted);
  }
}

void Describe(const BlockEntry& entry, DeviceBlock* block) {
  const PayloadMap& map = *entry.map;
  block->key = entry.key;
  block->partition = entry.partition;
  block->depth = entry.depth;
  block->priority = WorthOf(entry).priority;
  block->provenance = entry.provenance;
  block->stamp = entry.stamp;
  if (entry.HasTokens()) {
    const uint32_t count = map.layout().block_tokens;
    block->tokens = std::make_unique<uint32_t[]>(count);
    std::copy(entry.tokens.get(), entry.tokens.get() + count, block->tokens.get());
  }
  block->digests.resize(map.segment_count());
  for (const PayloadMap::Part& part : map.parts()) {
    if (!entry.SegmentPresent(part.first_segment)) continue;
    for (size_t i = part.first_segment; i < part.first_segment + part.layers; ++i) {
      block->digests[i] = entry.digests[i];
    }
  }
}

UploadOperations::Taken Begin(StoreState* state, BlockEntry* entry, DeviceBlock* block) {
  DeviceState& device = state->device;
  Describe(*entry, block);
  device.Pin(block);
  DeviceState::Upload upload{.entry = entry, .block = block};
  if (entry->family != nullptr && entry->family->id.partition == entry->partition) {
    // What is before it must not make room for others meanwhile.
    const DiskHandle parent = device.Find(entry->partition, entry->family->id.key);
    if (parent != 0) upload.parent = device.At(parent);
    if (parent != 0) device.Pin(upload.parent);
  }
  entry->uploading = true;
  device.uploading_bytes += entry->block_bytes();
  UploadOperations::Taken taken;
  taken.entry = entry;
  taken.task.id = ++device.last_task;
  taken.task.map = entry->map;
  taken.task.digests = block->digests;
  taken.task.address = block->address;
  device.uploads.emplace(taken.task.id, upload);
  return taken;
}

}  // namespace

std::optional<UploadOperations::Taken> UploadOperations::Take(StoreState* state, size_t* steps) {
  DeviceState& device = state->device;
  for (; device.serves() && *steps > 0 && !device.wanted.empty(); --*steps) {
    const DeviceState::Wanted wanted = device.wanted.back();
    BlockEntry* entry = state->index.Find(wanted.block.partition, wanted.block.key);
    if (!IsWanted(entry)) {
      device.wanted.pop_back();
      if (entry != nullptr) entry->wanted_on_device = false;
      continue;
    }
    if (device.uploading_bytes > 0 &&
        device.uploading_bytes + entry->block_bytes() > device.uploading_bytes_max) {
      return std::nullopt;
    }
    device.wanted.pop_back();
    entry->wanted_on_device = false;
    if (!MayFollow(*state, *entry)) {
      if (!wanted.walked) QueueWithAncestors(state, entry, steps);
      if (*steps == 0) break;
      continue;
    }
    // What comes before it stays while room is made.
    BlockEntry* parent = OwnParentOf(*entry);
    DeviceBlock* held =
        parent == nullptr || parent->device == 0 ? nullptr : device.At(parent->device);
    if (held != nullptr) device.Pin(held);
    DeviceBlock* block = MakeRoom(state, *entry, steps);
    if (held != nullptr) device.Unpin(held, &state->ledger);
    if (block != nullptr) return Begin(state, entry, block);
    if (*steps == 0) {  // Others have left, and more are to leave: go on at the next call.
      device.wanted.push_back(wanted);
      entry->wanted_on_device = true;
      break;
    }
    state->counters->uploads_declined.fetch_add(1, std::memory_order_relaxed);
  }
  return std::nullopt;
}

void UploadOperations::Finish(StoreState* state, uint64_t id, const absl::Status& status) {
  DeviceState& device = state->device;
  auto found = device.uploads.find(id);
  CAIRN_CHECK_MSG(found != device.uploads.end(), "a copy to the device ends that was not taken");
  const DeviceState::Upload upload = found->second;
  device.uploads.erase(found);
  BlockEntry* entry = upload.entry;
  entry->uploading = false;
  device.uploading_bytes -= entry->block_bytes();
  const bool wanted = status.ok() && device.serves() && IsWanted(entry) && entry->Readable() &&
                      MayFollow(*state, *entry) && device.Find(entry->partition, entry->key) == 0 &&
                      device.HasIndexRoom(*upload.block, state->DiskScopeOf(*entry));
  if (wanted) {
    state->AddOnDevice(upload.block, entry);
  } else {
    state->counters->uploads_failed.fetch_add(1, std::memory_order_relaxed);
  }
  device.Unpin(upload.block, &state->ledger);
  if (upload.parent != nullptr) device.Unpin(upload.parent, &state->ledger);
  state->uploads_queued = true;  // What waited for room among those under way.
}

}  // namespace cairn::node
