#include "tests/bench/eviction/simulated_store.h"

#include <optional>
#include <utility>

#include "common/base/check.h"

namespace cairn::bench {

using node::BlockHandle;
using node::EvictionPolicy;

SimulatedStore::SimulatedStore(const BlockTrace* trace, uint32_t capacity,
                               std::unique_ptr<EvictionPolicy> policy)
    : trace_(trace),
      policy_(std::move(policy)),
      handles_(trace->block_count(), kAbsent),
      children_(trace->block_count(), 0),
      blocks_(capacity, BlockTrace::kNone) {
  CAIRN_CHECK(capacity > 0 && capacity < kAbsent);
  free_handles_.reserve(capacity);
  for (BlockHandle handle = capacity; handle-- > 0;) free_handles_.push_back(handle);
}

HitCounts SimulatedStore::ServeAll() {
  HitCounts counts;
  for (const BlockTrace::Request& request : trace_->requests()) {
    const uint32_t hits = Serve(request);
    counts.Add(hits, trace_->TokensOf(request, hits));
  }
  return counts;
}

uint32_t SimulatedStore::Serve(const BlockTrace::Request& request) {
  trace_->PathOf(request, &path_);
  ++stamp_;
  hits_ = present_ = LeadingHits();
  leased_ = hits_ > 0 ? path_[hits_ - 1] : BlockTrace::kNone;
  if (hits_ > 0 && children_[leased_] == 0) policy_->MustStay(handles_[leased_]);
  // Without a block there is no policy yet.
  for (uint32_t depth = hits_; held_ > 0 && depth < path_.size(); ++depth) {
    policy_->Missed(TraitsOf(depth), stamp_);
  }
  const uint32_t end = Reserve(hits_);
  for (uint32_t depth = hits_; depth < end; ++depth) {
    policy_->Inserted(handles_[path_[depth]], TraitsOf(depth), stamp_);
    ++present_;
  }
  if (end > hits_) policy_->MayGo(handles_[path_[end - 1]]);
  for (uint32_t depth = hits_; depth-- > 0;) policy_->Used(handles_[path_[depth]], stamp_);
  if (hits_ > 0 && children_[leased_] == 0) policy_->MayGo(handles_[leased_]);
  leased_ = BlockTrace::kNone;
  return hits_;
}

uint32_t SimulatedStore::LeadingHits() const {
  uint32_t hits = 0;
  while (hits < path_.size() && handles_[path_[hits]] != kAbsent) ++hits;
  return hits;
}

EvictionPolicy::BlockTraits SimulatedStore::TraitsOf(uint32_t depth) const {
  return {.key = BlockTrace::KeyOf(path_[depth]),
          .depth = depth,
          .tokens = trace_->block_tokens(),
          .bytes = trace_->block_tokens(),
          .prompt_blocks = static_cast<uint32_t>(path_.size()),
          .prompt_hits = hits_,
          .parent = depth > 0 && depth <= present_ ? handles_[path_[depth - 1]] : node::kNoBlock};
}

uint32_t SimulatedStore::Reserve(uint32_t hits) {
  uint32_t depth = hits;
  for (; depth < path_.size(); ++depth) {
    const EvictionPolicy::BlockTraits newcomer = TraitsOf(depth);
    if (!policy_->Admits(newcomer, stamp_, nullptr)) {
      ++declined_;
      break;
    }
    if (free_handles_.empty() && !MakeRoom(newcomer)) break;
    const Block block = path_[depth];
    CAIRN_CHECK(handles_[block] == kAbsent && children_[block] == 0);
    handles_[block] = free_handles_.back();
    free_handles_.pop_back();
    blocks_[handles_[block]] = block;
    ++held_;
    if (depth > 0) ++children_[path_[depth - 1]];
  }
  return depth;
}

// False: none may go, or the newcomer is not worth it.
bool SimulatedStore::MakeRoom(const EvictionPolicy::BlockTraits& newcomer) {
  const std::optional<EvictionPolicy::Victim> victim = policy_->NextVictim();
  if (!victim.has_value()) return false;
  if (!policy_->Admits(newcomer, stamp_, &*victim)) {
    ++declined_;
    return false;
  }
  Evict(victim->block);
  return true;
}

void SimulatedStore::Evict(BlockHandle handle) {
  CAIRN_CHECK(handle < blocks_.size() && blocks_[handle] != BlockTrace::kNone);
  const Block block = std::exchange(blocks_[handle], BlockTrace::kNone);
  CAIRN_CHECK_MSG(children_[block] == 0 && block != leased_, "a policy named what may not go");
  policy_->Removed(handle);
  handles_[block] = kAbsent;
  free_handles_.push_back(handle);
  --held_;
  ++evicted_;
  const Block parent = trace_->ParentOf(block);
  if (parent == BlockTrace::kNone) return;
  if (--children_[parent] == 0 && parent != leased_) policy_->MayGo(handles_[parent]);
}

}  // namespace cairn::bench
