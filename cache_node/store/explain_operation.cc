#include "cache_node/store/explain_operation.h"

#include <algorithm>
#include <utility>

#include "cache_node/store/lookup_operation.h"
#include "common/base/check.h"

namespace cairn::node {

ExplainOperation::ExplainOperation(absl::string_view tenant, const Fingerprint& fingerprint,
                                   const ExplainQuery& query)
    : tenant_(tenant), fingerprint_(fingerprint), query_(query) {}

bool ExplainOperation::Begin(const StoreState& state) {
  const NamespaceRecord* name_space = state.namespaces.FindLive(fingerprint_);
  const bool first = record_ == nullptr;
  // Retired since the last step, whether or not registered anew: what was found is nothing now.
  if (name_space == nullptr || (!first && (name_space != record_ || name_space->epoch != epoch_))) {
    answer_ = ExplainAnswer();
    answer_.state = BlockState::kNamespaceUnknown;
    return false;
  }
  if (!first) return true;
  record_ = name_space;
  epoch_ = name_space->epoch;
  answer_.namespace_known = true;
  answer_.block_tokens = name_space->fields.layout.block_tokens;
  const TenantIndex owner = state.ledger.Find(tenant_);
  const TenantIndex everyone = state.ledger.Find(kPublicTenant);
  if (owner != 0) own_ = state.namespaces.FindPartition(*name_space, owner);
  if (everyone != 0) public_ = state.namespaces.FindPartition(*name_space, everyone);
  CAIRN_CHECK(query_.tokens.empty() ||
              query_.tokens.size() == query_.keys.size() * answer_.block_tokens);
  return true;
}

bool ExplainOperation::Step(const StoreState& state, absl::Time now) {
  if (!Begin(state)) return true;
  for (size_t i = 0; i < kStepsPerLook; ++i) {
    if (!walking_) {
      if (Advance(state, now)) continue;
      if (answer_.present == query_.keys.size() || query_.tokens.empty() ||
          query_.regions.empty()) {
        answer_.partial = answer_.present < query_.keys.size();
        return true;
      }
      BeginWalk();
    }
    if (answer_.looked_at == kLookedAtMax) {
      answer_.partial = true;
      return true;
    }
    // Copies in other tiers have no tokens here to compare: host memory comes first in the walk.
    if (!walk_.Next(state) || walk_.copy()) return true;
    if (walk_.entry() == nullptr) continue;
    ++answer_.looked_at;
    Look(*walk_.entry());
  }
  return false;
}

bool ExplainOperation::Advance(const StoreState& state, absl::Time now) {
  if (answer_.present == query_.keys.size()) return false;
  answer_.state = BlockState::kNeverSeen;
  answer_.removed_ago.reset();
  const bool held = IsHeld(state, own_, now) || IsHeld(state, public_, now);
  if (held) ++answer_.present;
  return held;
}

bool ExplainOperation::IsHeld(const StoreState& state, PartitionIndex partition, absl::Time now) {
  if (partition == 0) return false;
  const BlockKey& key = query_.keys[answer_.present];
  const BlockEntry* entry = state.index.Find(partition, key);
  if (entry != nullptr && entry->life == BlockEntry::Life::kPresent) return true;
  if (state.CopyOf(partition, key)) {
    if (state.ReadableCopyOf(partition, key, now)) return true;
    answer_.state = BlockState::kLoadFailed;
    return false;
  }
  if (entry != nullptr) {
    answer_.state = BlockState::kPending;
    return false;
  }
  const RemovalReason reason = state.removed.ReasonOf(partition, key);
  if (reason != RemovalReason::kNone) {
    answer_.state = StateOfRemoved(reason);
    answer_.removed_ago = state.removed.AgeOf(partition, key, now);
  }
  return false;
}

void ExplainOperation::BeginWalk() {
  walking_ = true;
  for (const ExplainQuery::Region& region : query_.regions) {
    if (region.first_block <= answer_.present) region_ = &region;
  }
  CAIRN_CHECK(region_ != nullptr);
  at_region_start_ = region_->first_block == answer_.present;
}

absl::Span<const uint32_t> ExplainOperation::MissingTokens() const {
  return absl::MakeConstSpan(query_.tokens)
      .subspan(size_t{answer_.present} * answer_.block_tokens, answer_.block_tokens);
}

bool ExplainOperation::StandsThere(const BlockEntry& entry) const {
  if (entry.partition != (region_->is_public ? public_ : own_)) return false;
  if (entry.scope->scope_digest != region_->scope_digest) return false;
  if (answer_.present == 0) return entry.family == nullptr;
  return entry.family != nullptr && entry.family->id.key == query_.keys[answer_.present - 1];
}

void ExplainOperation::Look(const BlockEntry& entry) {
  if (entry.life != BlockEntry::Life::kPresent || !entry.HasTokens()) return;
  if (entry.name_space != record_ || entry.epoch != epoch_) return;
  if (StandsThere(entry)) {
    Compare(entry);
    return;
  }
  // Another scope's block of this tenant at the same depth, under the same block or none.
  if (!at_region_start_ || entry.partition != own_ || region_->is_public) return;
  if (entry.scope->scope_digest == region_->scope_digest) return;
  const bool same_place =
      answer_.present == 0
          ? entry.family == nullptr
          : entry.family != nullptr && entry.family->id.key == query_.keys[answer_.present - 1];
  if (!same_place || !entry.SameTokens(MissingTokens())) return;
  answer_.other_scope = BlockScope{.digest = entry.scope->scope_digest,
                                   .adapter = entry.scope->adapter,
                                   .salt = entry.scope->salt};
}

void ExplainOperation::Compare(const BlockEntry& entry) {
  ++answer_.candidates;
  const absl::Span<const uint32_t> asked = MissingTokens();
  const absl::Span<const uint32_t> held(entry.tokens.get(), asked.size());
  const auto common = static_cast<uint32_t>(
      std::mismatch(asked.begin(), asked.end(), held.begin()).first - asked.begin());
  const auto common_at_end = static_cast<uint32_t>(
      std::mismatch(asked.rbegin(), asked.rend() - common, held.rbegin()).first - asked.rbegin());
  if (answer_.nearest.has_value() &&
      std::pair(answer_.nearest->common_tokens, answer_.nearest->common_at_end) >=
          std::pair(common, common_at_end)) {
    return;
  }
  answer_.nearest = ExplainAnswer::Nearest{.key = entry.key,
                                           .tokens = {held.begin(), held.end()},
                                           .common_tokens = common,
                                           .common_at_end = common_at_end};
}

}  // namespace cairn::node
