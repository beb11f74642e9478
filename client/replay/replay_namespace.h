// The namespace of a replay: a model with one layer and one head whose blocks have a chosen size.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/cpp/namespace_handle.h"

namespace cairn::replay {

// bfloat16, one layer, one head; keys and values take a half of the block each where that can be.
// The same sizes give the same namespace in every program. INVALID_ARGUMENT, with the nearest sizes
// that there are, when no dimensions give exactly `block_bytes`.
absl::StatusOr<NamespaceHandle> MakeReplayNamespace(uint32_t block_tokens, uint64_t block_bytes);

}  // namespace cairn::replay
