// LocalCounters: what happened on the local socket. Atomics; any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace cairn::node {

struct LocalCounters {
  using Counter = std::atomic<uint64_t>;

  Counter connections{0};  // Now.
  Counter connected{0};    // That showed a good ticket, since the start.
  Counter refused_tickets{0};
  Counter accepts_failed{0};  // For want of descriptors.
  Counter cut_bad_packet{0};
  Counter cut_not_reading{0};
  Counter cut_not_returning{0};  // Memory that was recalled.
  Counter cut_silent{0};         // No hello within the time for it.
  Counter reads{0};
  Counter places{0};  // Of blocks, answered.
  Counter segments_given{0};
  Counter shares{0};  // Read in place, now.
  Counter puts{0};
  Counter landed_bytes{0};
};

}  // namespace cairn::node
