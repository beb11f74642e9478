// Provenance: which caller wrote a block, and when: wherever the block is now, and whatever node
// carried it there. Plain values.
#pragma once

#include <cstdint>

namespace cairn::node {

struct Provenance {
  uint64_t writer = 0;          // XXH3-64 of the writer's identity; 0: not known.
  int64_t written_unix_ms = 0;  // When its slot was reserved. Wall clock.

  // Where only the low half of the writer and whole seconds are kept, that is what counts, in doubt
  // as yes: so everywhere.
  bool IsBy(uint64_t whom) const {
    return static_cast<uint32_t>(writer) == static_cast<uint32_t>(whom);
  }
  bool IsWithin(int64_t since_unix_ms, int64_t until_unix_ms) const {
    return written_unix_ms / 1000 >= since_unix_ms / 1000 &&
           written_unix_ms / 1000 <= until_unix_ms / 1000;
  }

  friend bool operator==(const Provenance&, const Provenance&) = default;
};

}  // namespace cairn::node
