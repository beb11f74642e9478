// LookupOperation: what a request asked for, for those who learn from it.
#include <algorithm>
#include <utility>

#include "cache_node/store/lookup_operation.h"
#include "common/base/check.h"

namespace cairn::node {

UseStamp LookupOperation::Request(StoreState* state) {
  if (request_ == 0) {
    request_ = IsRequest() ? state->BeginLookup() : std::max<UseStamp>(1, state->stamp);
  }
  return request_;
}

// From the first prompt to the last: of each, the blocks from the first that is not in host memory.
bool LookupOperation::StepSeen(StoreState* state) {
  CAIRN_CHECK(IsRequest());
  Request(state);
  if (!std::exchange(seeing_, true)) {
    prompt_ = 0;
    block_ = 0;
  }
  if (!answer_.namespace_known || !Begin(*state) || own_ == 0) return true;
  const uint64_t bytes = record_->map.block_bytes();
  ClassSpace* space = state->slots.Find({.tenant = tenant_index_, .slot_bytes = bytes});
  if (space == nullptr) return true;
  for (size_t i = 0; i < BlockStore::kStepsPerLock && !AtEnd(); ++i) {
    const std::vector<BlockAnswer>& blocks = answer_of_prompt().blocks;
    const std::vector<BlockKey>& keys = query_.prompts[prompt_].keys;
    if (block_ == 0) SeePrompt(*state);
    if (block_ >= blocks.size()) {
      ++prompt_;
      block_ = 0;
      continue;
    }
    const size_t block = block_++;
    if (blocks[block].state == BlockState::kHost) continue;  // Behind a hole.
    space->policy->Missed({.key = PolicyKey(keys[block]),
                           .depth = first_depth_ + static_cast<uint32_t>(block),
                           .tokens = answer_.block_tokens,
                           .bytes = bytes,
                           .prompt_blocks = first_depth_ + static_cast<uint32_t>(blocks.size()),
                           .prompt_hits = first_depth_ + host_hits_},
                          request_);
  }
  return AtEnd();
}

// Goes to the first block of the prompt that is not in host memory.
void LookupOperation::SeePrompt(const StoreState& state) {
  const std::vector<BlockAnswer>& blocks = answer_of_prompt().blocks;
  const auto missed = std::find_if(blocks.begin(), blocks.end(), [](const BlockAnswer& block) {
    return block.state != BlockState::kHost;
  });
  host_hits_ = static_cast<uint32_t>(missed - blocks.begin());
  block_ = host_hits_;
  first_depth_ = 0;
  if (host_hits_ == 0) return;
  // A prompt may be asked for in parts.
  for (const PartitionIndex partition : {own_, public_}) {
    if (partition == 0) continue;
    const BlockEntry* first = state.index.Find(partition, query_.prompts[prompt_].keys[0]);
    if (first != nullptr) first_depth_ = first->depth;
    if (first != nullptr) return;
  }
}

}  // namespace cairn::node
