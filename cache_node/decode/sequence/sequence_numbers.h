// DecodeNumbers: how full the room for running sequences is, and what happened to them. A plain
// value.
#pragma once

#include <array>
#include <cstdint>

#include "cache_node/decode/sequence/sequence_seal.h"

namespace cairn::node {

struct DecodeNumbers {
  // Now.
  uint64_t bytes_max = 0;       // Of pages; of them
  uint64_t bytes_used = 0;      // those in use,
  uint64_t bytes_reserved = 0;  // and those that sequences may still take.
  uint64_t bytes_mapped = 0;    // Of memory; at most bytes_max.
  uint64_t pinned_bytes = 0;    // Of stored blocks.
  uint64_t book_bytes = 0;
  uint64_t tokens_reserved = 0;  // That sequences may still append.
  uint64_t tokens_free = 0;      // More that would fit, at the size of the sequence opened last.
  uint64_t running = 0;
  uint64_t closing = 0;  // Closed, with full pages that are still to be published.
  uint64_t seals_under_way = 0;
  // Since the start.
  uint64_t opened = 0;
  uint64_t forked = 0;   // Forks made.
  uint64_t refused = 0;  // Openings and forks, for want of room.
  uint64_t closed = 0;
  uint64_t ended_idle = 0;
  uint64_t ended_removed = 0;                   // Their blocks, or their namespace.
  uint64_t appended_rows = 0;                   // Tokens of one layer and slice.
  uint64_t seals_no_room = 0;                   // Put off: no page to copy to was free.
  std::array<uint64_t, kSealOutcomes> seals{};  // By outcome.

  uint64_t bytes_free() const { return bytes_max - bytes_used - bytes_reserved; }
  uint64_t reclaimed() const { return ended_idle + ended_removed; }
};

}  // namespace cairn::node
