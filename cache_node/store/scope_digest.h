// ScopeDigest: a scope as 16 bytes, whatever comes before it in a prompt.
//
// A prompt's scope enters after the fingerprint or after a first region's last block, so one scope
// has many roots. What says "these blocks are of this scope" (the rule about a parent's scope,
// ClearScope) is the scope entered after 16 zero bytes, which no prompt does.
#pragma once

#include "common/base/bytes16.h"
#include "common/identity/scope.h"

namespace cairn::node {

inline BlockKey ScopeDigest(const Scope& scope) { return EnterScope(BlockKey{}, scope); }

}  // namespace cairn::node
