// WriteClaim: the right to fill the bytes of one piece of reserved segments. Move-only; pins the slot
// past its token's expiry. Ends with BlockStore::FinishWrite, or, when destroyed before, gives its
// segments back unwritten. May be destroyed on any thread. Must not outlive the store.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace cairn::node {

class BlockStore;
struct BlockEntry;

class WriteClaim {
 public:
  WriteClaim() = default;
  WriteClaim(WriteClaim&& other) noexcept;
  WriteClaim& operator=(WriteClaim&& other) noexcept;
  ~WriteClaim();

  explicit operator bool() const { return entry_ != nullptr; }

  // Where the piece's bytes go. Empty when all its segments are in already with these digests: the
  // caller drops the bytes (`already_in`).
  absl::Span<uint8_t> destination() const { return destination_; }
  bool already_in() const { return already_in_; }

 private:
  friend class BlockStore;
  friend class WritePath;

  BlockStore* store_ = nullptr;
  BlockEntry* entry_ = nullptr;
  absl::Span<uint8_t> destination_;
  bool already_in_ = false;
  size_t first_segment_ = 0;  // Index in the PayloadMap.
  size_t segments_ = 0;
  bool completes_ = true;     // The last byte of its segments is in this piece.
  uint32_t group_ = 0;
  uint32_t slice_ = 0;
  uint32_t layer_ = 0;
  uint64_t writer_ = 0;
  std::vector<uint64_t> digests_;  // Expected.
};

}  // namespace cairn::node
