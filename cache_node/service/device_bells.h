// DeviceBells: what wakes the threads of the device. Made before the store, whose signals ring.
#pragma once

#include "cache_node/service/work_bell.h"

namespace cairn::node {

struct DeviceBells {
  WorkBell uploads;  // A block may be copied to the device,
  WorkBell loads;    // or back.
};

}  // namespace cairn::node
