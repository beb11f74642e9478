// What readers of this host are told: where a block lies, and the memory that it lies in. Plain
// values, but for descriptors.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cache_node/store/store_types.h"

namespace cairn::node {

// A block that is read where it lies.
struct InPlaceBlock {
  // kHost: it can be read, and the rest says where. Anything else: why not.
  BlockState state = BlockState::kNeverSeen;
  bool lendable = false;       // False: its memory segment cannot be given to anybody.
  uint32_t segment_index = 0;  // Of the memory segment, in the pool,
  uint64_t segment_id = 0;     // and its id.
  uint32_t slot = 0;
  uint64_t bytes = 0;
  uint64_t generation = 0;
  std::vector<uint64_t> digests = {};  // By segment of the block.
  std::vector<uint32_t> absent = {};   // Those that were never written.
};

// Blocks of one reader's share. What is past `blocks` was not looked at.
struct InPlaceAnswer {
  std::vector<InPlaceBlock> blocks;
};

// Descriptors of a memory segment and of its page of generations, open for reading; owned.
class LentSegment {
 public:
  LentSegment() = default;
  LentSegment(LentSegment&& other) noexcept { *this = std::move(other); }
  LentSegment& operator=(LentSegment&& other) noexcept;
  ~LentSegment();

  uint64_t id = 0;
  uint64_t bytes = 0;
  uint64_t slot_bytes = 0;
  uint32_t slots = 0;
  int memory_fd = -1;
  int generations_fd = -1;
};

}  // namespace cairn::node
