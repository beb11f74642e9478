#include "cache_node/store/lookup_operation.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace cairn::node {

BlockState StateOfRemoved(RemovalReason reason) {
  switch (reason) {
    case RemovalReason::kNone:
      return BlockState::kNeverSeen;
    case RemovalReason::kEvicted:
      return BlockState::kEvicted;
    case RemovalReason::kQuarantined:
      return BlockState::kQuarantined;
    case RemovalReason::kDeleted:
    case RemovalReason::kCleared:
    case RemovalReason::kRetired:
    case RemovalReason::kExpired:
      return BlockState::kDeleted;
  }
  return BlockState::kNeverSeen;
}

LookupOperation::LookupOperation(absl::string_view tenant, const Fingerprint& fingerprint,
                                 const LookupQuery& query)
    : tenant_(tenant), fingerprint_(fingerprint), query_(query) {
  answer_.prompts.resize(query.prompts.size());
  for (size_t i = 0; i < query.prompts.size(); ++i) {
    answer_.prompts[i].blocks.resize(query.prompts[i].keys.size());
  }
}

// False when the namespace is not there (any more).
bool LookupOperation::Begin(const StoreState& state) {
  const NamespaceRecord* record = state.namespaces.FindLive(fingerprint_);
  if (record == nullptr) return false;
  const uint64_t epoch = record->epoch.load(std::memory_order_relaxed);
  if (record_ == nullptr) {
    record_ = record;
    epoch_ = epoch;
    answer_.namespace_known = true;
    answer_.block_tokens = record->map.layout().block_tokens;
  }
  if (epoch != epoch_) return false;
  tenant_index_ = state.ledger.Find(tenant_);
  own_ = tenant_index_ == 0 ? 0 : state.namespaces.FindPartition(*record, tenant_index_);
  const TenantIndex everyone = state.ledger.Find(kPublicTenant);
  public_ = everyone == 0 ? 0 : state.namespaces.FindPartition(*record, everyone);
  if (public_ == own_) public_ = 0;
  return true;
}

void LookupOperation::ForgetNamespace() {
  answer_.namespace_known = false;
  answer_.block_tokens = 0;
  for (PromptAnswer& prompt : answer_.prompts) {
    prompt.present = 0;
    prompt.leased = 0;
    for (BlockAnswer& block : prompt.blocks) block = {.state = BlockState::kNamespaceUnknown};
  }
  prompt_ = query_.prompts.size();
}

// None, which is no block's, where there are too few or too many.
absl::Span<const uint32_t> LookupOperation::TokensAtCursor(size_t block_tokens) const {
  const PromptQuery& prompt = query_.prompts[prompt_];
  const absl::Span<const uint32_t> tokens = prompt.tokens;
  if (tokens.size() != prompt.keys.size() * block_tokens) return {};
  return tokens.subspan(block_ * block_tokens, block_tokens);
}

bool LookupOperation::TokensDiffer(const BlockEntry& entry) const {
  if (query_.prompts[prompt_].tokens.empty() || !entry.HasTokens()) return false;
  const size_t block_tokens = entry.map->layout().block_tokens;
  const absl::Span<const uint32_t> tokens = TokensAtCursor(block_tokens);
  return tokens.size() != block_tokens || !entry.SameTokens(tokens);
}

// What is on disk is compared when it was loaded.
bool LookupOperation::TokensDiffer(const StoreState& state, const StoreState::Copy& copy) const {
  if (!copy.on_device || query_.prompts[prompt_].tokens.empty()) return false;
  return !state.device.SameTokens(copy.handle, TokensAtCursor(record_->map.layout().block_tokens));
}

bool LookupOperation::JudgeIn(const StoreState& state, PartitionIndex partition,
                              const BlockKey& key, absl::Time now, Found* found,
                              std::optional<BlockAnswer>* lesser) {
  BlockAnswer& answer = answer_of_prompt().blocks[block_];
  BlockEntry* entry = state.index.Find(partition, key);
  if (entry != nullptr && entry->life == BlockEntry::Life::kPresent) {
    if (!TokensDiffer(*entry)) {
      answer = {.state = BlockState::kHost,
                .from_disk = entry->from_disk,
                .from_device = entry->from_device};
      found->entry = entry;
      return true;
    }
    ++collisions_;
    *lesser = {.state = BlockState::kTokensDiffer};
    return false;
  }
  if (entry != nullptr) {
    if (!lesser->has_value() || (*lesser)->state != BlockState::kPending) {
      *lesser = {.state = BlockState::kPending, .pending_for = now - entry->reserved_at};
      found->pending = entry;
    }
    return false;
  }
  if (const StoreState::Copy copy = state.ReadableCopyOf(partition, key, now)) {
    if (TokensDiffer(state, copy)) {
      ++collisions_;
      *lesser = {.state = BlockState::kTokensDiffer};
      return false;
    }
    answer = {.state = copy.on_device ? BlockState::kDevice : BlockState::kDisk};
    found->copy = copy;
    return true;
  }
  if (state.CopyOf(partition, key)) {
    if (!lesser->has_value()) *lesser = {.state = BlockState::kLoadFailed};
    return false;
  }
  if (!lesser->has_value() || (*lesser)->state == BlockState::kNeverSeen) {
    *lesser = {.state = StateOfRemoved(state.removed.ReasonOf(partition, key))};
  }
  return false;
}

// Says what the block at the cursor is, and where.
LookupOperation::Found LookupOperation::Judge(const StoreState& state, absl::Time now) {
  const BlockKey& key = query_.prompts[prompt_].keys[block_];
  Found found;
  std::optional<BlockAnswer> lesser;
  for (const PartitionIndex partition : {own_, public_}) {
    if (partition == 0) continue;
    if (!JudgeIn(state, partition, key, now, &found, &lesser)) continue;
    found.pending = nullptr;
    return found;
  }
  answer_of_prompt().blocks[block_] = lesser.value_or(BlockAnswer{});
  return found;
}

void LookupOperation::Advance(const Found& found) {
  PromptAnswer& prompt = answer_of_prompt();
  const bool loading =
      found.pending != nullptr && found.pending->life == BlockEntry::Life::kLoading;
  if (found.present() && consecutive_) {
    ++prompt.present;
    const bool on_device = found.entry == nullptr ? found.copy.on_device : found.entry->from_device;
    const bool on_disk = found.entry == nullptr ? !on_device : found.entry->from_disk;
    if (on_device) ++device_hits_;
    if (on_disk) ++disk_hits_;
  }
  consecutive_ = consecutive_ && found.present();
  reachable_ = reachable_ && (found.present() || loading);
  if (++block_ < prompt.blocks.size()) return;
  ++prompt_;
  block_ = 0;
  consecutive_ = true;
  reachable_ = true;
  granted_ = true;
}

bool LookupOperation::Step(const StoreState& state, absl::Time now) {
  if (!Begin(state)) ForgetNamespace();
  for (size_t i = 0; i < BlockStore::kStepsPerLock && !AtEnd(); ++i) {
    if (answer_of_prompt().blocks.empty()) {
      ++prompt_;
      continue;
    }
    const Found found = Judge(state, now);
    if (query_.promote && reachable_ && found.copy) wants_loads_ = true;
    Advance(found);
  }
  return AtEnd();
}

bool LookupOperation::StepTouch(StoreState* state) {
  if (!std::exchange(touching_, true)) {
    prompt_ = 0;
    block_ = answer_.prompts.empty() ? 0 : answer_.prompts[0].present;
  }
  if (!answer_.namespace_known || !Begin(*state)) return true;
  for (size_t i = 0; i < BlockStore::kStepsPerLock && !AtEnd(); ++i) {
    if (block_ == 0) {
      if (++prompt_ < query_.prompts.size()) block_ = answer_of_prompt().present;
      continue;
    }
    const BlockKey& key = query_.prompts[prompt_].keys[--block_];
    for (const PartitionIndex partition : {own_, public_}) {
      BlockEntry* entry = partition == 0 ? nullptr : state->index.Find(partition, key);
      if (entry == nullptr && partition != 0) {
        const StoreState::Copy copy = state->CopyOf(partition, key);
        if (!copy) continue;
        state->UsedThere(copy, Request(state));
        break;
      }
      if (entry == nullptr || entry->life != BlockEntry::Life::kPresent) continue;
      state->Used(entry, Request(state));
      break;
    }
  }
  return AtEnd();
}

BlockEntry* LookupOperation::FindOne(const StoreState& state, absl::Time now) {
  if (Begin(state)) return Judge(state, now).entry;
  ForgetNamespace();
  return nullptr;
}

LookupAnswer LookupOperation::Finish(StoreCounters* counters) {
  if (!query_.counted) return std::move(answer_);
  uint64_t blocks = 0;
  uint64_t hits = 0;
  for (const PromptAnswer& prompt : answer_.prompts) {
    blocks += prompt.blocks.size();
    hits += prompt.present;
  }
  counters->lookups.fetch_add(1, std::memory_order_relaxed);
  counters->looked_up_tokens.fetch_add(blocks * answer_.block_tokens, std::memory_order_relaxed);
  counters->hit_tokens.fetch_add(hits * answer_.block_tokens, std::memory_order_relaxed);
  counters->hit_tokens_disk.fetch_add(disk_hits_ * answer_.block_tokens, std::memory_order_relaxed);
  counters->hit_tokens_device.fetch_add(device_hits_ * answer_.block_tokens,
                                        std::memory_order_relaxed);
  counters->token_collisions.fetch_add(collisions_, std::memory_order_relaxed);
  return std::move(answer_);
}

}  // namespace cairn::node
