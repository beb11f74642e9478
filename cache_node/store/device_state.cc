#include "cache_node/store/device_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/hex.h"

namespace cairn::node {
namespace {

// A block's own share of the maps here, with what a set that has just grown keeps free.
constexpr uint64_t kContainerBytes = 160;

constexpr uint64_t kUploadingShare = 16;

absl::Status Wrong(const DeviceBlock& block, absl::string_view what) {
  return absl::InternalError(
      absl::StrCat("block ", ToHex(block.key.view()), " on the device: ", what));
}

}  // namespace

DeviceState::DeviceState(const DeviceOptions& options_in, DeviceMemory* memory,
                         uint32_t feed_shards, uint64_t host_pool_bytes)
    : options(options_in),
      uploading_bytes_max(options_in.uploading_bytes_max != 0 ? options_in.uploading_bytes_max
                                                              : host_pool_bytes / kUploadingShare),
      index(feed_shards, options_in.index_bytes_max),
      memory_(memory) {
  if (!enabled()) return;
  for (uint32_t segment = 0; segment < memory_->segment_count(); ++segment) {
    CAIRN_CHECK(index.files().Add(segment + 1, /*bytes=*/0) == segment);
  }
}

DeviceState::~DeviceState() {
  for (const auto& [block, owned] : blocks_) {
    CAIRN_CHECK_MSG(block->pins == 0 || block->handle != 0,
                    "the store is destroyed under a copy of its device");
    memory_->Free(block->slot);
  }
}

bool DeviceState::SameTokens(DiskHandle handle, absl::Span<const uint32_t> tokens) const {
  const DeviceBlock& block = *At(handle);
  if (block.tokens == nullptr) return true;
  return tokens.size() == block.map->layout().block_tokens &&
         std::equal(tokens.begin(), tokens.end(), block.tokens.get());
}

uint64_t DeviceState::DetailsOf(const PayloadMap& map) {
  return sizeof(DeviceBlock) + kContainerBytes + map.segment_count() * sizeof(uint64_t) +
         map.layout().block_tokens * sizeof(uint32_t);
}

// Its details are counted already.
bool DeviceState::HasIndexRoom(const DeviceBlock& block, const DiskScope& scope) const {
  const size_t listed = index.files().At(block.slot.segment).slots.size();
  const uint64_t grown = block.slot.slot < listed ? 0 : block.slot.slot + 1 - listed;
  return bytes() + DiskScopes::BytesOf(scope) + grown * DiskFiles::kBytesPerSlot +
             DiskIndex::kBytesPerBlock + DiskIndex::kBytesPerExpiry +
             DiskIndex::kBytesPerWaitingParent <=
         options.index_bytes_max;
}

DeviceBlock* DeviceState::Take(const PayloadMap& map, TenantLedger* ledger, TenantIndex tenant) {
  const std::optional<SlotRef> slot =
      memory_->Allocate({.tenant = kOwner, .slot_bytes = map.block_bytes()});
  if (!slot.has_value()) return nullptr;
  auto made = std::make_unique<DeviceBlock>();
  DeviceBlock* block = made.get();
  block->tenant = tenant;
  block->map = &map;
  block->slot = *slot;
  block->address = memory_->Address(*slot);
  blocks_.emplace(block, std::move(made));
  details_bytes_ += DetailsOf(map);
  ledger->AddDevice(tenant, map.block_bytes());
  return block;
}

void DeviceState::Enter(DeviceBlock* block, const DiskBlock& described, const DiskScope& scope) {
  CAIRN_CHECK(block->handle == 0 && block->pins > 0);
  const DiskScopeIndex in = index.scopes().Of(block->partition, block->map->block_bytes(), scope);
  block->handle = index.Insert(in, block->slot.segment, block->slot.slot, described);
  CAIRN_CHECK(block->handle != 0);
  by_handle_.emplace(block->handle, block);
  Refresh(block);
  RefreshParentOf(*block, described.parent_shared ? std::nullopt : described.parent);
}

void DeviceState::Leave(DeviceBlock* block, TenantLedger* ledger) {
  const DiskNode& node = index.At(block->handle);
  std::optional<BlockKey> parent;
  if (node.has_parent && !node.parent_shared) parent = node.parent;
  CAIRN_CHECK(by_handle_.erase(block->handle) == 1);
  Pin(block);  // So that it is among those that may go no more.
  index.Remove(std::exchange(block->handle, 0));
  RefreshParentOf(*block, parent);
  Unpin(block, ledger);
}

void DeviceState::Pin(DeviceBlock* block) {
  ++block->pins;
  Refresh(block);
}

void DeviceState::Unpin(DeviceBlock* block, TenantLedger* ledger) {
  CAIRN_CHECK(block->pins > 0);
  --block->pins;
  if (block->handle != 0) {
    Refresh(block);
  } else {
    FreeIfUnheld(block, ledger);
  }
}

void DeviceState::FreeIfUnheld(DeviceBlock* block, TenantLedger* ledger) {
  if (block->pins > 0) return;
  CAIRN_CHECK(!block->may_go);
  details_bytes_ -= DetailsOf(*block->map);
  ledger->RemoveDevice(block->tenant, block->map->block_bytes());
  memory_->Free(block->slot);
  CAIRN_CHECK(blocks_.erase(block) == 1);
}

void DeviceState::Used(DeviceBlock* block, UseStamp stamp) {
  if (stamp <= block->stamp) return;
  const bool listed = block->may_go;
  if (listed) Pin(block);  // Its place is by its stamp.
  block->stamp = stamp;
  if (!listed) return;
  --block->pins;
  Refresh(block);
}

DeviceState::Place DeviceState::PlaceOf(const DeviceBlock& block) {
  return {block.priority, block.stamp, UINT32_MAX - block.depth, block.handle};
}

void DeviceState::Refresh(DeviceBlock* block) {
  const bool may_go =
      block->handle != 0 && block->pins == 0 && index.At(block->handle).children == 0;
  if (may_go == block->may_go) return;
  block->may_go = may_go;
  const uint64_t bytes = block->map->block_bytes();
  if (may_go) {
    may_go_[bytes].insert(PlaceOf(*block));
    return;
  }
  auto size = may_go_.find(bytes);
  CAIRN_CHECK(size != may_go_.end() && size->second.erase(PlaceOf(*block)) == 1);
  if (size->second.empty()) may_go_.erase(size);
}

void DeviceState::RefreshParentOf(const DeviceBlock& block, const std::optional<BlockKey>& parent) {
  if (!parent.has_value()) return;
  const DiskHandle handle = index.Find(block.partition, *parent);
  if (handle != 0) Refresh(At(handle));
}

DeviceBlock* DeviceState::Victim(uint64_t bytes, bool other_sizes) const {
  if (!other_sizes) {
    auto size = may_go_.find(bytes);
    return size == may_go_.end() ? nullptr : At(std::get<3>(*size->second.begin()));
  }
  const absl::btree_set<Place>* least = nullptr;
  for (const auto& [size, places] : may_go_) {
    if (size == bytes) continue;
    if (least == nullptr || *places.begin() < *least->begin()) least = &places;
  }
  return least == nullptr ? nullptr : At(std::get<3>(*least->begin()));
}

absl::Status DeviceState::Audit() const {
  if (!enabled()) return absl::OkStatus();
  if (absl::Status status = index.Audit(); !status.ok()) return status;
  uint64_t used_bytes = 0;
  uint64_t details_bytes = 0;
  size_t indexed = 0;
  size_t may_go = 0;
  for (const auto& [block, owned] : blocks_) {
    used_bytes += block->map->block_bytes();
    details_bytes += DetailsOf(*block->map);
    if (block->handle == 0) {
      if (block->pins == 0) return Wrong(*block, "nobody holds its slot, and it is not free");
      continue;
    }
    ++indexed;
    if (At(block->handle) != block || index.At(block->handle).key != block->key ||
        !(index.PlaceOf(block->handle) == DiskPlace{block->slot.segment + 1, block->slot.slot})) {
      return Wrong(*block, "the index has it elsewhere");
    }
    const bool free_to_go = block->pins == 0 && index.At(block->handle).children == 0;
    if (block->may_go != free_to_go) return Wrong(*block, "may go and must stay");
    if (!free_to_go) continue;
    ++may_go;
    auto size = may_go_.find(block->map->block_bytes());
    if (size == may_go_.end() || !size->second.contains(PlaceOf(*block))) {
      return Wrong(*block, "may go, and nobody knows");
    }
  }
  for (const auto& [size, places] : may_go_) may_go -= places.size();
  if (may_go != 0 || indexed != by_handle_.size() || indexed != index.size() ||
      used_bytes != memory_->used_bytes() || details_bytes != details_bytes_) {
    return absl::InternalError("blocks on the device are miscounted");
  }
  if (bytes() > options.index_bytes_max) {
    return absl::InternalError("what is known of blocks on the device is more than it may be");
  }
  return absl::OkStatus();
}

}  // namespace cairn::node
