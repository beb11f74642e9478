// BlockPin: a block's bytes, held. While it lives its slot is neither freed nor reused, whatever
// happens to the block (evicted never; deleted, retired, quarantined, lease over).
//
// Move-only; may be destroyed on any thread, at which moment it takes the store's lock for an
// instant. Must not outlive the store.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace cairn::node {

class BlockStore;
struct BlockEntry;

class BlockPin {
 public:
  BlockPin() = default;
  BlockPin(BlockPin&& other) noexcept;
  BlockPin& operator=(BlockPin&& other) noexcept;
  ~BlockPin();

  explicit operator bool() const { return entry_ != nullptr; }

  // The whole slot: parts as the namespace's PayloadMap says.
  absl::Span<const uint8_t> bytes() const { return bytes_; }
  // Digest of each segment, by PayloadMap's segment index; valid where SegmentPresent.
  absl::Span<const uint64_t> digests() const;
  bool SegmentPresent(size_t segment_index) const;
  // False once the namespace was retired, or the block deleted, cleared or quarantined: its bytes
  // must not be handed out any more. Asked before each frame.
  bool readable() const;

 private:
  friend class BlockStore;
  BlockPin(BlockStore* store, BlockEntry* entry, absl::Span<const uint8_t> bytes)
      : store_(store), entry_(entry), bytes_(bytes) {}

  BlockStore* store_ = nullptr;
  BlockEntry* entry_ = nullptr;
  absl::Span<const uint8_t> bytes_;
};

}  // namespace cairn::node
