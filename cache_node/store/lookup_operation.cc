#include "cache_node/store/lookup_operation.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/wire/limits.h"

namespace cairn::node {
namespace {

BlockState StateOf(RemovalReason reason) {
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
      return BlockState::kDeleted;
  }
  return BlockState::kNeverSeen;
}

}  // namespace

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

bool LookupOperation::TokensDiffer(const BlockEntry& entry) const {
  const PromptQuery& prompt = query_.prompts[prompt_];
  if (prompt.tokens.empty() || !entry.HasTokens()) return false;
  const size_t block_tokens = entry.map->layout().block_tokens;
  if (prompt.tokens.size() != prompt.keys.size() * block_tokens) return true;
  return !entry.SameTokens(
      absl::MakeConstSpan(prompt.tokens).subspan(block_ * block_tokens, block_tokens));
}

// Says what the block at the cursor is; answers its entry when it can be read.
BlockEntry* LookupOperation::Judge(const StoreState& state, absl::Time now) {
  const BlockKey& key = query_.prompts[prompt_].keys[block_];
  BlockAnswer& answer = answer_of_prompt().blocks[block_];
  std::optional<BlockAnswer> lesser;
  for (const PartitionIndex partition : {own_, public_}) {
    if (partition == 0) continue;
    BlockEntry* entry = state.index.Find(partition, key);
    if (entry != nullptr && entry->life == BlockEntry::Life::kPresent) {
      if (!TokensDiffer(*entry)) {
        answer = {.state = BlockState::kHost};
        return entry;
      }
      ++collisions_;
      lesser = {.state = BlockState::kTokensDiffer};
    } else if (entry != nullptr) {
      if (!lesser.has_value() || lesser->state != BlockState::kPending) {
        lesser = {.state = BlockState::kPending, .pending_for = now - entry->reserved_at};
      }
    } else if (!lesser.has_value() || lesser->state == BlockState::kNeverSeen) {
      lesser = {.state = StateOf(state.removed.ReasonOf(partition, key))};
    }
  }
  answer = lesser.value_or(BlockAnswer{});
  return nullptr;
}

void LookupOperation::Advance(bool present) {
  PromptAnswer& prompt = answer_of_prompt();
  if (present && consecutive_) ++prompt.present;
  consecutive_ = consecutive_ && present;
  if (++block_ < prompt.blocks.size()) return;
  ++prompt_;
  block_ = 0;
  consecutive_ = true;
  granted_ = true;
}

bool LookupOperation::Step(const StoreState& state, absl::Time now) {
  if (!Begin(state)) ForgetNamespace();
  for (size_t i = 0; i < BlockStore::kStepsPerLock && !AtEnd(); ++i) {
    if (answer_of_prompt().blocks.empty()) {
      ++prompt_;
      continue;
    }
    Advance(Judge(state, now) != nullptr);
  }
  return AtEnd();
}

// The lease being built, made at its first block; null when there cannot be one.
Lease* LookupOperation::LeaseOf(StoreState* state, absl::Time now) {
  if (lease_refused_) return nullptr;
  if (lease_.has_value()) {
    Lease* lease = state->leases.Find(*lease_, tenant_index_, now);
    return lease == nullptr || lease->ended ? nullptr : lease;
  }
  const uint32_t readers = std::clamp(query_.lease->readers, 1u, kReadersPerLeaseMax);
  tenant_index_ = state->ledger.IndexOf(tenant_);
  if (tenant_index_ == 0 || !state->leases.MakeRoom(readers)) {
    lease_refused_ = true;
    return nullptr;
  }
  auto lease = std::make_unique<Lease>();
  lease->id = state->random->New<LeaseId>();
  lease->tenant = tenant_index_;
  lease->name_space = state->namespaces.FindLive(fingerprint_);
  lease->ttl = query_.lease->ttl > absl::ZeroDuration()
                   ? std::min(query_.lease->ttl, state->options.lease_ttl_max)
                   : state->options.lease_ttl_default;
  lease->readers.assign(readers, {.expires = now + lease->ttl});
  lease->leased.resize(query_.prompts.size());
  lease_ = lease->id;
  answer_.lease = lease->id;
  answer_.lease_ttl = lease->ttl;
  return state->leases.Add(std::move(lease));
}

void LookupOperation::Grant(StoreState* state, BlockEntry* entry, absl::Time now) {
  granted_ = granted_ && consecutive_;
  if (granted_) {
    Lease* lease = LeaseOf(state, now);
    granted_ = lease != nullptr && state->AddToLease(lease, entry);
    if (granted_) ++lease->leased[prompt_];
  }
  PromptAnswer& prompt = answer_of_prompt();
  if (granted_) {
    ++prompt.leased;
  } else {
    prompt.blocks[block_].state = BlockState::kNotLeased;
  }
}

bool LookupOperation::StepLease(StoreState* state, absl::Time now) {
  CAIRN_CHECK(query_.lease.has_value());
  if (!Begin(*state)) ForgetNamespace();
  for (size_t i = 0; i < BlockStore::kStepsPerLock && !AtEnd(); ++i) {
    if (answer_of_prompt().blocks.empty()) {
      ++prompt_;
      continue;
    }
    BlockEntry* entry = Judge(*state, now);
    if (entry != nullptr) Grant(state, entry, now);
    Advance(entry != nullptr);
  }
  if (!AtEnd()) return false;
  CloseLease(state, now);
  return true;
}

// It was revoked or expired while it was built, or holds nothing.
void LookupOperation::ForgetLease() {
  answer_.lease.reset();
  answer_.lease_ttl = absl::ZeroDuration();
  for (PromptAnswer& prompt : answer_.prompts) {
    for (uint32_t i = 0; i < prompt.leased; ++i) prompt.blocks[i].state = BlockState::kNotLeased;
    prompt.leased = 0;
  }
}

// The lease's time begins when the answer is complete.
void LookupOperation::CloseLease(StoreState* state, absl::Time now) {
  if (!lease_.has_value()) return;
  Lease* lease = state->leases.Find(*lease_, tenant_index_, now);
  if (lease == nullptr || lease->ended || !answer_.namespace_known) {
    if (lease != nullptr) state->RevokeLease(lease, now);
    ForgetLease();
    return;
  }
  lease->usable = lease->leased;
  if (lease->links.empty()) {
    // It was made for a block that the budget then refused.
    state->EndLease(lease, /*used=*/false, now);
    lease->forgets = now;
    state->leases.Reorder(lease);
    ForgetLease();
    return;
  }
  for (Lease::Reader& reader : lease->readers) reader.expires = now + lease->ttl;
  state->leases.Reorder(lease);
}

bool LookupOperation::StepTouch(StoreState* state) {
  if (use_ == 0) {
    use_ = state->NextStamp();
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
      if (entry == nullptr || entry->life != BlockEntry::Life::kPresent) continue;
      state->slots.Used(entry, use_);
      break;
    }
  }
  return AtEnd();
}

BlockEntry* LookupOperation::FindOne(const StoreState& state, absl::Time now) {
  if (Begin(state)) return Judge(state, now);
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
  counters->token_collisions.fetch_add(collisions_, std::memory_order_relaxed);
  return std::move(answer_);
}

}  // namespace cairn::node
