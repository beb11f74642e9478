// The flags of cairn-node. Their definitions are in node_flags.cc, which only the program links.
#pragma once

#include "cache_node/service/node_config.h"

namespace cairn::node {

// What the flags say now; not validated.
NodeConfig ConfigFromFlags();

}  // namespace cairn::node
