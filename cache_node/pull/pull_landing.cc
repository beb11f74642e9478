#include "cache_node/pull/pull_landing.h"

#include <utility>

#include "absl/container/btree_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/hex.h"
#include "common/identity/segment_digest.h"

namespace cairn::node {
namespace {

absl::Status Broken(const PieceHeader& piece, absl::string_view what) {
  return absl::InternalError(absl::StrCat("the source sent a piece of block ", piece.block,
                                          ", group ", piece.group, ", slice ", piece.slice,
                                          ", layer ", piece.layer, " that ", what));
}

SegmentRun RunOf(const PieceHeader& piece, uint32_t token_block) {
  return {.block = token_block,
          .group = piece.group,
          .slice = piece.slice,
          .layer = piece.layer,
          .digests = piece.digests};
}

}  // namespace

PullLanding::PullLanding(BlockStore* store, const PullFences* fences, const PullTarget* target,
                         const PayloadMap* map, uint64_t writer, std::vector<Block> blocks)
    : store_(store),
      fences_(fences),
      target_(target),
      map_(map),
      writer_(writer),
      blocks_(std::move(blocks)),
      progress_(blocks_.size()) {
  for (Progress& block : progress_) {
    block.committed.assign(map->segment_count(), false);
    block.required_left = map->required_segment_count();
  }
}

PullLanding::~PullLanding() {
  // In an order that is the same each time.
  absl::btree_set<TokenId> tokens;
  for (const Block& block : blocks_) tokens.insert(block.token);
  for (const TokenId& token : tokens) {
    store_->EndWriter(token, writer_);
    // What is present stays. One that is over already is as good.
    (void)store_->Abort(target_->tenant, token);
  }
}

absl::Status PullLanding::Land(const FrameHeader& header, SliceCursor payload) {
  if (header.pieces.empty()) return absl::InternalError("the source sent a frame without pieces");
  for (const PieceHeader& piece : header.pieces) {
    if (piece.block >= blocks_.size()) {
      return Broken(piece, absl::StrCat("is past the ", blocks_.size(), " that were asked for"));
    }
    if (piece.length > payload.remaining()) return Broken(piece, "is longer than its frame");
    SliceCursor bytes = payload;
    bytes.Truncate(piece.length);
    payload.Skip(piece.length);
    absl::Status landed = piece.state != 0 ? LandMissing(piece) : LandPiece(piece, bytes);
    if (landed.ok()) continue;
    bytes_dropped_ += piece.length + payload.remaining();
    return landed;
  }
  return absl::OkStatus();
}

absl::Status PullLanding::LandMissing(const PieceHeader& piece) {
  const std::optional<size_t> part = map_->FindPart(piece.group, piece.slice);
  if (!part.has_value() || piece.length != 0) return Broken(piece, "is missing and makes no sense");
  // A part that no reader needs may be missing.
  if (!map_->parts()[*part].required) return absl::OkStatus();
  return Fail(piece.block, PullOutcome::kMissing, "the source has it no more");
}

absl::Status PullLanding::LandPiece(const PieceHeader& piece, SliceCursor payload) {
  const Block& block = blocks_[piece.block];
  absl::StatusOr<WriteClaim> claim = store_->BeginWrite(
      target_->tenant, block.token, writer_,
      {.run = RunOf(piece, block.token_block), .offset = piece.offset, .length = piece.length});
  if (!claim.ok()) return Refused(piece, claim.status());
  if (!claim->already_in()) {
    CAIRN_CHECK(claim->destination().size() == payload.remaining());
    SliceCursor again = payload;
    claim->Fill([&payload](size_t size_max) { return payload.Next(size_max); });
    const absl::Status finished = store_->FinishWrite(*std::move(claim));
    if (absl::IsInvalidArgument(finished)) return NoteMismatch(piece, again);
    if (!finished.ok()) return Refused(piece, finished);
    bytes_landed_ += piece.length;
  }
  const std::optional<size_t> first = map_->FindSegment({piece.group, piece.slice, piece.layer});
  CAIRN_CHECK(first.has_value());  // The store took it.
  const uint64_t segment_bytes = map_->SegmentBytesAt(*first);
  const bool ends = uint64_t{piece.offset} + piece.length >= segment_bytes;
  return ends ? Commit(piece) : absl::OkStatus();
}

absl::Status PullLanding::Commit(const PieceHeader& piece) {
  const Block& block = blocks_[piece.block];
  if (fences_->Refuses(*target_, block.scope_digest, block.provenance)) {
    return Fail(piece.block, PullOutcome::kFenced, "was removed here since it was written");
  }
  const SegmentRun run = RunOf(piece, block.token_block);
  const absl::StatusOr<CommitAnswer> answer =
      store_->Commit(target_->tenant, block.token, {&run, 1});
  if (!answer.ok()) return Refused(piece, answer.status());
  if (!answer->errors.empty()) return Refused(piece, answer->errors[0].second);
  const size_t first = *map_->FindSegment({piece.group, piece.slice, piece.layer});
  const bool required = map_->parts()[map_->PartOfSegment(first)].required;
  Progress& progress = progress_[piece.block];
  for (size_t i = first; i < first + piece.digests.size(); ++i) {
    if (progress.committed[i]) continue;
    progress.committed[i] = true;
    if (required) --progress.required_left;
  }
  return absl::OkStatus();
}

absl::Status PullLanding::Refused(const PieceHeader& piece, const absl::Status& why) {
  // Whoever removes blocks here takes the reservation with them.
  if (absl::IsAborted(why)) {
    const BlockKey& key = blocks_[piece.block].key;
    const BlockRecords now =
        store_->DescribeBlocks(target_->tenant, target_->fingerprint, {&key, 1}, 0);
    if (now.blocks[0].state != BlockState::kPending) {
      return Fail(piece.block, PullOutcome::kFenced, "was removed here while it came");
    }
  }
  return Broken(piece, absl::StrCat("the store refuses: ", why.message()));
}

absl::Status PullLanding::NoteMismatch(const PieceHeader& piece, SliceCursor payload) {
  const BlockKey& key = blocks_[piece.block].key;
  SegmentId segment{piece.group, piece.slice, piece.layer};
  const size_t first = *map_->FindSegment(segment);
  const uint64_t segment_bytes = map_->SegmentBytesAt(first);
  // Of several whole ones, which it is; a last range ends the only one there is.
  if (piece.digests.size() > 1) {
    std::vector<uint8_t> bytes(segment_bytes);
    for (size_t i = 0; i < piece.digests.size(); ++i) {
      payload.Copy(bytes.data(), bytes.size());
      const SegmentId at = map_->SegmentAt(first + i);
      if (SegmentDigest(key, at, bytes) == piece.digests[i]) continue;
      segment = at;
      break;
    }
  }
  mismatch_ = Mismatch{key, segment};
  return Fail(piece.block, PullOutcome::kMismatch, "came with bytes that are not its own");
}

absl::Status PullLanding::Fail(size_t block, PullOutcome outcome, absl::string_view why) {
  progress_[block].failed = outcome;
  return absl::AbortedError(absl::StrCat("block ", ToHex(blocks_[block].key.view()), " ", why));
}

PullOutcome PullLanding::OutcomeOf(size_t block) const {
  if (progress_[block].whole()) return PullOutcome::kPulled;
  if (progress_[block].failed.has_value()) return *progress_[block].failed;
  for (size_t i = 0; i < block; ++i) {
    if (progress_[i].failed.has_value()) return PullOutcome::kSkipped;
  }
  return PullOutcome::kSourceFailed;
}

}  // namespace cairn::node
