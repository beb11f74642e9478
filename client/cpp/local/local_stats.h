// LocalStats: how much of a client's traffic stayed in memory. A plain value.
#pragma once

#include <cstdint>

namespace cairn {

struct LocalStats {
  uint64_t connects = 0;         // Connections to the node's local socket, since the start.
  uint64_t fallbacks = 0;        // Calls that could not go through memory and took the channel.
  uint64_t blocks_in_place = 0;  // That were read where they lie.
  uint64_t blocks_copied = 0;    // Out of the node's memory into the caller's.
  uint64_t bytes_copied = 0;
  uint64_t bytes_staged = 0;    // That were written through staging memory.
  uint64_t changed_blocks = 0;  // Whose memory was reused or taken away while it was read.
  bool connected = false;       // Now.
};

}  // namespace cairn
