// GenerationPage: a u64 for each slot of one memory segment, which readers in other processes map
// and compare before and after they use a slot's bytes.
//
// Written by this process alone, under the store's lock. Raise comes before the slot's next bytes
// do: whoever saw one of these also sees the raised generation. Owns its memory, which is sealed as
// a segment of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "cache_node/tiers/memory_segment.h"

namespace cairn::node {

class GenerationPage {
 public:
  // Bytes of a page for so many slots.
  static uint64_t BytesFor(uint64_t slots);

  // REQUIRES: `memory` has BytesFor the slots that it is used for.
  explicit GenerationPage(std::unique_ptr<MemorySegment> memory) : memory_(std::move(memory)) {}

  const MemorySegment& memory() const { return *memory_; }
  void Raise(uint32_t slot, uint64_t generation);

 private:
  const std::unique_ptr<MemorySegment> memory_;
};

}  // namespace cairn::node
