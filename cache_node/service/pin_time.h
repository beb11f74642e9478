// PinUntil: the wall-clock end of a pin that was asked for, in milliseconds since 1970. No state.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace cairn::node {

// 0 for 0; INVALID_ARGUMENT over kPinMsMax (common/wire/limits.h).
absl::StatusOr<int64_t> PinUntil(uint64_t pin_ms, absl::Time wall);

}  // namespace cairn::node
