#include "router/explain/changing_starts.h"

#include <algorithm>

namespace cairn::router {
namespace {

using Finding = ChangingStarts::Finding;

// The value that makes `block` another one than `before`; nothing where the rest is not equal too.
std::optional<Finding> ChangeOf(absl::Span<const uint32_t> block,
                                absl::Span<const uint32_t> before) {
  if (block.size() != before.size()) return std::nullopt;
  const auto start = std::mismatch(block.begin(), block.end(), before.begin()).first;
  const auto position = static_cast<uint32_t>(start - block.begin());
  if (position == block.size()) return std::nullopt;
  const auto behind = static_cast<uint32_t>(
      std::mismatch(block.rbegin(), block.rend() - position, before.rbegin()).first -
      block.rbegin());
  if (behind < ChangingStarts::kEqualBehindMin) return std::nullopt;
  return Finding{.position = position,
                 .tokens = static_cast<uint32_t>(block.size()) - position - behind};
}

}  // namespace

ChangingStarts::Scope& ChangingStarts::Touch(const BlockKey& root) {
  const auto [found, fresh] = scopes_.try_emplace(root);
  if (fresh) {
    by_use_.push_front(root);
    found->second.place = by_use_.begin();
  } else {
    by_use_.splice(by_use_.begin(), by_use_, found->second.place);
  }
  if (scopes_.size() > kScopesMax) {
    scopes_.erase(by_use_.back());
    by_use_.pop_back();
  }
  return scopes_.at(root);
}

std::optional<Finding> ChangingStarts::Observe(const BlockKey& root,
                                               absl::Span<const uint32_t> first_block) {
  if (first_block.empty() || first_block.size() > kBlockTokensMax) return std::nullopt;
  absl::MutexLock lock(&mutex_);
  Scope& scope = Touch(root);
  std::optional<Finding> change;
  for (const std::vector<uint32_t>& before : scope.blocks) {
    const std::optional<Finding> one = ChangeOf(first_block, before);
    // The block that has most in common with it is the one that it would have been.
    if (one.has_value() && (!change.has_value() || one->tokens < change->tokens)) change = one;
  }
  scope.blocks.emplace_back(first_block.begin(), first_block.end());
  if (scope.blocks.size() > kBlocksPerScope) scope.blocks.pop_front();
  if (!change.has_value()) return std::nullopt;
  ++prompts_;
  // Where two values happen to begin or end alike, the place is a token off: the widest counts.
  const bool overlaps = scope.in_a_row > 0 &&
                        change->position < scope.last.position + scope.last.tokens &&
                        scope.last.position < change->position + change->tokens;
  if (overlaps) {
    const uint32_t end =
        std::max(change->position + change->tokens, scope.last.position + scope.last.tokens);
    scope.last.position = std::min(scope.last.position, change->position);
    scope.last.tokens = end - scope.last.position;
    ++scope.in_a_row;
  } else {
    scope.last = *change;
    scope.in_a_row = 1;
  }
  if (scope.in_a_row < kPromptsToSay) return std::nullopt;
  if (scope.said.has_value() && scope.said->position == scope.last.position) return std::nullopt;
  scope.said = scope.last;
  return scope.last;
}

uint64_t ChangingStarts::prompts() const {
  absl::MutexLock lock(&mutex_);
  return prompts_;
}

}  // namespace cairn::router
