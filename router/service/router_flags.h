// The flags of cairn-router. Their definitions are in router_flags.cc, which only the program
// links.
#pragma once

#include "router/service/router_config.h"

namespace cairn::router {

// What the flags say now; not validated.
RouterConfig ConfigFromFlags();

}  // namespace cairn::router
