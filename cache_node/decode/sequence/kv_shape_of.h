// KvShapeOf: a group of a layout as kernels see one slice of it.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/identity/payload_map.h"
#include "kernels/kv_segment.h"

namespace cairn::node {

// FAILED_PRECONDITION saying why when nothing can be appended to the group: its rows are opaque,
// its scales are one a head (unknown while a block fills), or kernels do not know its shape.
// REQUIRES: the layout has the group.
absl::StatusOr<kernels::KvShape> KvShapeOf(const PayloadMap& map, uint32_t group);

}  // namespace cairn::node
