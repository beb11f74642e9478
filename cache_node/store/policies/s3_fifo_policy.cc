#include "cache_node/store/policies/s3_fifo_policy.h"

#include <algorithm>

#include "common/base/check.h"

namespace cairn::node {

S3FifoPolicy::Turn S3FifoPolicy::TurnOf(BlockHandle block, const State& state) {
  constexpr int kPriorityBits = 8;
  return {.level = (state.orphaned ? 0 : uint64_t{1} << kPriorityBits) | state.priority,
          .turn = state.turn,
          .place = uint64_t{~state.depth} << 32 | block};
}

S3FifoPolicy::State& S3FifoPolicy::Known(BlockHandle block) {
  CAIRN_CHECK(block < states_.size() && states_[block].there);
  return states_[block];
}

// Null: of no account while it may not go.
absl::btree_set<S3FifoPolicy::Turn>* S3FifoPolicy::OrderOf(const State& state) {
  if (!state.there) return nullptr;
  if (state.may_go) return &turns_[state.queue];
  return state.queue == kSmall ? &held_ : nullptr;
}

template <typename Change>
void S3FifoPolicy::Rerank(BlockHandle block, Change change) {
  State& state = states_[block];
  if (auto* order = OrderOf(state)) CAIRN_CHECK(order->erase(TurnOf(block, state)) == 1);
  if (state.there) --blocks_[state.queue];
  change(state);
  if (state.there) ++blocks_[state.queue];
  if (auto* order = OrderOf(state)) CAIRN_CHECK(order->insert(TurnOf(block, state)).second);
}

void S3FifoPolicy::Inserted(BlockHandle block, const BlockTraits& traits, UseStamp stamp) {
  if (block >= states_.size()) states_.resize(block + size_t{1});
  CAIRN_CHECK(!states_[block].there);
  now_ = std::max(now_, stamp);
  const Queue queue = Forget(traits.key) ? kMain : kSmall;
  Rerank(block, [&](State& state) {
    state = State{.key = traits.key,
                  .stamp = stamp,
                  .turn = now_,
                  .depth = traits.depth,
                  .priority = traits.priority,
                  .queue = queue,
                  .there = true};
  });
}

void S3FifoPolicy::Used(BlockHandle block, UseStamp stamp) {
  State& state = Known(block);
  now_ = std::max(now_, stamp);
  state.stamp = std::max(state.stamp, stamp);
  state.uses = std::min<uint8_t>(state.uses + 1, kUsesMax);
}

void S3FifoPolicy::MayGo(BlockHandle block) {
  if (Known(block).may_go) return;
  Rerank(block, [](State& state) { state.may_go = true; });
}

void S3FifoPolicy::MustStay(BlockHandle block) {
  if (!Known(block).may_go) return;
  Rerank(block, [](State& state) { state.may_go = false; });
}

void S3FifoPolicy::Orphaned(BlockHandle block, bool orphaned) {
  if (Known(block).orphaned == orphaned) return;
  Rerank(block, [orphaned](State& state) { state.orphaned = orphaned; });
}

void S3FifoPolicy::PriorityChanged(BlockHandle block, uint8_t priority) {
  if (Known(block).priority == priority) return;
  Rerank(block, [priority](State& state) { state.priority = priority; });
}

void S3FifoPolicy::Removed(BlockHandle block) {
  const State left = Known(block);
  Rerank(block, [](State& state) { state = State{}; });
  if (left.queue == kSmall && !left.orphaned) Remember(left.key);
}

const S3FifoPolicy::Turn* S3FifoPolicy::Next() const {
  const Turn* small = turns_[kSmall].empty() ? nullptr : &*turns_[kSmall].begin();
  const Turn* main = turns_[kMain].empty() ? nullptr : &*turns_[kMain].begin();
  if (small == nullptr || main == nullptr) return small != nullptr ? small : main;
  if (small->level != main->level) return small->level < main->level ? small : main;
  const uint64_t all = blocks_[kSmall] + blocks_[kMain];
  return blocks_[kSmall] > std::max<uint64_t>(1, all / kSmallShare) ? small : main;
}

void S3FifoPolicy::MoveToMain(BlockHandle block, uint8_t uses) {
  Rerank(block, [&](State& state) {
    state.uses = uses;
    state.queue = kMain;
    state.turn = now_;
  });
}

bool S3FifoPolicy::PassHeld(const Turn& next) {
  bool any = false;
  while (true) {
    // Those of a lower level are before it too, and not because their turn came.
    const auto first = held_.lower_bound(Turn{.level = next.level});
    if (first == held_.end() || !(*first < next)) return any;
    MoveToMain(first->block(), 0);
    any = true;
  }
}

std::optional<EvictionPolicy::Victim> S3FifoPolicy::NextVictim() {
  // Each round takes a use from a block, or moves some to the main queue, once.
  while (const Turn* next = Next()) {
    const BlockHandle block = next->block();
    const State& state = states_[block];
    // The queues have other sizes then.
    if (state.queue == kSmall && PassHeld(Turn(*next))) continue;
    const bool stays = !state.orphaned && state.uses > (state.queue == kSmall ? 1 : 0);
    if (!stays) return Victim{block, state.orphaned, state.stamp};
    MoveToMain(block, state.queue == kSmall ? 0 : static_cast<uint8_t>(state.uses - 1));
  }
  return std::nullopt;
}

void S3FifoPolicy::Remember(uint64_t key) {
  left_[key] = next_left_;
  left_order_.emplace_back(key, next_left_++);
  const uint64_t all = blocks_[kSmall] + blocks_[kMain];
  const uint64_t most = all - all / kSmallShare;
  while (left_order_.size() > most) {
    const auto [oldest, when] = left_order_.front();
    left_order_.pop_front();
    const auto known = left_.find(oldest);
    if (known != left_.end() && known->second == when) left_.erase(known);
  }
}

bool S3FifoPolicy::Forget(uint64_t key) { return left_.erase(key) == 1; }

uint64_t S3FifoPolicy::MemoryBytes() const {
  return states_.capacity() * sizeof(State) +
         (turns_[kSmall].size() + turns_[kMain].size() + held_.size()) * sizeof(Turn) +
         left_.capacity() * (sizeof(std::pair<uint64_t, uint64_t>) + 1) +
         left_order_.size() * sizeof(left_order_.front());
}

}  // namespace cairn::node
