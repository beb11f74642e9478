#include "router/replication/hot_prefixes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/check.h"
#include "common/identity/rendezvous.h"

namespace cairn::router {
namespace {

// After a copy its node's feed must tell before the prefix is judged again.
constexpr absl::Duration kFeedTells = absl::Seconds(1);
// Nodes whose queue is within this share of what a copy saves are as good as the least busy.
constexpr double kAsGood = 0.25;

uint64_t FedTokens(const RankedReplica& replica) {
  return replica.matched.total() - replica.matched.coming;
}

// What it is said to have can be trusted, and it can take a copy.
bool Counts(const RankedReplica& replica) {
  return replica.holder_state == HolderState::kExact && replica.reason != RouteReason::kHolderOut;
}

bool Refuses(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsPermissionDenied(status) ||
         absl::IsUnauthenticated(status) || absl::IsUnimplemented(status);
}

uint64_t PlaceOf(const BlockKey& key) { return RendezvousPrompt({&key, 1}); }

}  // namespace

HotPrefixes::HotPrefixes(const ReplicationOptions& options)
    : options_(options), budget_(options.bytes_per_second, options.outstanding_seconds) {}

// 1, 2, 4, ... blocks, as far as the longest that a holder has, and that: what prompts share may
// end anywhere.
std::vector<size_t> HotPrefixes::DepthsOf(const RoutedPrompt& prompt) const {
  uint64_t most = 0;
  for (const RankedReplica& replica : prompt.replicas) {
    if (Counts(replica)) most = std::max(most, FedTokens(replica));
  }
  const size_t deepest =
      std::min(prompt.keys.size(), static_cast<size_t>(most / prompt.block_tokens));
  std::vector<size_t> depths;
  for (size_t blocks = 1; blocks < deepest; blocks *= 2) {
    if (blocks * prompt.block_tokens >= options_.prefix_tokens_min) depths.push_back(blocks);
  }
  if (deepest * prompt.block_tokens >= options_.prefix_tokens_min) depths.push_back(deepest);
  return depths;
}

HotPrefixes::Standing HotPrefixes::StandingAt(const RoutedPrompt& prompt, uint64_t tokens) const {
  Standing standing;
  const auto take = [](const RankedReplica& replica, const RankedReplica** least) {
    if (*least == nullptr || replica.terms.queued_seconds < (*least)->terms.queued_seconds) {
      *least = &replica;
    }
  };
  for (const RankedReplica& replica : prompt.replicas) {
    if (!Counts(replica)) continue;
    take(replica, FedTokens(replica) >= tokens ? &standing.holder : &standing.other);
  }
  if (standing.holder != nullptr && standing.other != nullptr) {
    standing.extra_seconds =
        standing.holder->terms.queued_seconds - standing.other->terms.queued_seconds;
  }
  return standing;
}

HotPrefixes::Prefix& HotPrefixes::Note(const BlockKey& key, bool saturated, absl::Time now) {
  auto found = prefixes_.find(key);
  if (found == prefixes_.end()) {
    if (prefixes_.size() >= kPrefixesMax) DropOldest();
    by_use_.push_front(key);
    found = prefixes_.emplace(key, Prefix{}).first;
    found->second.place = by_use_.begin();
    found->second.seen = now;
    found->second.not_before = absl::InfinitePast();
  } else {
    by_use_.splice(by_use_.begin(), by_use_, found->second.place);
  }
  Prefix& prefix = found->second;
  const double kept = std::exp(
      -absl::FDivDuration(std::max(now - prefix.seen, absl::ZeroDuration()), options_.window));
  // Nobody asked for it for several windows: it has cooled.
  if (kept < 0.01) {
    if (std::exchange(prefix.copied, false)) ++counters_.cooled;
    prefix.fruitless = 0;
    prefix.copied_to.clear();
  }
  prefix.seen = now;
  prefix.prompts = prefix.prompts * kept + 1;
  prefix.saturated = prefix.saturated * kept + (saturated ? 1 : 0);
  return prefix;
}

void HotPrefixes::DropOldest() {
  const auto oldest = prefixes_.find(by_use_.back());
  CAIRN_CHECK(oldest != prefixes_.end());
  if (oldest->second.copied) ++counters_.cooled;
  prefixes_.erase(oldest);
  by_use_.pop_back();
}

std::optional<CopyOrder> HotPrefixes::Observe(const RoutedPrompt& prompt, absl::Time now) {
  if (options_.bytes_per_second == 0 || prompt.block_tokens == 0) return std::nullopt;
  const double per_token = BytesPerToken(prompt.fingerprint);
  size_t hot_blocks = 0;
  Standing hot;
  bool any = false;
  bool copying = false;  // Some depth of it, and with that what is before.
  for (const size_t blocks : DepthsOf(prompt)) {
    const uint64_t tokens = blocks * uint64_t{prompt.block_tokens};
    const Standing standing = StandingAt(prompt, tokens);
    const double copy_seconds =
        static_cast<double>(tokens) * per_token / options_.pull_bytes_per_second;
    const bool saturated =
        standing.extra_seconds > std::max(copy_seconds, absl::ToDoubleSeconds(options_.wait_min));
    any = any || saturated;
    const Prefix& prefix = Note(prompt.keys[blocks - 1], saturated, now);
    const bool often = prefix.prompts >= options_.prompts_min &&
                       prefix.saturated >= prefix.prompts * options_.saturated_share;
    copying = copying || now < prefix.not_before;
    if (!saturated || !often) continue;
    hot_blocks = blocks;  // The deepest comes last.
    hot = standing;
  }
  counters_.saturated_prompts += any ? 1 : 0;
  if (hot_blocks == 0 || copying) return std::nullopt;
  return Order(prompt, hot_blocks, hot, now);
}

const RankedReplica* HotPrefixes::Destination(const RoutedPrompt& prompt, const BlockKey& key,
                                              uint64_t tokens, const Standing& standing,
                                              absl::Time now) const {
  const RankedReplica* best = nullptr;
  uint64_t best_weight = 0;
  const double most = standing.other->terms.queued_seconds + kAsGood * standing.extra_seconds;
  for (const RankedReplica& replica : prompt.replicas) {
    if (!Counts(replica) || FedTokens(replica) >= tokens) continue;
    if (replica.terms.queued_seconds > most || replica.node_addresses.empty()) continue;
    const auto refused = refused_until_.find(replica.node_id);
    if (refused != refused_until_.end() && now < refused->second) continue;
    const uint64_t weight = RendezvousWeight(PlaceOf(key), RendezvousReplica(replica.node_id));
    if (best != nullptr && weight <= best_weight) continue;
    best = &replica;
    best_weight = weight;
  }
  return best;
}

std::optional<CopyOrder> HotPrefixes::Order(const RoutedPrompt& prompt, size_t blocks,
                                            const Standing& standing, absl::Time now) {
  const BlockKey& key = prompt.keys[blocks - 1];
  const uint64_t tokens = blocks * uint64_t{prompt.block_tokens};
  const RankedReplica* to = Destination(prompt, key, tokens, standing, now);
  if (to == nullptr) return std::nullopt;
  CopyOrder order;
  // Of what the node has a part of already only the rest moves.
  const double missing = static_cast<double>(tokens - std::min(tokens, FedTokens(*to)));
  order.bytes = static_cast<uint64_t>(missing * BytesPerToken(prompt.fingerprint));
  if (!budget_.Take(order.bytes, now)) {
    ++counters_.over_budget;
    return std::nullopt;
  }
  order.id = next_order_++;
  order.tenant = std::string(prompt.tenant);
  order.fingerprint = prompt.fingerprint;
  order.block_tokens = prompt.block_tokens;
  order.keys.assign(prompt.keys.begin(), prompt.keys.begin() + static_cast<ptrdiff_t>(blocks));
  order.public_blocks = std::min(prompt.public_blocks, blocks);
  order.source_node_id = standing.holder->node_id;
  order.node_id = to->node_id;
  order.node_addresses = to->node_addresses;
  const auto found = prefixes_.find(key);
  CAIRN_CHECK(found != prefixes_.end());
  // Until EndCopy; one copy of a prefix at a time, so that each is judged by what the last did.
  found->second.not_before = absl::InfiniteFuture();
  ++counters_.orders;
  counters_.bytes_booked += order.bytes;
  return order;
}

void HotPrefixes::EndCopy(const CopyOrder& order, const CopyResult& result, absl::Time now) {
  const uint64_t moved = MovedBytes(order, result);
  budget_.End(order.bytes, moved);
  counters_.blocks_copied += result.blocks_pulled;
  counters_.bytes_copied += moved;
  const auto found = prefixes_.find(order.keys.back());
  if (found != prefixes_.end()) Judge(order, result, now, &found->second);
  if (result.blocks_pulled > 0 && result.bytes_pulled > 0) {
    if (bytes_per_token_.size() >= kNamespacesMax) bytes_per_token_.clear();
    bytes_per_token_[order.fingerprint] =
        static_cast<double>(result.bytes_pulled) /
        static_cast<double>(result.blocks_pulled * order.block_tokens);
  }
  if (result.blocks_pulled + result.blocks_present == 0) ++counters_.failed;
  if (Refuses(result.status)) {
    if (refused_until_.size() >= kNamespacesMax) refused_until_.clear();
    refused_until_[order.node_id] = now + kRefusedPause;
  }
}

uint64_t HotPrefixes::MovedBytes(const CopyOrder& order, const CopyResult& result) const {
  if (result.bytes_pulled > 0) return result.bytes_pulled;
  const double tokens = static_cast<double>(result.blocks_pulled) * order.block_tokens;
  return static_cast<uint64_t>(tokens * BytesPerToken(order.fingerprint));
}

// A node may have no room, or another use for it; a source may be gone.
void HotPrefixes::Judge(const CopyOrder& order, const CopyResult& result, absl::Time now,
                        Prefix* prefix) {
  const bool again = result.blocks_pulled > 0 && prefix->copied_to == order.node_id;
  const bool nothing = result.blocks_pulled + result.blocks_present == 0;
  prefix->fruitless = again || nothing ? prefix->fruitless + 1 : 0;
  constexpr uint32_t kDoublingsMax = 10;
  const absl::Duration pause = kFeedTells * (1 << std::min(prefix->fruitless, kDoublingsMax));
  prefix->not_before = now + std::min(pause, kFruitlessPauseMax);
  if (result.blocks_pulled == 0) return;
  prefix->copied = true;
  prefix->copied_to = order.node_id;
}

double HotPrefixes::BytesPerToken(const Fingerprint& fingerprint) const {
  const auto known = bytes_per_token_.find(fingerprint);
  return known == bytes_per_token_.end() ? options_.bytes_per_token : known->second;
}

}  // namespace cairn::router
