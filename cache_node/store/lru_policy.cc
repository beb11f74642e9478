#include "cache_node/store/lru_policy.h"

#include "common/base/check.h"

namespace cairn::node {

LruPolicy::Rank LruPolicy::RankOf(BlockHandle block, const State& state) {
  return {!state.orphaned, state.priority, state.stamp, ~state.depth, block};
}

LruPolicy::State& LruPolicy::Known(BlockHandle block) {
  auto it = states_.find(block);
  CAIRN_CHECK(it != states_.end());
  return it->second;
}

template <typename Change>
void LruPolicy::Rerank(BlockHandle block, Change change) {
  State& state = Known(block);
  if (state.may_go) CAIRN_CHECK(may_go_.erase(RankOf(block, state)) == 1);
  change(state);
  if (state.may_go) CAIRN_CHECK(may_go_.insert(RankOf(block, state)).second);
}

void LruPolicy::Inserted(BlockHandle block, const BlockTraits& traits, UseStamp stamp) {
  State state;
  state.priority = traits.priority;
  state.depth = traits.depth;
  state.stamp = stamp;
  CAIRN_CHECK(states_.emplace(block, state).second);
}

void LruPolicy::Used(BlockHandle block, UseStamp stamp) {
  if (stamp <= Known(block).stamp) return;
  Rerank(block, [stamp](State& state) { state.stamp = stamp; });
}

void LruPolicy::MayGo(BlockHandle block) {
  Rerank(block, [](State& state) { state.may_go = true; });
}

void LruPolicy::MustStay(BlockHandle block) {
  Rerank(block, [](State& state) { state.may_go = false; });
}

void LruPolicy::Orphaned(BlockHandle block, bool orphaned) {
  Rerank(block, [orphaned](State& state) { state.orphaned = orphaned; });
}

void LruPolicy::PriorityChanged(BlockHandle block, uint8_t priority) {
  Rerank(block, [priority](State& state) { state.priority = priority; });
}

void LruPolicy::Removed(BlockHandle block) {
  MustStay(block);
  CAIRN_CHECK(states_.erase(block) == 1);
}

std::optional<EvictionPolicy::Victim> LruPolicy::NextVictim() {
  if (may_go_.empty()) return std::nullopt;
  const BlockHandle block = std::get<4>(*may_go_.begin());
  const State& state = Known(block);
  return Victim{block, state.orphaned, state.stamp};
}

}  // namespace cairn::node
