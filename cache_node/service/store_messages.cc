#include "cache_node/service/store_messages.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/wire/limits.h"

namespace cairn::node {
namespace {

// More errors of one commit have a code only, so that the answer stays within a message.
constexpr int kCommitErrorsWithText = 1024;

}  // namespace

uint32_t ToMilliseconds(absl::Duration duration) {
  const int64_t ms = absl::ToInt64Milliseconds(absl::Ceil(duration, absl::Milliseconds(1)));
  return static_cast<uint32_t>(std::clamp<int64_t>(ms, 0, std::numeric_limits<uint32_t>::max()));
}

absl::Status CheckWait(uint32_t wait_ms) {
  if (wait_ms <= kWaitMsMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("wait_ms: ", wait_ms, ", at most ", kWaitMsMax, "; ask again to wait longer"));
}

absl::Status CheckCount(absl::string_view field, size_t count, size_t max) {
  if (count == 0) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": none; give at least one"));
  }
  if (count <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", count, ", at most ", max));
}

void ToMessage(const LeaseStatus& status, v1::GetLeaseResponse* message) {
  message->set_readers(status.readers);
  message->set_readers_ended(status.readers_ended);
  message->mutable_usable_blocks()->Add(status.usable_blocks.begin(), status.usable_blocks.end());
  message->set_complete(status.complete);
}

void ToMessage(const ReserveAnswer& answer, v1::ReserveResponse* message) {
  CAIRN_CHECK(answer.in_progress_for.size() == answer.outcomes.size() &&
              answer.stays.size() == answer.outcomes.size());
  bool wait = false;
  for (size_t i = 0; i < answer.outcomes.size(); ++i) {
    v1::ReserveAnswer* one = message->add_answers();
    one->set_outcome(static_cast<v1::ReserveOutcome>(answer.outcomes[i]));
    one->set_since_ms(ToMilliseconds(answer.in_progress_for[i]));
    one->set_pin(static_cast<v1::PinOutcome>(answer.stays[i]));
    wait |= answer.outcomes[i] == ReserveOutcome::kNoSpace ||
            answer.outcomes[i] == ReserveOutcome::kQuota;
  }
  if (wait) message->set_retry_after_ms(std::max(1u, ToMilliseconds(answer.retry_after)));
  if (!answer.token.has_value()) return;
  message->set_token(std::string(answer.token->view()));
  message->set_token_ttl_ms(ToMilliseconds(answer.token_ttl));
}

void ToMessage(const CommitAnswer& answer, v1::CommitResponse* message) {
  message->set_blocks_present(answer.blocks_present);
  message->set_complete(answer.complete);
  CAIRN_CHECK(answer.missing.size() <= kMissingRunsMax);
  for (const MissingRun& run : answer.missing) {
    v1::Piece* piece = message->add_missing();
    piece->set_block(run.block);
    piece->set_group(run.group);
    piece->set_slice(run.slice);
    piece->set_layer(run.layer);
    piece->set_length(run.layers);
  }
  for (const auto& [index, status] : answer.errors) {
    v1::PieceError* error = message->add_errors();
    error->set_piece(index);
    error->set_code(static_cast<int>(status.code()));
    if (message->errors_size() <= kCommitErrorsWithText) {
      error->set_message(std::string(status.message()));
    }
  }
}

void ToMessage(const NamespaceStatus& status, v1::NamespaceInfo* message) {
  message->set_fingerprint(std::string(status.fingerprint.view()));
  message->set_name(status.name);
  message->set_model(status.model);
  message->set_block_tokens(status.block_tokens);
  message->set_block_bytes(status.block_bytes);
  message->set_blocks(status.blocks);
  message->set_disk_blocks(status.disk_blocks);
}

void ToMessage(const TenantStatus& status, v1::TenantInfo* message) {
  message->set_tenant(status.tenant);
  message->set_charged_bytes(status.charged_bytes);
  message->set_disk_bytes(status.disk_bytes);
  message->set_leased_bytes(status.leased_bytes);
  message->set_reserved_bytes(status.reserved_bytes);
  message->set_pinned_bytes(status.stays_bytes);
}

void ToMessage(const ShardSums& sums, v1::ShardDigest* message) {
  for (size_t i = 0; i < sums.tiers.size(); ++i) {
    const ShardSums::TierSum& sum = sums.tiers[i];
    if (sum.blocks == 0) continue;
    v1::TierDigest* tier = message->add_tiers();
    tier->set_tier(static_cast<v1::Tier>(i + 1));
    tier->set_blocks(sum.blocks);
    tier->set_key_sum(sum.key_sum);
  }
}

absl::StatusOr<SegmentRun> RunFromProto(const v1::Piece& piece) {
  if (piece.digests().empty()) {
    return absl::InvalidArgumentError("digests: none; give one for each layer to commit");
  }
  if (piece.offset() != 0 || piece.length() != 0 || piece.state() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("offset ", piece.offset(), ", length ", piece.length(), ", state ",
                     static_cast<int>(piece.state()), ": must be 0 in a commit"));
  }
  SegmentRun run{.block = piece.block(),
                 .group = piece.group(),
                 .slice = piece.slice(),
                 .layer = piece.layer(),
                 .digests = {}};
  run.digests.assign(piece.digests().begin(), piece.digests().end());
  return run;
}

}  // namespace cairn::node
