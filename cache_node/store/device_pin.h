// DevicePin: a block's bytes on the device, held for work there. While it lives the slot is neither
// freed nor reused, whatever happens to the block.
//
// Work is given to a stream between SlotGuards::BeforeRead and AfterRead of the device tier, on the
// block's range; after that the pin may go, though the work is not done. Move-only; may be
// destroyed on any thread, at which moment it takes the store's lock for an instant. Must not
// outlive the store.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "common/identity/payload_map.h"

namespace cairn::node {

class BlockStore;
struct DeviceBlock;

class DevicePin {
 public:
  DevicePin() = default;
  DevicePin(DevicePin&& other) noexcept;
  DevicePin& operator=(DevicePin&& other) noexcept;
  ~DevicePin();

  explicit operator bool() const { return block_ != nullptr; }

  const PayloadMap& map() const;
  // Of the slot: an address of the device's, map().block_bytes() long.
  const std::byte* address() const;
  // Of one segment; null when its part is not there.
  const std::byte* SegmentAddress(size_t segment) const;
  // By segment; 0 where its part is not there.
  absl::Span<const uint64_t> digests() const;

 private:
  friend class BlockStore;
  DevicePin(BlockStore* store, DeviceBlock* block) : store_(store), block_(block) {}

  BlockStore* store_ = nullptr;
  DeviceBlock* block_ = nullptr;
};

}  // namespace cairn::node
