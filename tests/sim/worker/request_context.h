// RequestContext: what the steps of one request share. Borrowed by them; outlives them.
#pragma once

#include <string>
#include <vector>

#include "client/cpp/namespace_handle.h"
#include "client/cpp/prompt.h"
#include "client/cpp/segment_selection.h"
#include "common/base/bytes16.h"
#include "tests/sim/network/unary_call.h"
#include "tests/sim/worker/sim_prompt.h"

namespace cairn::sim {

struct RequestContext {
  // Parts that one rank reads: those of its slices, of required groups.
  std::vector<PartLayers> PartsOfRank(uint32_t rank) const {
    std::vector<PartLayers> parts;
    for (const PartLayers& part : RequiredParts(prompt->name_space().payload_map())) {
      if (part.slice % ranks == rank) parts.push_back(part);
    }
    return parts;
  }
  std::string NewRequestId() const {
    std::string id;
    while (id.size() < kKeyBytes) id.push_back(static_cast<char>(side.dice->Next()));
    return id;
  }

  ClientSide side;
  const SimPrompt* prompt = nullptr;
  // That read and write together, each its slices.
  uint32_t ranks = 1;
  // The blocks of the prompt in the engine's memory, one after the other in slot order.
  std::vector<uint8_t> memory;
};

}  // namespace cairn::sim
