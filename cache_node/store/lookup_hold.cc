// LookupOperation: leases, and loads of blocks that are only on the device or on disk.
#include <algorithm>
#include <utility>

#include "cache_node/store/lookup_operation.h"
#include "common/base/check.h"
#include "common/wire/limits.h"

namespace cairn::node {

void LookupOperation::Restart() {
  for (PromptAnswer& prompt : answer_.prompts) prompt.present = 0;
  prompt_ = 0;
  block_ = 0;
  consecutive_ = true;
  reachable_ = true;
  granted_ = true;
  disk_hits_ = 0;
  device_hits_ = 0;
}

// The lease of the answer before goes on, if it is still there; else there is a new one.
void LookupOperation::BeginResume(StoreState* state, absl::Time now) {
  const TenantIndex tenant = state->ledger.Find(tenant_);
  Lease* lease = tenant == 0 ? nullptr : state->leases.Find(*query_.resume, tenant, now);
  if (lease == nullptr || lease->ended || lease->leased.size() != query_.prompts.size()) return;
  lease_ = lease->id;
  answer_.lease = lease->id;
  answer_.lease_ttl = lease->ttl;
  std::fill(lease->leased.begin(), lease->leased.end(), 0);
  for (std::vector<uint32_t>& places : lease->places) places.clear();
  untrimmed_ = lease->links.size();
}

bool LookupOperation::StepHold(StoreState* state, absl::Time now) {
  CAIRN_CHECK(!seeker_.waits());
  if (!std::exchange(holding_, true)) {
    Restart();
    if (query_.resume.has_value()) BeginResume(state, now);
  }
  Release(state);
  if (!Begin(*state)) ForgetNamespace();
  for (size_t i = 0; i < BlockStore::kStepsPerLock && !AtEnd(); ++i) {
    if (answer_of_prompt().blocks.empty()) {
      ++prompt_;
      continue;
    }
    if (Hold(state, Judge(*state, now), now) == Verdict::kAgain) return false;
    Release(state);
    seeker_.NextBlock();
  }
  if (!AtEnd()) return false;
  if (untrimmed_.has_value() && !StepTrim(state, now)) return false;
  CloseLease(state, now);
  return true;
}

// Loads and leases the block at the cursor, as far as that is wanted and can be, and goes on.
LookupOperation::Verdict LookupOperation::Hold(StoreState* state, Found found, absl::Time now) {
  if (found.copy && reachable_ && !query_.resident_only) {
    BlockEntry* loading = nullptr;
    const SpaceSeeker::Verdict verdict = StartLoad(state, found.copy, now, &loading);
    if (verdict == SpaceSeeker::Verdict::kAgain) return Verdict::kAgain;
    if (loading != nullptr) {
      found = Found{.entry = nullptr, .pending = loading};
      answer_of_prompt().blocks[block_] = {.state = BlockState::kPending};
    } else {
      state->counters->loads_refused.fetch_add(1, std::memory_order_relaxed);
    }
  }
  if (query_.lease.has_value()) {
    const bool loading = query_.hold_pending && found.pending != nullptr &&
                         found.pending->life == BlockEntry::Life::kLoading;
    granted_ = granted_ && reachable_ && (found.entry != nullptr || loading);
    if (found.entry != nullptr || loading) {
      Grant(state, loading ? found.pending : found.entry, now);
    }
  }
  Advance(found);
  return Verdict::kNext;
}

bool LookupOperation::MayLoad(const StoreState& state, const StoreState::Copy& copy) const {
  if (state.disk.loading >= state.disk.options.loads_max || !state.CanLoad(copy)) return false;
  const DiskIndex& tier = state.IndexOf(copy);
  const DiskNode& node = tier.At(copy.handle);
  // Of a scope that is being cleared nothing comes back into host memory behind the sweep.
  if (state.disk.fences.Held(*tier.scopes().At(node.scope).scope)) return false;
  return copy.on_device || (state.disk.open && !node.dying);
}

// `*loading` stays null when it is refused.
SpaceSeeker::Verdict LookupOperation::StartLoad(StoreState* state, const StoreState::Copy& copy,
                                                absl::Time now, BlockEntry** loading) {
  if (!MayLoad(*state, copy)) return SpaceSeeker::Verdict::kNone;
  const DiskNode& node = state->IndexOf(copy).At(copy.handle);
  const DiskScopeRecord& scope = state->IndexOf(copy).scopes().At(node.scope);
  const SlotClass slot_class{.tenant = state->namespaces.PartitionAt(scope.partition).tenant,
                             .slot_bytes = scope.block_bytes};
  ClassSpace* space = state->slots.Of(slot_class);
  const EvictionPolicy::BlockTraits traits{.key = PolicyKey(query_.prompts[prompt_].keys[block_]),
                                           .depth = node.depth,
                                           .tokens = record_->map.layout().block_tokens,
                                           .bytes = scope.block_bytes,
                                           .priority = node.priority};
  if (!space->policy->Admits(traits, Request(state), nullptr) ||
      !state->ledger.TryReserve(slot_class.tenant, slot_class.slot_bytes)) {
    state->slots.DropIfUnused(slot_class);
    return SpaceSeeker::Verdict::kNone;
  }
  // What is before it must not make room for it.
  if (node.has_parent) {
    const ParentId parent = state->ParentOf(copy);
    held_ = state->index.Find(parent.partition, parent.key);
    if (held_ != nullptr) state->Pin(held_);
  }
  const uint64_t index_bytes = BlockEntry::IndexBytes(record_->map, traits.tokens) +
                               scope.scope->adapter.size() + scope.scope->salt.size();
  // A request asks for it now, and its copy stays: it needs its room for as long as it is read.
  SlotRef slot;
  const SpaceSeeker::Verdict verdict = seeker_.Seek(state, space, {}, index_bytes, &slot);
  if (verdict != SpaceSeeker::Verdict::kSlot) {
    state->ledger.EndReserve(slot_class.tenant, slot_class.slot_bytes);
    state->slots.DropIfUnused(slot_class);
    return verdict;
  }
  *loading = state->AddLoading(copy, space, slot, Request(state), now);
  return verdict;
}

void LookupOperation::Release(StoreState* state) {
  if (held_ == nullptr) return;
  state->Unpin(std::exchange(held_, nullptr));
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
  lease->places.resize(query_.prompts.size());
  lease->request = Request(state);
  lease_ = lease->id;
  answer_.lease = lease->id;
  answer_.lease_ttl = lease->ttl;
  return state->leases.Add(std::move(lease));
}

void LookupOperation::Grant(StoreState* state, BlockEntry* entry, absl::Time now) {
  if (granted_) {
    Lease* lease = LeaseOf(state, now);
    const std::optional<uint32_t> place =
        lease == nullptr ? std::nullopt : state->AddToLease(lease, entry);
    granted_ = place.has_value();
    if (granted_) {
      ++lease->leased[prompt_];
      lease->places[prompt_].push_back(*place);
      if (untrimmed_.has_value()) resumed_.insert(entry->key);
    }
  }
  PromptAnswer& prompt = answer_of_prompt();
  if (granted_) {
    ++prompt.leased;
  } else if (entry->life == BlockEntry::Life::kPresent) {
    prompt.blocks[block_].state = BlockState::kNotLeased;
  }
}

// Gives back what the resumed lease held and was not granted again.
bool LookupOperation::StepTrim(StoreState* state, absl::Time now) {
  Lease* lease = state->leases.Find(*lease_, tenant_index_, now);
  if (lease == nullptr || lease->ended) return true;
  for (size_t i = 0; i < BlockStore::kStepsPerLock; ++i) {
    if (*untrimmed_ == 0) return true;
    LeaseLink& link = lease->links[--*untrimmed_];
    if (link.entry != nullptr &&
        (!resumed_.contains(link.entry->key) || link.entry->life == BlockEntry::Life::kGone)) {
      state->DropFromLease(lease, &link);
    }
  }
  return *untrimmed_ == 0;
}

// It was revoked or expired while it was built, or holds nothing.
void LookupOperation::ForgetLease() {
  answer_.lease.reset();
  answer_.lease_ttl = absl::ZeroDuration();
  for (PromptAnswer& prompt : answer_.prompts) {
    for (uint32_t i = 0; i < prompt.leased; ++i) {
      BlockState& state = prompt.blocks[i].state;
      if (state == BlockState::kHost) state = BlockState::kNotLeased;
    }
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
  if (lease->blocks.empty()) {
    // It was made for a block that the budget then refused, or what it waited for has failed.
    state->EndLease(lease, /*used=*/false, now);
    lease->forgets = now;
    state->leases.Reorder(lease);
    ForgetLease();
    return;
  }
  lease->request = Request(state);
  for (Lease::Reader& reader : lease->readers) reader.expires = now + lease->ttl;
  state->leases.Reorder(lease);
}

}  // namespace cairn::node
