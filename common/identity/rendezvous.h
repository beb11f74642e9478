// Rendezvous: where a prompt belongs while nobody holds it.
//
// Hashing of its first blocks with the replicas' addresses: what begins alike goes to the same
// replica, and a replica that leaves moves nobody else's prompts. Routers and the clients that find
// no router must agree on it, or new prompts go to two places. Pure functions; they say nothing of
// load.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/bytes16.h"

namespace cairn {

// Blocks that say where a prompt belongs.
inline constexpr size_t kRendezvousBlocks = 4;

// Of a prompt's full blocks; what lies past the first kRendezvousBlocks does not count.
uint64_t RendezvousPrompt(absl::Span<const BlockKey> keys);
uint64_t RendezvousReplica(absl::string_view worker_address);

// The replica with the most is the prompt's place.
uint64_t RendezvousWeight(uint64_t prompt, uint64_t replica);

}  // namespace cairn
