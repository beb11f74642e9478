// BlockStore: reads and writes.
#include <algorithm>
#include <utility>

#include "cache_node/store/block_store.h"
#include "cache_node/store/commit_operation.h"
#include "cache_node/store/describe_operation.h"
#include "cache_node/store/explain_operation.h"
#include "cache_node/store/lease_operations.h"
#include "cache_node/store/lookup_operation.h"
#include "cache_node/store/namespace_difference.h"
#include "cache_node/store/reserve_operation.h"
#include "cache_node/store/run_steps.h"
#include "cache_node/store/space_path.h"
#include "cache_node/store/store_state.h"
#include "cache_node/store/write_operations.h"
#include "common/base/check.h"

namespace cairn::node {

LookupAnswer BlockStore::Lookup(absl::string_view tenant, const Fingerprint& fingerprint,
                                const LookupQuery& query) {
  LookupOperation lookup(tenant, fingerprint, query);
  if (query.lease.has_value()) {
    RunSeeking(&lookup, &LookupOperation::StepHold);
    TellRequest(&lookup);
    RunChores();
    return lookup.Finish(counters_);
  }
  bool done = false;
  while (!done) {
    const absl::Time now = time_->Now();
    absl::ReaderMutexLock lock(&mutex_);
    done = lookup.Step(*state_, now);
  }
  if (lookup.wants_loads()) {
    RunSeeking(&lookup, &LookupOperation::StepHold);
    RunChores();
  }
  TellRequest(&lookup);
  if (query.touch) {
    RunSteps([&lookup](StoreState* state, absl::Time) { return lookup.StepTouch(state); });
  }
  return lookup.Finish(counters_);
}

void BlockStore::TellRequest(LookupOperation* lookup) {
  if (!lookup->IsRequest()) return;
  RunSteps([lookup](StoreState* state, absl::Time) { return lookup->StepSeen(state); });
}

absl::StatusOr<LeaseStatus> BlockStore::GetLease(absl::string_view tenant,
                                                 const LeaseId& lease) const {
  const absl::Time now = time_->Now();
  absl::ReaderMutexLock lock(&mutex_);
  return GetLeaseStatus(*state_, tenant, lease, now);
}

absl::StatusOr<absl::Duration> BlockStore::RenewLease(absl::string_view tenant,
                                                      const LeaseId& lease, uint32_t reader,
                                                      absl::Duration ttl) {
  const absl::Time now = time_->Now();
  Section section(this);
  return RenewShare(&*state_, tenant, lease, reader, ttl, now);
}

absl::StatusOr<LeaseStatus> BlockStore::EndLease(absl::string_view tenant, const LeaseId& lease,
                                                 uint32_t reader,
                                                 absl::Span<const uint32_t> usable_blocks) {
  absl::StatusOr<LeaseStatus> status;
  {
    const absl::Time now = time_->Now();
    Section section(this);
    status = EndShare(&*state_, tenant, lease, reader, usable_blocks, now);
  }
  RunChores();
  return status;
}

absl::StatusOr<BlockStore::PinAnswer> BlockStore::PinForRead(absl::string_view tenant,
                                                             const Fingerprint& fingerprint,
                                                             const std::optional<LeaseId>& lease,
                                                             const BlockKey& key) {
  const absl::Time now = time_->Now();
  Section section(this);
  BlockAnswer found;
  const absl::StatusOr<BlockEntry*> entry =
      FindReadable(*state_, tenant, fingerprint, lease, key, now, &found);
  if (!entry.ok()) return entry.status();
  PinAnswer answer;
  answer.state = found.state;
  if (*entry != nullptr) {
    state_->Pin(*entry);
    answer.pin = BlockPin(this, *entry, state_->slots.Bytes(**entry));
  }
  return answer;
}

absl::StatusOr<std::vector<BlockPin>> BlockStore::LeasePins(absl::string_view tenant,
                                                            const Fingerprint& fingerprint,
                                                            const LeaseId& lease, uint32_t prompt,
                                                            uint32_t first_block,
                                                            uint32_t count_max) {
  std::vector<BlockPin> pins;
  absl::Status status;
  RunSteps([&](StoreState* state, absl::Time now) {
    const size_t wanted = std::min<size_t>(kStepsPerLock, count_max - pins.size());
    const absl::StatusOr<LeasedRun> run =
        FindLeasedRun(*state, tenant, fingerprint, lease, prompt,
                      first_block + static_cast<uint32_t>(pins.size()), wanted, now);
    status = run.status();
    if (!run.ok()) return true;
    for (BlockEntry* entry : run->entries) {
      state->Pin(entry);
      pins.push_back(BlockPin(this, entry, state->slots.Bytes(*entry)));
    }
    return run->ends || pins.size() == count_max;
  });
  if (!status.ok()) return status;
  return pins;
}

BlockRecords BlockStore::DescribeBlocks(absl::string_view tenant, const Fingerprint& fingerprint,
                                        absl::Span<const BlockKey> keys,
                                        uint64_t tokens_max) const {
  DescribeOperation describe(tenant, fingerprint, keys, tokens_max);
  bool done = false;
  while (!done) {
    absl::ReaderMutexLock lock(&mutex_);
    done = describe.Step(*state_);
  }
  return describe.Take();
}

ExplainAnswer BlockStore::Explain(absl::string_view tenant, const Fingerprint& fingerprint,
                                  const ExplainQuery& query) const {
  ExplainOperation explain(tenant, fingerprint, query);
  bool done = false;
  while (!done) {
    const absl::Time now = time_->Now();
    absl::ReaderMutexLock lock(&mutex_);
    done = explain.Step(*state_, now);
  }
  return explain.Take();
}

std::vector<std::pair<std::string, std::string>> BlockStore::NamespacesNear(
    absl::string_view tenant, const Namespace& fields, size_t max) const {
  std::vector<std::pair<std::string, const NamespaceRecord*>> known;
  {
    absl::ReaderMutexLock lock(&mutex_);
    known = state_->namespaces.LabelsOfTenant(tenant);
    if (tenant != kPublicTenant) {
      for (auto& label : state_->namespaces.LabelsOfTenant(kPublicTenant)) {
        known.push_back(std::move(label));
      }
    }
  }
  // Records live as long as the store, and their fields do not change.
  return NearestNamespaces(known, fields, max);
}

void BlockStore::Unpin(BlockEntry* entry) {
  Section section(this);
  state_->Unpin(entry);
}

absl::StatusOr<ReserveAnswer> BlockStore::Reserve(absl::string_view tenant,
                                                  const Fingerprint& fingerprint,
                                                  const ReserveQuery& query) {
  if (absl::Status status = ReserveOperation::Validate(query); !status.ok()) return status;
  ReserveOperation reserve(tenant, fingerprint, query);
  RunSeeking(&reserve, &ReserveOperation::Step);
  RunChores();
  return reserve.Finish(options_.retry_after);
}

// Steps of an operation that looks for slots; memory segments are made anew between them.
template <typename Operation, typename Step>
void BlockStore::RunSeeking(Operation* operation, Step step) {
  bool done = false;
  while (!done) {
    {
      const absl::Time now = time_->Now();
      Section section(this);
      done = (operation->*step)(&*state_, now);
    }
    std::optional<SpaceSeeker::Remake> remake = operation->seeker()->TakeRemake();
    if (!remake.has_value()) continue;
    remake->old.reset();
    absl::StatusOr<std::unique_ptr<MemorySegment>> made =
        HostMemory::MakeSegment(remake->bytes, pinner_);
    if (!made.ok()) operation->seeker()->RemakeRefused();
    Section section(this);
    PutRemade(&*state_, remake->slot_class, remake->segment,
              made.ok() ? *std::move(made) : nullptr);
  }
}

std::vector<StayOutcome> BlockStore::Stay(absl::string_view tenant, const Fingerprint& fingerprint,
                                          absl::Span<const BlockKey> keys, int64_t until_unix_ms) {
  std::vector<StayOutcome> outcomes(keys.size(), StayOutcome::kNotThere);
  size_t done = 0;
  RunSteps([&](StoreState* state, absl::Time) {
    const NamespaceRecord* record = state->namespaces.FindLive(fingerprint);
    const TenantIndex owner = state->ledger.Find(tenant);
    const PartitionIndex partition =
        record == nullptr || owner == 0 ? 0 : state->namespaces.FindPartition(*record, owner);
    if (partition == 0) return true;
    for (size_t i = 0; i < kStepsPerLock && done < keys.size(); ++i, ++done) {
      // A block is let go before those that it keeps.
      const size_t at = until_unix_ms == 0 ? keys.size() - 1 - done : done;
      BlockEntry* entry = state->index.Find(partition, keys[at]);
      if (entry == nullptr) continue;
      outcomes[at] = until_unix_ms == 0 ? state->LetGo(entry) : state->Stay(entry, until_unix_ms);
    }
    return done == keys.size();
  });
  return outcomes;
}

absl::StatusOr<WriteClaim> BlockStore::BeginWrite(absl::string_view tenant, const TokenId& token,
                                                  uint64_t writer, const WritePiece& piece) {
  const absl::Time now = time_->Now();
  Section section(this);
  absl::StatusOr<WriteClaim> claim =
      WriteOperations::Begin(&*state_, state_->ledger.Find(tenant), token, writer, piece, now);
  if (claim.ok() && claim->entry_ != nullptr) claim->store_ = this;
  return claim;
}

absl::Status BlockStore::FinishWrite(WriteClaim claim) {
  if (claim.entry_ == nullptr) {
    return claim.already_in_ ? absl::OkStatus()
                             : absl::InvalidArgumentError("a write was finished without a claim");
  }
  const absl::Status verified = WriteOperations::Verify(claim);
  const absl::Time now = time_->Now();
  Section section(this);
  return WriteOperations::Finish(&*state_, &claim, verified, now);
}

void BlockStore::DropClaim(WriteClaim& claim) {
  Section section(this);
  WriteOperations::Drop(&*state_, &claim);
}

void BlockStore::EndWriter(const TokenId& token, uint64_t writer) {
  const absl::Time now = time_->Now();
  Section section(this);
  WriteOperations::EndWriter(&*state_, token, writer, now);
}

absl::StatusOr<CommitAnswer> BlockStore::Commit(absl::string_view tenant, const TokenId& token,
                                                absl::Span<const SegmentRun> runs) {
  CommitOperation commit(tenant, token, runs);
  RunSteps([&commit](StoreState* state, absl::Time now) { return commit.Step(state, now); });
  return commit.Finish();
}

absl::Status BlockStore::Abort(absl::string_view tenant, const TokenId& token) {
  absl::Status status;
  {
    const absl::Time now = time_->Now();
    Section section(this);
    const absl::StatusOr<Token*> usable =
        WriteOperations::UsableToken(*state_, state_->ledger.Find(tenant), token, now);
    status = usable.status();
    if (usable.ok()) state_->CloseToken(*usable);
  }
  RunChores();
  return status;
}

}  // namespace cairn::node
