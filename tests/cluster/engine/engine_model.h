// What the processes of one fake engine agree on: its namespace, its prompts, which slice is whose.
//
// Keys are the engine's own ids (key scheme 2). Two groups: full attention, and a sliding window of
// two blocks. Four ranks, a slice each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/cpp/async/transfer_types.h"
#include "client/cpp/cache_node_client.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/prompt.h"

namespace cairn::testing {

inline constexpr uint32_t kEngineRanks = 4;
inline constexpr uint32_t kEngineWindowBlocks = 2;

// The namespace, registered at the node; CHECKs that it worked.
NamespaceHandle RegisterEngine(CacheNodeClient& client);

// A prompt of `blocks` blocks: those of one `number` begin alike, others share nothing. Owns its
// ids. Neither copied nor moved.
class EnginePrompt {
 public:
  EnginePrompt(const CacheNodeClient& client, const NamespaceHandle& name_space, uint32_t number,
               size_t blocks);

  EnginePrompt(const EnginePrompt&) = delete;
  EnginePrompt& operator=(const EnginePrompt&) = delete;

  const Prompt& prompt() const { return prompt_; }
  const std::vector<BlockKey>& keys() const { return prompt_.keys(); }

 private:
  const std::vector<std::string> ids_;
  const Prompt prompt_;
};

// What rank `rank` stores of each block, and what it loads of a prompt, layer after layer.
std::vector<LayerStep> StoreStepsOf(const NamespaceHandle& name_space, uint32_t rank);
std::vector<LayerStep> LoadStepsOf(const NamespaceHandle& name_space, uint32_t rank);

}  // namespace cairn::testing
