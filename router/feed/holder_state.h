// HolderState: how far a holder's part of the index can be trusted.
#pragma once

#include "absl/strings/string_view.h"

namespace cairn::router {

enum class HolderState {
  kOut,         // Never heard of, its stream broke, or silent for too long: matched no more.
  kDegraded,    // Silent for a while: still matched.
  kRecovering,  // Shards are still to come, or to come again.
  kExact,       // All shards are in, and the last digests agreed.
};

absl::string_view HolderStateName(HolderState state);

}  // namespace cairn::router
