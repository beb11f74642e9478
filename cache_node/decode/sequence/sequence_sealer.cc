#include "cache_node/decode/sequence/sequence_sealer.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "cache_node/store/reserve_plan.h"
#include "common/base/check.h"
#include "common/base/give_way.h"

namespace cairn::node {
namespace {

// A writer in the sense of BeginWrite: the token is the task's own, so there is no other.
constexpr uint64_t kStream = 1;

SealOutcome OutcomeOf(ReserveOutcome outcome) {
  switch (outcome) {
    case ReserveOutcome::kPresent:
      return SealOutcome::kThere;
    case ReserveOutcome::kInProgress:
      return SealOutcome::kInProgress;
    case ReserveOutcome::kNoSpace:
    case ReserveOutcome::kQuota:
      return SealOutcome::kNoSpace;
    case ReserveOutcome::kDeclined:
      return SealOutcome::kDeclined;
    case ReserveOutcome::kParentMissing:
      return SealOutcome::kParentMissing;
    case ReserveOutcome::kReserved:
      return SealOutcome::kSealed;
    case ReserveOutcome::kKeyMismatch:
    case ReserveOutcome::kUndecided:
      return SealOutcome::kRefused;
  }
  return SealOutcome::kRefused;
}

}  // namespace

absl::StatusOr<ReserveAnswer> SequenceSealer::Reserve(const SealTask& task) {
  ReserveFields fields;
  fields.scope = task.scope;
  fields.region_parent = task.region_parent;
  fields.parent = task.parent;
  fields.keys = absl::MakeConstSpan(&task.key, 1);
  fields.tokens = task.tokens;
  if (!task.extra.empty()) fields.extras[0] = task.extra;
  if (!task.external_id.empty()) fields.external_ids = absl::MakeConstSpan(&task.external_id, 1);
  absl::StatusOr<ReserveQuery> query = PlanReserve(*hasher_, task.rules, fields);
  if (!query.ok()) return query.status();
  query->provenance = {.writer = task.writer,
                       .written_unix_ms = absl::ToUnixMillis(clock_->WallNow())};
  return store_->Reserve(task.tenant, task.fingerprint, *query);
}

absl::Status SequenceSealer::WritePart(const SealTask& task, const TokenId& token,
                                       const PayloadMap::Part& part) {
  const uint64_t layers_max = std::max<uint64_t>(1, kPieceBytes / part.segment_bytes);
  SegmentRun done;
  done.group = part.group;
  done.slice = part.slice;
  for (uint32_t layer = 0; layer < part.layers;) {
    const uint64_t layers = std::min<uint64_t>(layers_max, part.layers - layer);
    const absl::Span<const std::byte> bytes =
        task.page.subspan(part.offset + layer * part.segment_bytes, layers * part.segment_bytes);
    WritePiece piece;
    piece.run.group = part.group;
    piece.run.slice = part.slice;
    piece.run.layer = layer;
    piece.run.digests.resize(layers);
    piece.length = static_cast<uint32_t>(bytes.size());
    piece.unhashed = true;
    absl::StatusOr<WriteClaim> claim = store_->BeginWrite(task.tenant, token, kStream, piece);
    if (!claim.ok()) return claim.status();
    const auto landed = store_->LandStaged(
        *std::move(claim), {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    if (!landed.ok()) return landed.status();
    done.digests.insert(done.digests.end(), landed->begin(), landed->end());
    layer += static_cast<uint32_t>(layers);
    GiveWay();
  }
  const absl::StatusOr<CommitAnswer> committed =
      store_->Commit(task.tenant, token, absl::MakeConstSpan(&done, 1));
  if (!committed.ok()) return committed.status();
  return committed->errors.empty() ? absl::OkStatus() : committed->errors[0].second;
}

SealOutcome SequenceSealer::Seal(const SealTask& task) {
  CAIRN_CHECK(task.map != nullptr && task.page.size() == task.map->block_bytes());
  const absl::StatusOr<ReserveAnswer> reserved = Reserve(task);
  if (!reserved.ok()) {
    return absl::IsResourceExhausted(reserved.status()) ? SealOutcome::kNoSpace
                                                        : SealOutcome::kRefused;
  }
  const SealOutcome outcome = OutcomeOf(reserved->outcomes[0]);
  if (outcome != SealOutcome::kSealed) return outcome;
  CAIRN_CHECK(reserved->token.has_value());
  // What was reserved belongs to the registration of that moment, so not to a later one; and a
  // clear that begins later takes it along.
  const bool moved = task.revocations != nullptr &&
                     task.revocations->load(std::memory_order_acquire) != task.revocations_then;
  const bool retired = store_->LiveEpoch(task.fingerprint) != task.epoch;
  if (moved || retired) {
    store_->Abort(task.tenant, *reserved->token).IgnoreError();
    return retired ? SealOutcome::kRefused : SealOutcome::kInProgress;
  }
  for (const size_t part : task.parts) {
    if (WritePart(task, *reserved->token, task.map->parts()[part]).ok()) continue;
    // What is there of it goes with the token; the status says no more than that it did not work.
    store_->Abort(task.tenant, *reserved->token).IgnoreError();
    return SealOutcome::kRefused;
  }
  // Parts that nobody needs to have may be missing; the token is not needed for them.
  store_->Abort(task.tenant, *reserved->token).IgnoreError();
  return SealOutcome::kSealed;
}

}  // namespace cairn::node
