// Item checks: what can be said of the items of a request without looking at what they are about.
//
// Stateless, so they run where the request came in, before it waits for the engine.
#pragma once

#include "cache_node/decode/engine/decode_step.h"

namespace cairn::node {

// Fills results of items that are wrong: sizes, positions, queries that are not finite, no target,
// more than the bounds of a request (common/wire/decode_limits.h), each INVALID_ARGUMENT for
// itself; and the step's result_bytes and request_bytes. REQUIRES: a result for each item.
void CheckItems(DecodeStep* step);

}  // namespace cairn::node
