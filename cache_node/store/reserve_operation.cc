#include "cache_node/store/reserve_operation.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/hex.h"
#include "common/wire/limits.h"

namespace cairn::node {
ReserveOperation::ReserveOperation(absl::string_view tenant, const Fingerprint& fingerprint,
                                   const ReserveQuery& query)
    : tenant_(tenant), fingerprint_(fingerprint), query_(query) {
  answer_.outcomes.resize(query.keys.size(), ReserveOutcome::kUndecided);
  answer_.in_progress_for.resize(query.keys.size());
  answer_.stays.resize(query.keys.size(), StayOutcome::kNotAsked);
}

absl::Status ReserveOperation::Validate(const ReserveQuery& query) {
  if (query.keys.empty() || query.keys.size() > kBlocksPerReserveMax) {
    return absl::InvalidArgumentError(absl::StrCat("a reserve has 1 to ", kBlocksPerReserveMax,
                                                   " keys, not ", query.keys.size()));
  }
  absl::flat_hash_set<BlockKey> seen;
  seen.reserve(query.keys.size());
  for (size_t i = 0; i < query.keys.size(); ++i) {
    if (seen.insert(query.keys[i]).second) continue;
    return absl::InvalidArgumentError(absl::StrCat("key ", i, " (", ToHex(query.keys[i].view()),
                                                   ") is in the reserve twice: send each once"));
  }
  if (query.parent.has_value() && seen.contains(*query.parent)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the parent ", ToHex(query.parent->view()), " is one of the keys"));
  }
  if (!query.parent.has_value() && !query.enters_scope) {
    return absl::InvalidArgumentError("blocks that do not begin their scope need a parent");
  }
  return absl::OkStatus();
}

absl::Status ReserveOperation::Begin(StoreState* state, absl::Time now) {
  NamespaceRecord* record = state->namespaces.FindLive(fingerprint_);
  const uint64_t epoch = record == nullptr ? 0 : record->epoch.load(std::memory_order_relaxed);
  if (record == nullptr || (record_ != nullptr && epoch != epoch_)) {
    return absl::FailedPreconditionError(
        absl::StrCat("namespace ", ToHex(fingerprint_.view()),
                     " is not registered here, or retired: register it first"));
  }
  if (record_ == nullptr) {
    const size_t tokens = query_.keys.size() * record->map.layout().block_tokens;
    if (!query_.tokens.empty() && query_.tokens.size() != tokens) {
      return absl::InvalidArgumentError(
          absl::StrCat(query_.tokens.size(), " tokens for ", query_.keys.size(), " blocks of ",
                       record->map.layout().block_tokens, ": send exactly ", tokens));
    }
    tenant_index_ = state->ledger.IndexOf(tenant_);
    partition_ = tenant_index_ == 0 ? 0 : state->namespaces.PartitionOf(record, tenant_index_);
    if (partition_ == 0 || !MakeTokenRoom(state)) {
      return absl::ResourceExhaustedError(
          partition_ == 0 ? absl::StrCat("this node knows no more tenants than it does")
                          : absl::StrCat("this node has ", state->tokens.size(),
                                         " write tokens out, as many as it may: retry later"));
    }
    record_ = record;
    epoch_ = epoch;
  }
  if (token_.has_value() && state->tokens.Find(*token_, tenant_index_, now) == nullptr) {
    return absl::AbortedError("the token expired while its blocks were being reserved");
  }
  return absl::OkStatus();
}

absl::Span<const uint32_t> ReserveOperation::TokensAt(size_t block) const {
  if (query_.tokens.empty()) return {};
  const size_t block_tokens = record_->map.layout().block_tokens;
  return absl::MakeConstSpan(query_.tokens).subspan(block * block_tokens, block_tokens);
}

bool ReserveOperation::Fail(StoreState* state, absl::Status status) {
  status_ = std::move(status);
  Release(state);
  if (!token_.has_value()) return true;
  if (Token* token = state->tokens.Find(*token_, tenant_index_, absl::InfinitePast())) {
    state->CloseToken(token);
  }
  return true;
}

void ReserveOperation::Release(StoreState* state) {
  if (held_ == nullptr) return;
  state->Unpin(std::exchange(held_, nullptr));
}

bool ReserveOperation::Step(StoreState* state, absl::Time now) {
  CAIRN_CHECK(!seeker_.waits());
  Release(state);
  if (absl::Status status = Begin(state, now); !status.ok()) return Fail(state, status);
  for (size_t i = 0; i < BlockStore::kStepsPerLock && next_ < query_.keys.size(); ++i) {
    const Verdict verdict = Decide(state, now);
    if (verdict == Verdict::kAgain) return false;
    Release(state);
    if (verdict == Verdict::kStop) return true;
    if (query_.stays_until_unix_ms != 0) answer_.stays[next_] = Stay(state);
    ++next_;
    seeker_.NextBlock();
  }
  return next_ == query_.keys.size();
}

StayOutcome ReserveOperation::Stay(StoreState* state) const {
  BlockEntry* entry = state->index.Find(partition_, query_.keys[next_]);
  return entry == nullptr ? StayOutcome::kNotThere : state->Stay(entry, query_.stays_until_unix_ms);
}

ReserveOperation::Verdict ReserveOperation::Refuse(ReserveOutcome outcome) {
  answer_.outcomes[next_] = outcome;
  return Verdict::kStop;
}

bool ReserveOperation::FindIn(const StoreState& state, PartitionIndex partition,
                              const BlockKey& key, Parent* parent) const {
  const bool own_scope = next_ == 0 && !query_.enters_scope;
  if (BlockEntry* entry = state.index.Find(partition, key); entry != nullptr) {
    if (own_scope && entry->scope->scope_digest != query_.scope_digest) return false;
    *parent = {.id = ParentId{partition, key},
               .entry = entry,
               .depth = entry->depth + 1,
               .expires_unix_ms = entry->retention.expires_unix_ms};
    return true;
  }
  const StoreState::Copy copy = state.ReadableCopyOf(partition, key, absl::InfiniteFuture());
  if (!copy) return false;
  const DiskNode& node = state.IndexOf(copy).At(copy.handle);
  const DiskScope& scope = *state.IndexOf(copy).scopes().At(node.scope).scope;
  if (own_scope && scope.scope_digest != query_.scope_digest) return false;
  const ParentId id{partition, key};
  if (!state.families.FitsUnder(id, node.depth + 1)) return false;
  *parent = {
      .id = id, .entry = nullptr, .depth = node.depth + 1, .expires_unix_ms = node.expires_unix_ms};
  return true;
}

bool ReserveOperation::FindParent(const StoreState& state, Parent* parent) const {
  *parent = Parent{};
  parent->depth = static_cast<uint32_t>(next_);
  if (next_ > 0) return FindIn(state, partition_, query_.keys[next_ - 1], parent);
  if (!query_.parent.has_value()) return true;
  if (FindIn(state, partition_, *query_.parent, parent)) return true;
  if (!query_.enters_scope) return false;
  const TenantIndex everyone = state.ledger.Find(kPublicTenant);
  const PartitionIndex shared =
      everyone == 0 ? 0 : state.namespaces.FindPartition(*record_, everyone);
  return shared != 0 && FindIn(state, shared, *query_.parent, parent);
}

ReserveOperation::Verdict ReserveOperation::Decide(StoreState* state, absl::Time now) {
  if (query_.mismatch_at == next_) {
    state->counters->key_mismatches.fetch_add(1, std::memory_order_relaxed);
    return Refuse(ReserveOutcome::kKeyMismatch);
  }
  const BlockEntry* there = state->index.Find(partition_, query_.keys[next_]);
  if (there == nullptr || there->life == BlockEntry::Life::kLoading) {
    const ParentId block{partition_, query_.keys[next_]};
    // What could not be loaded just now may be written anew.
    const bool elsewhere =
        there != nullptr || state->ReadableCopyOf(block.partition, block.key, now).handle != 0;
    if (!elsewhere) return ReserveNew(state, now);
    answer_.outcomes[next_] = ReserveOutcome::kPresent;
    return Verdict::kNext;
  }
  const absl::Span<const uint32_t> tokens = TokensAt(next_);
  if (!tokens.empty() && there->HasTokens() && !there->SameTokens(tokens)) {
    state->counters->token_collisions.fetch_add(1, std::memory_order_relaxed);
    return Refuse(ReserveOutcome::kDeclined);
  }
  if (there->life == BlockEntry::Life::kPresent) {
    answer_.outcomes[next_] = ReserveOutcome::kPresent;
  } else {
    answer_.outcomes[next_] = ReserveOutcome::kInProgress;
    answer_.in_progress_for[next_] = now - there->reserved_at;
  }
  return Verdict::kNext;
}

ReserveOperation::Verdict ReserveOperation::ReserveNew(StoreState* state, absl::Time now) {
  const BlockKey& key = query_.keys[next_];
  Parent parent;
  if (!FindParent(*state, &parent)) return Refuse(ReserveOutcome::kParentMissing);
  if (!state->families.Fits({partition_, key}, parent.depth)) {
    return Refuse(ReserveOutcome::kDeclined);
  }

  prompt_blocks_ = parent.depth + static_cast<uint32_t>(query_.keys.size() - next_);
  if (!prompt_hits_.has_value()) prompt_hits_ = parent.depth;
  if (request_ == 0) request_ = state->BeginReserve(PolicyKey(key));

  const uint64_t bytes = record_->map.block_bytes();
  const SlotClass slot_class{.tenant = tenant_index_, .slot_bytes = bytes};
  if (parent.entry != nullptr) {
    held_ = parent.entry;
    state->Pin(held_);
  }
  ClassSpace* space = state->slots.Of(slot_class);
  const EvictionPolicy::BlockTraits traits{.key = PolicyKey(key),
                                           .depth = parent.depth,
                                           .tokens = record_->map.layout().block_tokens,
                                           .bytes = bytes,
                                           .priority = query_.retention.priority,
                                           .prompt_blocks = prompt_blocks_,
                                           .prompt_hits = *prompt_hits_,
                                           .parent = HandleIn(*space, parent.entry)};
  if (!space->policy->Admits(traits, request_, nullptr)) {
    state->slots.DropIfUnused(slot_class);
    return Decline(state);
  }
  const bool token_fits = token_.has_value() || MakeTokenRoom(state);
  if (!token_fits || !state->ledger.TryReserve(tenant_index_, bytes)) {
    state->slots.DropIfUnused(slot_class);
    StoreCounters& counters = *state->counters;
    counters.refused_quota.fetch_add(1, std::memory_order_relaxed);
    (token_fits ? counters.refused_quota_reserved : counters.refused_tokens)
        .fetch_add(1, std::memory_order_relaxed);
    return Refuse(ReserveOutcome::kQuota);
  }
  SlotRef slot;
  const Verdict verdict = TakeSpace(state, space, traits, &slot);
  if (verdict != Verdict::kNext) {
    state->ledger.EndReserve(tenant_index_, bytes);
    state->slots.DropIfUnused(slot_class);
    return verdict;
  }
  StoreState::NewBlock block{.name_space = record_,
                             .partition = partition_,
                             .key = key,
                             .scope_digest = query_.scope_digest,
                             .adapter = query_.adapter,
                             .salt = query_.salt,
                             .tokens = TokensAt(next_),
                             .depth = parent.depth,
                             .parent = parent.id,
                             .retention = query_.retention,
                             .provenance = query_.provenance,
                             .reserved_at = now,
                             .token = TokenFor(state, now),
                             .token_block = static_cast<uint32_t>(next_)};
  // What follows from a block goes with it.
  block.retention.expires_unix_ms =
      EarlierOf(block.retention.expires_unix_ms, parent.expires_unix_ms);
  state->AddReserved(block, space, slot);
  answer_.outcomes[next_] = ReserveOutcome::kReserved;
  return Verdict::kNext;
}

ReserveOperation::Verdict ReserveOperation::Decline(StoreState* state) {
  state->counters->declined_newcomers.fetch_add(1, std::memory_order_relaxed);
  return Refuse(ReserveOutcome::kDeclined);
}

ReserveOperation::Verdict ReserveOperation::TakeSpace(StoreState* state, ClassSpace* space,
                                                      const EvictionPolicy::BlockTraits& traits,
                                                      SlotRef* slot) {
  // The way to the disk is through host memory, and what is to stay does.
  const bool comes_in = query_.stays_until_unix_ms != 0 || state->TakesToDisk(traits.bytes);
  const uint64_t index_bytes = BlockEntry::IndexBytes(record_->map, TokensAt(next_).size()) +
                               query_.adapter.size() + query_.salt.size() +
                               StoreState::ScheduleBytes(query_.retention) +
                               BlockSchedule::kBytesPerBlock;  // An end that it takes on.
  const Newcomer newcomer{.traits = comes_in ? nullptr : &traits, .request = request_};
  switch (seeker_.Seek(state, space, newcomer, index_bytes, slot)) {
    case SpaceSeeker::Verdict::kSlot:
      return Verdict::kNext;
    case SpaceSeeker::Verdict::kAgain:
      return Verdict::kAgain;
    case SpaceSeeker::Verdict::kQuota:
      state->counters->refused_quota.fetch_add(1, std::memory_order_relaxed);
      state->counters->refused_quota_host.fetch_add(1, std::memory_order_relaxed);
      return Refuse(ReserveOutcome::kQuota);
    case SpaceSeeker::Verdict::kDeclined:
      return Decline(state);
    case SpaceSeeker::Verdict::kNone:
      break;
  }
  state->counters->refused_no_space.fetch_add(1, std::memory_order_relaxed);
  return Refuse(ReserveOutcome::kNoSpace);
}

// Closes tokens that only wait for a repeated commit. False: others have taken all.
bool ReserveOperation::MakeTokenRoom(StoreState* state) const {
  for (size_t i = 0; i < BlockStore::kStepsPerLock; ++i) {
    if (state->tokens.HasRoom(query_.keys.size())) return true;
    Token* settled = state->tokens.OldestSettled();
    if (settled == nullptr) return false;
    state->CloseToken(settled);
  }
  return state->tokens.HasRoom(query_.keys.size());
}

Token* ReserveOperation::TokenFor(StoreState* state, absl::Time now) {
  if (token_.has_value()) {
    Token* known = state->tokens.Find(*token_, tenant_index_, now);
    CAIRN_CHECK(known != nullptr);
    return known;
  }
  auto token = std::make_unique<Token>();
  token->id = state->random->New<TokenId>();
  token->tenant = tenant_index_;
  token->name_space = record_;
  token->epoch = epoch_;
  token->stamp = request_;
  token->prompt_blocks = prompt_blocks_;
  token->prompt_hits = *prompt_hits_;
  token->born = now;
  token->ttl = query_.ttl > absl::ZeroDuration()
                   ? std::min(query_.ttl, state->options.token_ttl_max)
                   : state->options.token_ttl_default;
  token->expires = now + token->ttl;
  token->blocks.resize(query_.keys.size());
  token_ = token->id;
  answer_.token = token->id;
  answer_.token_ttl = token->ttl;
  return state->tokens.Add(std::move(token));
}

absl::StatusOr<ReserveAnswer> ReserveOperation::Finish(absl::Duration retry_after) {
  CAIRN_CHECK(held_ == nullptr && !seeker_.waits());
  if (!status_.ok()) return status_;
  for (const ReserveOutcome outcome : answer_.outcomes) {
    if (outcome == ReserveOutcome::kNoSpace || outcome == ReserveOutcome::kQuota) {
      answer_.retry_after = retry_after;
    }
  }
  return std::move(answer_);
}

}  // namespace cairn::node
