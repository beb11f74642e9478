// InPlaceBlocks: blocks of a prompt, read where they lie in the node's memory.
//
// Nothing is copied. The views are of mapped memory, valid as long as this object lives; the bytes
// are the block's only while Unchanged says so, asked after they were used: the node may take
// blocks away (they are deleted, their namespace is retired), and a share ends with its connection.
// What has changed is a miss. Verify checks digests against the keys that were asked for.
//
// Move-only; on destruction the share ends, as unused. Thread-safe for reading. The client outlives
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "client/cpp/local/held_places.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/segment_selection.h"
#include "common/base/bytes16.h"

namespace cairn {

class InPlaceBlocks {
 public:
  // For the client.
  InPlaceBlocks(const NamespaceHandle& name_space, absl::Span<const BlockKey> keys,
                HeldPlaces places);

  size_t size() const { return keys_.size(); }
  // Leading blocks that are there.
  size_t there_prefix() const { return there_prefix_; }
  bool there(size_t block) const { return !slots_[block].empty(); }
  // Why a block is not there.
  v1::BlockState state(size_t block) const { return held_.places()[block].state; }

  // The whole block, parts as the namespace's PayloadMap says. Empty when it is not there.
  absl::Span<const uint8_t> bytes(size_t block) const { return slots_[block]; }
  // One segment; empty when the block has it not.
  absl::Span<const uint8_t> segment(size_t block, const SegmentId& id) const;

  // What was read of the block until now was the block's.
  bool Unchanged(size_t block) const;
  // Every selected segment is there, has the digest that it had when it was written, under this
  // key, and the block is unchanged. False is a miss.
  bool Verify(size_t block, const SegmentSelection& selection) const;

  // So many leading blocks were of use; the views are over.
  void End(uint32_t usable_blocks);

 private:
  NamespaceHandle name_space_;
  std::vector<BlockKey> keys_;
  HeldPlaces held_;
  std::vector<absl::Span<const uint8_t>> slots_;  // One a key.
  size_t there_prefix_ = 0;
};

}  // namespace cairn
