// RemovalReason: why a block is gone. The numbers are those of cairn.v1.RemovalReason.
#pragma once

#include <cstdint>

namespace cairn::node {

enum class RemovalReason : uint8_t {
  kNone = 0,
  kEvicted = 1,
  kQuarantined = 2,
  kDeleted = 3,
  kCleared = 4,
  kRetired = 5,
  kExpired = 6,
};

}  // namespace cairn::node
