// LookupOperation: what a request asked for, for those who learn from it.
#include <algorithm>
#include <utility>

#include "cache_node/store/lookup_operation.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

// A block that no working set samples takes a few nanoseconds.
constexpr size_t kAskedPerLock = 16 * BlockStore::kStepsPerLock;

// In no tier, nor on its way to one.
bool IsAbsent(const BlockAnswer& block) {
  return block.state != BlockState::kHost && block.state != BlockState::kDisk &&
         block.state != BlockState::kDevice && block.state != BlockState::kPending &&
         block.state != BlockState::kNotLeased;
}

}  // namespace

UseStamp LookupOperation::Request(StoreState* state) {
  if (request_ == 0) {
    request_ = IsRequest() ? state->BeginLookup() : std::max<UseStamp>(1, state->stamp);
  }
  return request_;
}

bool LookupOperation::StepSeen(StoreState* state) {
  CAIRN_CHECK(IsRequest());
  Request(state);
  if (!answer_.namespace_known || !Begin(*state)) return true;
  if (!asking_ && !StepMissed(state)) return false;
  return StepAsked(state);
}

// From the first prompt to the last: of each, the blocks from the first that is not in host memory.
bool LookupOperation::StepMissed(StoreState* state) {
  const uint64_t bytes = record_->map.block_bytes();
  ClassSpace* space = state->slots.Find({.tenant = tenant_index_, .slot_bytes = bytes});
  if (own_ == 0 || space == nullptr) return true;
  if (!std::exchange(seeing_, true)) {
    prompt_ = 0;
    block_ = 0;
  }
  for (size_t i = 0; i < BlockStore::kStepsPerLock && !AtEnd(); ++i) {
    const std::vector<BlockAnswer>& blocks = answer_of_prompt().blocks;
    if (block_ == 0) SeePrompt(state);
    if (block_ >= blocks.size()) {
      ++prompt_;
      block_ = 0;
      continue;
    }
    const size_t block = block_++;
    if (blocks[block].state == BlockState::kHost) continue;  // Behind a hole.
    space->policy->Missed(
        {.key = PolicyKey(query_.prompts[prompt_].keys[block]),
         .depth = first_depth_ + static_cast<uint32_t>(block),
         .tokens = answer_.block_tokens,
         .bytes = bytes,
         .prompt_blocks = first_depth_ + static_cast<uint32_t>(blocks.size()),
         .prompt_hits = first_depth_ + host_hits_,
         .parent = block == host_hits_ ? ParentOfMissed(*state, *space) : kNoBlock},
        request_);
  }
  return AtEnd();
}

BlockHandle LookupOperation::ParentOfMissed(const StoreState& state,
                                            const ClassSpace& space) const {
  if (host_hits_ == 0) return kNoBlock;
  return HandleIn(space, state.index.Find(own_, query_.prompts[prompt_].keys[host_hits_ - 1]));
}

// Goes to the first block of the prompt that is not in host memory.
void LookupOperation::SeePrompt(StoreState* state) {
  const std::vector<BlockAnswer>& blocks = answer_of_prompt().blocks;
  const auto missed = std::find_if(blocks.begin(), blocks.end(), [](const BlockAnswer& block) {
    return block.state != BlockState::kHost;
  });
  host_hits_ = static_cast<uint32_t>(missed - blocks.begin());
  block_ = host_hits_;
  const auto absent = std::find_if(missed, blocks.end(), IsAbsent);
  if (absent != blocks.end()) {
    const BlockKey& key =
        query_.prompts[prompt_].keys[static_cast<size_t>(absent - blocks.begin())];
    state->ExpectReserve(PolicyKey(key), request_);
  }
  first_depth_ = 0;
  if (host_hits_ == 0) return;
  // A prompt may be asked for in parts.
  for (const PartitionIndex partition : {own_, public_}) {
    if (partition == 0) continue;
    const BlockEntry* first = state->index.Find(partition, query_.prompts[prompt_].keys[0]);
    if (first == nullptr) continue;
    first_depth_ = first->depth;
    return;
  }
}

// Prompt after prompt, each from its deepest block to its first.
bool LookupOperation::StepAsked(StoreState* state) {
  if (!std::exchange(asking_, true)) {
    passes_.resize(state->working_sets.size());
    prompt_ = 0;
    block_ = answer_.prompts.empty() ? 0 : answer_.prompts[0].blocks.size();
  }
  const uint64_t bytes = record_->map.block_bytes();
  size_t steps = 0;
  while (steps < kAskedPerLock && !AtEnd()) {
    ++steps;
    if (block_ == 0) {
      if (++prompt_ < query_.prompts.size()) block_ = answer_of_prompt().blocks.size();
      std::fill(passes_.begin(), passes_.end(), WorkingSet::Prompt());
      continue;
    }
    const uint64_t key = PolicyKey(query_.prompts[prompt_].keys[--block_]);
    for (size_t i = 0; i < passes_.size(); ++i) {
      const bool sampled = state->working_sets[i].set.Ask(key, bytes, &passes_[i]);
      if (sampled) steps += kAskedPerLock / BlockStore::kStepsPerLock;
    }
  }
  return AtEnd();
}

}  // namespace cairn::node
