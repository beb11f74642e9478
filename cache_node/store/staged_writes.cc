// Writes from staging memory, which their writer may change at any time: what counts is what
// landed.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_node/store/block_store.h"
#include "cache_node/store/store_state.h"
#include "cache_node/store/write_operations.h"
#include "common/base/check.h"
#include "common/identity/segment_digest.h"

namespace cairn::node {
namespace {

// In the nearest cache still when it is hashed.
constexpr size_t kPieceBytes = 4 << 10;

// The digest is of the bytes at `to`: `from` may be another thing by then.
uint64_t CopyThenHash(absl::Span<uint8_t> to, absl::Span<const uint8_t> from,
                      kernels::ByteHasher hasher) {
  CAIRN_CHECK(to.size() == from.size());
  for (size_t done = 0; done < to.size(); done += kPieceBytes) {
    const size_t bytes = std::min(kPieceBytes, to.size() - done);
    std::memcpy(to.data() + done, from.data() + done, bytes);
    hasher.Update(to.data() + done, bytes);
  }
  return hasher.Digest();
}

}  // namespace

absl::Status WriteOperations::Land(WriteClaim* claim, absl::Span<const uint8_t> bytes,
                                   std::vector<uint64_t>* landed) {
  const bool in = claim->entry_ == nullptr;
  const size_t segments = claim->digests_.size();
  if (segments == 0) return absl::OkStatus();  // It was in, and made room since.
  const size_t each = bytes.size() / segments;
  SegmentId id = claim->first_;
  landed->resize(segments);
  for (size_t i = 0; i < segments; ++i, ++id.layer) {
    const absl::Span<const uint8_t> from = bytes.subspan(i * each, each);
    uint64_t& digest = (*landed)[i];
    digest = in ? SegmentDigest(claim->key_, id, from)
                : CopyThenHash(claim->destination_.subspan(i * each, each), from,
                               SegmentHasher(claim->key_, id));
    if ((claim->unhashed_ && !in) || digest == claim->digests_[i]) continue;
    const std::string what = absl::StrCat(
        "block ", claim->block_, ", group ", id.group, ", slice ", id.slice, ", layer ", id.layer,
        ": the bytes have digest ", absl::Hex(digest, absl::kZeroPad16), ", not ",
        absl::Hex(claim->digests_[i], absl::kZeroPad16));
    return in ? absl::AbortedError(absl::StrCat(what, " as those that are in"))
              : absl::InvalidArgumentError(absl::StrCat(what, " as the writer says"));
  }
  if (!in) claim->digests_ = *landed;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> BlockStore::LandStaged(WriteClaim claim,
                                                             absl::Span<const uint8_t> bytes) {
  if (claim.entry_ != nullptr && (!claim.whole_ || bytes.size() != claim.destination_.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "staged bytes are whole segments: ", bytes.size(), " for ", claim.destination_.size()));
  }
  std::vector<uint64_t> landed;
  const absl::Status status = WriteOperations::Land(&claim, bytes, &landed);
  if (claim.entry_ == nullptr) {
    if (!status.ok()) return status;
    return landed;
  }
  const absl::Time now = time_->Now();
  Section section(this);
  if (absl::Status done = WriteOperations::Finish(&*state_, &claim, status, now); !done.ok()) {
    return done;
  }
  return landed;
}

bool BlockStore::ChargeStaging(absl::string_view tenant, BorrowerId borrower, uint64_t bytes) {
  Section section(this);
  const TenantIndex index = state_->ledger.IndexOf(tenant);
  if (index == 0 || !state_->ledger.HasRoom(index, bytes)) return false;
  CAIRN_CHECK(state_->staging.emplace(borrower, state_->ledger.Take(index, bytes)).second);
  return true;
}

void BlockStore::EndStaging(BorrowerId borrower) {
  Section section(this);
  state_->staging.erase(borrower);
}

}  // namespace cairn::node
