// WriteClaim: the right to fill the bytes of one piece of reserved segments. Move-only; pins the
// slot past its token's expiry. Ends with BlockStore::FinishWrite, or, when destroyed before, gives
// its segments back unwritten. May be destroyed on any thread. Must not outlive the store.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/base/bytes16.h"
#include "common/identity/payload_map.h"

namespace cairn::node {

class BlockStore;
struct BlockEntry;

class WriteClaim {
 public:
  WriteClaim() = default;
  WriteClaim(WriteClaim&& other) noexcept;
  WriteClaim& operator=(WriteClaim&& other) noexcept;
  ~WriteClaim();

  // Whether the caller has bytes to deliver. False for an empty claim and when `already_in`.
  explicit operator bool() const { return entry_ != nullptr; }

  // Where the piece's bytes go. Empty when all its segments are in already with these digests
  // (`already_in`): the caller drops the bytes, and FinishWrite of such a claim is OK.
  absl::Span<uint8_t> destination() const { return destination_; }
  bool already_in() const { return already_in_; }

  // Copies the whole piece in, from runs of at most the bytes asked for, one after the other. Large
  // segments are hashed on the way and go past the caches: FinishWrite does not read them again.
  // The runs stay as they are meanwhile, or what landed is not what was hashed. REQUIRES: bytes to
  // deliver.
  void Fill(absl::FunctionRef<absl::Span<const uint8_t>(size_t)> next_run);

 private:
  friend class BlockStore;
  friend struct WriteOperations;

  BlockStore* store_ = nullptr;
  BlockEntry* entry_ = nullptr;
  absl::Span<uint8_t> destination_;
  bool already_in_ = false;
  size_t first_segment_ = 0;  // Index in the PayloadMap.
  size_t segments_ = 0;
  absl::Span<uint8_t> segment_bytes_;  // All bytes of those segments.
  bool whole_ = true;                  // The piece is whole segments.
  bool completes_ = true;              // The last byte of its segments is in this piece.
  TokenId token_;
  uint32_t block_ = 0;             // Index in the token's blocks.
  std::vector<uint64_t> digests_;  // Expected; those that are in, when `already_in`.
  bool unhashed_ = false;          // Whatever lands is expected.
  std::vector<uint64_t> landed_;   // By segment, where Fill hashed.
  BlockKey key_;
  SegmentId first_;
};

}  // namespace cairn::node
