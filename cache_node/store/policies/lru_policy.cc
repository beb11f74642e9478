#include "cache_node/store/policies/lru_policy.h"

#include <utility>

#include "common/base/check.h"

namespace cairn::node {

LruPolicy::Rank LruPolicy::RankOf(BlockHandle block, const State& state) {
  constexpr int kPriorityBits = 8;
  return {.level = (state.orphaned ? 0 : uint64_t{1} << kPriorityBits) | state.priority,
          .stamp = state.stamp,
          .place = uint64_t{~state.depth} << 32 | block};
}

LruPolicy::State& LruPolicy::Known(BlockHandle block) {
  CAIRN_CHECK(block < states_.size() && states_[block].there);
  return states_[block];
}

void LruPolicy::PutInOrder(BlockHandle block, const State& state) {
  Rank rank = RankOf(block, state);
  if (!first_.has_value() && (rest_.empty() || rank < *rest_.begin())) {
    first_ = rank;
    return;
  }
  if (first_.has_value() && rank < *first_) std::swap(rank, *first_);
  CAIRN_CHECK(rest_.insert(rank).second);
}

void LruPolicy::TakeFromOrder(BlockHandle block, const State& state) {
  const Rank rank = RankOf(block, state);
  if (first_ == rank) {
    first_.reset();
  } else {
    CAIRN_CHECK(rest_.erase(rank) == 1);
  }
}

template <typename Change>
void LruPolicy::Rerank(BlockHandle block, Change change) {
  State& state = Known(block);
  const bool was_in_order = state.may_go;
  State changed = state;
  change(changed);
  if (was_in_order) TakeFromOrder(block, state);
  state = changed;
  if (state.may_go) PutInOrder(block, state);
}

void LruPolicy::Inserted(BlockHandle block, const BlockTraits& traits, UseStamp stamp) {
  if (block >= states_.size()) states_.resize(block + size_t{1});
  CAIRN_CHECK(!states_[block].there);
  states_[block] =
      State{.stamp = stamp, .depth = traits.depth, .priority = traits.priority, .there = true};
}

void LruPolicy::Used(BlockHandle block, UseStamp stamp) {
  State& state = Known(block);
  if (stamp <= state.stamp) return;
  if (!state.may_go) {
    state.stamp = stamp;
  } else {
    Rerank(block, [stamp](State& changed) { changed.stamp = stamp; });
  }
}

void LruPolicy::MayGo(BlockHandle block) {
  if (Known(block).may_go) return;
  Rerank(block, [](State& state) { state.may_go = true; });
}

void LruPolicy::MustStay(BlockHandle block) {
  if (!Known(block).may_go) return;
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
  Known(block) = State{};
}

std::optional<EvictionPolicy::Victim> LruPolicy::NextVictim() {
  if (!first_.has_value()) {
    if (rest_.empty()) return std::nullopt;
    first_ = rest_.extract(rest_.begin()).value();
  }
  const auto block = static_cast<BlockHandle>(first_->place);
  return Victim{block, Known(block).orphaned, first_->stamp};
}

uint64_t LruPolicy::MemoryBytes() const {
  return states_.capacity() * sizeof(State) + rest_.size() * sizeof(Rank);
}

}  // namespace cairn::node
