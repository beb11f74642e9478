#include "cache_node/pull/pull_batch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

// Longer than a transfer may take (PullSource bounds it), so that only removals end a token.
constexpr absl::Duration kTokenTtl = absl::Minutes(5);

PullOutcome OutcomeOf(ReserveOutcome outcome) {
  switch (outcome) {
    case ReserveOutcome::kReserved:
    case ReserveOutcome::kInProgress:
      return PullOutcome::kInProgress;
    case ReserveOutcome::kPresent:
      return PullOutcome::kPresent;
    case ReserveOutcome::kNoSpace:
      return PullOutcome::kNoSpace;
    case ReserveOutcome::kQuota:
      return PullOutcome::kQuota;
    case ReserveOutcome::kParentMissing:
      return PullOutcome::kParentMissing;
    case ReserveOutcome::kDeclined:
    case ReserveOutcome::kKeyMismatch:
      return PullOutcome::kDeclined;
    case ReserveOutcome::kUndecided:
      return PullOutcome::kSkipped;
  }
  return PullOutcome::kSkipped;
}

}  // namespace

PullBatch::PullBatch(const Parts& parts, const PullTarget& target, PullSource* source,
                     absl::Span<const BlockKey> keys, absl::Span<const BlockKey> listed)
    : parts_(parts),
      target_(target),
      source_(source),
      keys_(keys),
      listed_(listed),
      outcomes_(keys.size(), PullOutcome::kSkipped) {}

absl::Status PullBatch::Run() {
  map_ = parts_.store->FindPayloadMap(target_.fingerprint);
  if (map_ == nullptr) {  // Retired since it was asked for.
    outcomes_[0] = PullOutcome::kFenced;
    return absl::OkStatus();
  }
  if (absl::Status status = Describe(); !status.ok()) {
    std::fill(outcomes_.begin(), outcomes_.end(), PullOutcome::kSourceFailed);
    return status;
  }
  const size_t usable = Usable();
  for (size_t first = 0; first < usable;) {
    size_t end = first + 1;
    while (end < usable && SameRun(end - 1, end)) ++end;
    if (!ReserveRun(first, end)) break;
    first = end;
  }
  return wanted_.empty() ? absl::OkStatus() : Fetch();
}

absl::Status PullBatch::Describe() {
  absl::StatusOr<BlockRecords> records = source_->Describe(target_, keys_);
  if (!records.ok()) return records.status();
  const bool elsewhere =
      std::any_of(records->blocks.begin(), records->blocks.end(), [](const BlockRecord& block) {
        return block.state == BlockState::kDisk || block.state == BlockState::kDevice;
      });
  if (elsewhere) {
    if (absl::Status status = source_->Promote(target_, keys_); !status.ok()) return status;
    records = source_->Describe(target_, keys_);
    if (!records.ok()) return records.status();
  }
  CAIRN_CHECK(records->blocks.size() == keys_.size());
  records_ = *std::move(records);
  return absl::OkStatus();
}

size_t PullBatch::Usable() {
  const size_t block_tokens = map_->layout().block_tokens;
  for (size_t i = 0; i < keys_.size(); ++i) {
    const BlockRecord& block = records_.blocks[i];
    if (block.state == BlockState::kNotLeased && i > 0) {  // More than one answer holds.
      outcomes_.resize(i);
      return i;
    }
    if (block.state != BlockState::kHost) {
      outcomes_[i] = PullOutcome::kMissing;
      return i;
    }
    // Out of order, or of another prompt; and what no layout has.
    const bool follows = i == 0 || (block.parent == keys_[i - 1] && !block.parent_public);
    const bool fits = block.tokens.empty() || block.tokens.size() == block_tokens;
    if (!follows || !fits) {
      outcomes_[i] = follows ? PullOutcome::kSourceFailed : PullOutcome::kParentMissing;
      return i;
    }
    if (parts_.fences->Refuses(target_, ScopeOf(i).digest, block.provenance)) {
      outcomes_[i] = PullOutcome::kFenced;
      return i;
    }
  }
  return keys_.size();
}

bool PullBatch::SameRun(size_t a, size_t b) const {
  const BlockRecord& left = records_.blocks[a];
  const BlockRecord& right = records_.blocks[b];
  return left.scope == right.scope && left.provenance == right.provenance &&
         left.retention == right.retention && left.tokens.empty() == right.tokens.empty();
}

ReserveQuery PullBatch::QueryOf(size_t first, size_t end) const {
  const BlockRecord& record = records_.blocks[first];
  const BlockScope& scope = ScopeOf(first);
  ReserveQuery query;
  query.scope_digest = scope.digest;
  query.adapter = scope.adapter;
  query.salt = scope.salt;
  query.parent = record.parent;
  query.enters_scope = !record.parent.has_value() || record.parent_public;
  query.keys.assign(keys_.begin() + static_cast<ptrdiff_t>(first),
                    keys_.begin() + static_cast<ptrdiff_t>(end));
  for (size_t i = first; i < end; ++i) {
    const std::vector<uint32_t>& tokens = records_.blocks[i].tokens;
    query.tokens.insert(query.tokens.end(), tokens.begin(), tokens.end());
  }
  query.ttl = kTokenTtl;
  query.retention = record.retention;
  query.provenance = record.provenance;
  return query;
}

bool PullBatch::ReserveRun(size_t first, size_t end) {
  const absl::StatusOr<ReserveAnswer> answer =
      parts_.store->Reserve(target_.tenant, target_.fingerprint, QueryOf(first, end));
  if (!answer.ok()) {
    // The namespace was retired meanwhile; anything else the source made up.
    outcomes_[first] = absl::IsFailedPrecondition(answer.status()) ? PullOutcome::kFenced
                                                                   : PullOutcome::kSourceFailed;
    return false;
  }
  if (absl::Status listed = CheckPublic(); !listed.ok()) {
    if (answer->token.has_value()) (void)parts_.store->Abort(target_.tenant, *answer->token);
    outcomes_[first] = PullOutcome::kFenced;
    return false;
  }
  return NoteAnswer(first, *answer);
}

absl::Status PullBatch::CheckPublic() const {
  if (parts_.public_scope == nullptr || target_.tenant != kPublicTenant) return absl::OkStatus();
  const Namespace* name_space = parts_.store->FindNamespace(target_.fingerprint);
  if (name_space == nullptr) return absl::OkStatus();  // Its commits will be refused.
  return parts_.public_scope->Check(name_space->key_scheme, listed_);
}

bool PullBatch::NoteAnswer(size_t first, const ReserveAnswer& answer) {
  uint64_t reserved_bytes = 0;
  bool goes_on = true;
  for (size_t i = 0; i < answer.outcomes.size(); ++i) {
    outcomes_[first + i] = OutcomeOf(answer.outcomes[i]);
    goes_on = goes_on && LeadsOn(outcomes_[first + i]);
    if (answer.outcomes[i] != ReserveOutcome::kReserved) continue;
    CAIRN_CHECK(answer.token.has_value());
    reserved_bytes += map_->block_bytes();
    wanted_.push_back({.key = keys_[first + i],
                       .token = *answer.token,
                       .token_block = static_cast<uint32_t>(i),
                       .scope_digest = ScopeOf(first + i).digest,
                       .provenance = records_.blocks[first + i].provenance});
    wanted_index_.push_back(first + i);
  }
  if (parts_.rates != nullptr && reserved_bytes > 0) {
    parts_.rates->Charge(target_.tenant, reserved_bytes);
  }
  return goes_on;
}

absl::Status PullBatch::Fetch() {
  std::vector<BlockKey> keys;
  keys.reserve(wanted_.size());
  for (const PullLanding::Block& block : wanted_) keys.push_back(block.key);
  absl::Status transfer;
  std::optional<PullLanding::Mismatch> mismatch;
  {
    PullLanding landing(parts_.store, parts_.fences, &target_, map_,
                        parts_.next_writer->fetch_add(1, std::memory_order_relaxed),
                        std::move(wanted_));
    bool ours = false;  // It is this node that ended it.
    transfer = source_->Fetch(target_, keys,
                              [&](const FrameHeader& header, SliceCursor payload) -> absl::Status {
                                const uint64_t bytes = payload.remaining();
                                absl::Status landed = landing.Land(header, payload);
                                ours = absl::IsAborted(landed);
                                if (!landed.ok()) return landed;
                                const absl::Duration pause = parts_.rate->Take(bytes);
                                if (pause <= absl::ZeroDuration() || parts_.wait->WaitFor(pause))
                                  return landed;
                                return absl::CancelledError("this node stops");
                              });
    for (size_t i = 0; i < keys.size(); ++i) {
      const PullOutcome outcome = landing.OutcomeOf(i);
      outcomes_[wanted_index_[i]] = outcome;
      if (transfer.ok() && outcome == PullOutcome::kSourceFailed) {
        transfer = absl::InternalError("the source left out bytes of blocks that it has");
      }
    }
    mismatch = landing.mismatch();
    parts_.metrics.bytes.Increment(static_cast<double>(landing.bytes_landed()));
    parts_.metrics.dropped_bytes.Increment(static_cast<double>(landing.bytes_dropped()));
    if (ours) transfer = absl::OkStatus();
  }
  if (mismatch.has_value()) source_->ReportMismatch(target_, mismatch->key, mismatch->segment);
  return transfer;
}

}  // namespace cairn::node
