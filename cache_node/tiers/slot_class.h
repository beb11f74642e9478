// SlotClass: what all slots of one memory segment have in common. SlotRef: one slot.
#pragma once

#include <cstdint>
#include <utility>

namespace cairn::node {

// A tenant as a small number, given out by the TenantLedger; 0 is none.
using TenantIndex = uint32_t;

struct SlotClass {
  TenantIndex tenant = 0;
  uint64_t slot_bytes = 0;  // A multiple of 64.

  friend bool operator==(const SlotClass&, const SlotClass&) = default;

  template <typename H>
  friend H AbslHashValue(H state, const SlotClass& c) {
    return H::combine(std::move(state), c.tenant, c.slot_bytes);
  }
};

struct SlotRef {
  uint32_t segment = 0;  // Position in the pool.
  uint32_t slot = 0;     // Position in the segment.

  friend bool operator==(const SlotRef&, const SlotRef&) = default;
};

}  // namespace cairn::node
