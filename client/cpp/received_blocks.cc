#include "client/cpp/received_blocks.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/identity/segment_digest.h"
#include "common/wire/limits.h"
#include "kernels/copy_digest.h"

namespace cairn {
namespace {

// Whole segments of this size are copied past the caches while they are hashed: what a get moves
// is more than caches keep. 64 KiB segments over loopback: see tests/bench/README.md.
constexpr uint64_t kStreamSegmentBytesMin = 16 << 10;

absl::Status Broken(const PieceHeader& piece, absl::string_view why) {
  return absl::InternalError(absl::StrCat("the node sent a piece (block ", piece.block, ", group ",
                                          piece.group, ", slice ", piece.slice, ", layer ",
                                          piece.layer, ", offset ", piece.offset, ", ",
                                          piece.length, " bytes) that ", why));
}

// A segment that was never written (of a group that is not required) leaves the others as they are.
// Any other reason is about the block: what came of it before is not to be used either.
bool DropsBlock(int32_t state) { return state != v1::BLOCK_STATE_NEVER_SEEN; }

}  // namespace

ReceivedBlocks::ReceivedBlocks(const SegmentSelection* selection, absl::Span<const BlockKey> keys,
                               SegmentPlace place)
    : selection_(selection), keys_(keys), place_(place), states_(keys.size(), 0) {
  CAIRN_CHECK(selection->segment_count() > 0);
}

absl::Status ReceivedBlocks::CheckPlaces() const {
  const size_t segments = selection_->segment_count();
  if (keys_.size() > kSegmentsPerGetMax / segments) {
    return absl::InvalidArgumentError(absl::StrCat(keys_.size(), " blocks of ", segments,
                                                   " segments: one get moves at most ",
                                                   kSegmentsPerGetMax, " segments; ask in parts"));
  }
  for (size_t block = 0; block < keys_.size(); ++block) {
    for (size_t i = 0; i < segments; ++i) {
      const SegmentSelection::Segment& segment = selection_->At(i);
      const size_t given = place_(block, segment.id).size();
      if (given != segment.bytes) {
        return absl::InvalidArgumentError(
            absl::StrCat("buffer for block ", block, ", group ", segment.id.group, ", slice ",
                         segment.id.slice, ", layer ", segment.id.layer, " has ", given,
                         " bytes; the segment has ", segment.bytes));
      }
    }
  }
  return absl::OkStatus();
}

void ReceivedBlocks::TakeWhole(size_t block) {
  CAIRN_CHECK(block < keys_.size() && attempt_blocks_.empty());
  received_.resize(keys_.size() * selection_->segment_count(), 0);
  for (size_t i = 0; i < selection_->segment_count(); ++i) Received(block, i) = kGood;
}

std::vector<size_t> ReceivedBlocks::BeginAttempt() {
  received_.resize(keys_.size() * selection_->segment_count(), 0);
  digest_of_unfinished_.clear();
  attempt_blocks_.clear();
  missing_pieces_.assign(keys_.size(), 0);
  for (size_t block = 0; block < keys_.size(); ++block) {
    bool whole = true;
    bool failed = states_[block] != 0;
    for (size_t i = 0; i < selection_->segment_count(); ++i) {
      failed = failed || Received(block, i) == kBad;
      whole = whole && Received(block, i) == kGood;
    }
    if (whole || failed) continue;
    attempt_blocks_.push_back(block);
    for (size_t i = 0; i < selection_->segment_count(); ++i) Received(block, i) = 0;
  }
  return attempt_blocks_;
}

absl::Status ReceivedBlocks::Accept(const FrameHeader& header, SliceCursor payload, Share share) {
  CAIRN_CHECK(share.index < share.count);
  const size_t asked = (attempt_blocks_.size() + share.count - 1 - share.index) / share.count;
  if (header.pieces.empty()) return absl::InternalError("the node sent a frame without pieces");
  for (const PieceHeader& piece : header.pieces) {
    if (piece.block >= asked) {
      return Broken(piece, absl::StrCat("names a block past the ", asked, " that were asked for"));
    }
    const size_t block = attempt_blocks_[piece.block * share.count + share.index];
    if (piece.state != 0) {
      if (absl::Status status = AcceptMissing(block, piece); !status.ok()) return status;
      continue;
    }
    const absl::StatusOr<Target> target = TargetOf(block, piece);
    if (!target.ok()) return target.status();
    if (payload.remaining() < piece.length) return Broken(piece, "is longer than its frame");
    Land(*target, piece, &payload);
  }
  if (payload.remaining() > 0) {
    return absl::InternalError("the node sent a frame with more payload than its pieces say");
  }
  return absl::OkStatus();
}

absl::Status ReceivedBlocks::AcceptMissing(size_t block, const PieceHeader& piece) {
  if (piece.length != 0) return Broken(piece, "has payload and says that there is none");
  // Once for the block, and once for each run of segments, is enough; more would never end.
  if (++missing_pieces_[block] > selection_->segment_count() + 1) {
    return Broken(piece, "says too often what is missing");
  }
  const std::optional<size_t> segment = selection_->Find({piece.group, piece.slice, piece.layer});
  if (segment && Received(block, *segment) < kMissing) Received(block, *segment) = kMissing;
  if (states_[block] == 0 || DropsBlock(piece.state)) states_[block] = piece.state;
  return absl::OkStatus();
}

absl::StatusOr<ReceivedBlocks::Target> ReceivedBlocks::TargetOf(size_t block,
                                                                const PieceHeader& piece) const {
  const std::optional<size_t> segment = selection_->Find({piece.group, piece.slice, piece.layer});
  if (!segment) return Broken(piece, "was not asked for");
  const uint64_t segment_bytes = selection_->At(*segment).bytes;
  if (piece.length == 0) return Broken(piece, "is empty");
  if (piece.offset != 0 || piece.length < segment_bytes) {
    return RangeTarget(piece, block, *segment);
  }
  if (piece.length % segment_bytes != 0) {
    return Broken(piece, absl::StrCat("is not whole segments of ", segment_bytes, " bytes"));
  }
  const Target target{.block = block,
                      .first = *segment,
                      .count = static_cast<uint32_t>(piece.length / segment_bytes),
                      .offset = 0,
                      .bytes = static_cast<uint32_t>(segment_bytes)};
  if (absl::Status status = CheckNext(target, piece); !status.ok()) return status;
  return target;
}

absl::StatusOr<ReceivedBlocks::Target> ReceivedBlocks::RangeTarget(const PieceHeader& piece,
                                                                   size_t block,
                                                                   size_t segment) const {
  const uint64_t segment_bytes = selection_->At(segment).bytes;
  if (uint64_t{piece.offset} + piece.length > segment_bytes) {
    return Broken(piece, absl::StrCat("reaches past its segment of ", segment_bytes, " bytes"));
  }
  const Target target{
      .block = block, .first = segment, .count = 1, .offset = piece.offset, .bytes = piece.length};
  if (absl::Status status = CheckNext(target, piece); !status.ok()) return status;
  return target;
}

absl::Status ReceivedBlocks::CheckNext(const Target& target, const PieceHeader& piece) const {
  if (piece.digests.size() != target.count) {
    return Broken(piece, absl::StrCat("has ", piece.digests.size(), " digests for ", target.count,
                                      " segments"));
  }
  for (uint32_t i = 0; i < target.count; ++i) {
    const SegmentId id{piece.group, piece.slice, piece.layer + i};
    const std::optional<size_t> segment = selection_->Find(id);
    if (!segment || *segment != target.first + i) return Broken(piece, "was not asked for");
    const uint32_t received = Received(target.block, *segment);
    if (received >= kMissing) return Broken(piece, "covers a segment that is finished");
    if (received != target.offset) {
      return Broken(piece, absl::StrCat("does not follow the ", received, " bytes before it"));
    }
  }
  const auto first =
      digest_of_unfinished_.find(target.block * selection_->segment_count() + target.first);
  if (target.offset != 0 &&
      (first == digest_of_unfinished_.end() || first->second != piece.digests[0])) {
    return Broken(piece, "has another digest than the piece before it");
  }
  return absl::OkStatus();
}

void ReceivedBlocks::Land(const Target& target, const PieceHeader& piece, SliceCursor* payload) {
  for (uint32_t i = 0; i < target.count; ++i) {
    const size_t segment = target.first + i;
    const SegmentSelection::Segment& what = selection_->At(segment);
    const absl::Span<uint8_t> place = place_(target.block, what.id);
    CAIRN_CHECK_MSG(place.size() == what.bytes, "a segment's place changed during the call");
    if (target.bytes == what.bytes && what.bytes >= kStreamSegmentBytesMin) {
      const uint64_t landed = CopyAndHash(target.block, what.id, place, payload);
      Judge(target.block, segment, landed == piece.digests[i]);
      continue;
    }
    payload->Copy(place.data() + target.offset, target.bytes);
    uint32_t& received = Received(target.block, segment);
    received = target.offset + target.bytes;
    const size_t index = target.block * selection_->segment_count() + segment;
    if (received < what.bytes) {
      digest_of_unfinished_[index] = piece.digests[i];
    } else {
      digest_of_unfinished_.erase(index);
      FinishSegment(target.block, segment, piece.digests[i]);
    }
  }
}

uint64_t ReceivedBlocks::CopyAndHash(size_t block, const SegmentId& id, absl::Span<uint8_t> place,
                                     SliceCursor* payload) const {
  kernels::StreamingCopyHasher copier(SegmentDigestSeed(keys_[block], id));
  for (size_t done = 0; done < place.size();) {
    const absl::Span<const uint8_t> run = payload->Next(place.size() - done);
    copier.Copy(place.data() + done, run.data(), run.size());
    done += run.size();
  }
  return copier.Digest();
}

void ReceivedBlocks::FinishSegment(size_t block, size_t segment, uint64_t digest) {
  const SegmentId& id = selection_->At(segment).id;
  Judge(block, segment, SegmentDigest(keys_[block], id, place_(block, id)) == digest);
}

void ReceivedBlocks::Judge(size_t block, size_t segment, bool good) {
  if (good) {
    Received(block, segment) = kGood;
    return;
  }
  Received(block, segment) = kBad;
  ++mismatches_total_;
  if (mismatches_.size() >= kMismatchesPerEndMax) return;
  mismatches_.push_back({block, keys_[block], selection_->At(segment).id});
}

FetchedBlock ReceivedBlocks::OutcomeOf(size_t block) const {
  FetchedBlock outcome{.failure = BlockFailure::kNone,
                       .state = static_cast<v1::BlockState>(states_[block])};
  for (size_t i = 0; i < selection_->segment_count(); ++i) {
    const uint32_t received = Received(block, i);
    if (received == kBad) return {.failure = BlockFailure::kMismatch};
    if (received != kGood) outcome.failure = BlockFailure::kNotReceived;
  }
  if (states_[block] != 0) outcome.failure = BlockFailure::kNotThere;
  return outcome;
}

GetResult ReceivedBlocks::Finish(absl::Status status) {
  received_.resize(keys_.size() * selection_->segment_count(), 0);
  GetResult result;
  result.segments_per_block = selection_->segment_count();
  result.segments_good.resize(received_.size());
  result.status = std::move(status);
  bool unbroken = true;
  for (size_t block = 0; block < keys_.size(); ++block) {
    const bool dropped = states_[block] != 0 && DropsBlock(states_[block]);
    for (size_t i = 0; i < selection_->segment_count(); ++i) {
      const SegmentSelection::Segment& segment = selection_->At(i);
      if (Received(block, i) == kGood && !dropped) {
        result.segments_good[block * result.segments_per_block + i] = true;
        result.bytes_verified += segment.bytes;
        ++result.segments_verified;
        continue;
      }
      const absl::Span<uint8_t> place = place_(block, segment.id);
      std::memset(place.data(), 0, place.size());
    }
    result.blocks.push_back(OutcomeOf(block));
    if (result.status.ok() && result.blocks.back().failure == BlockFailure::kNotReceived) {
      result.status = absl::InternalError(
          absl::StrCat("the node ended its answer without the whole of block ", block));
    }
    unbroken = unbroken && result.blocks.back().good();
    if (unbroken) ++result.usable_prefix;
  }
  result.mismatches = std::move(mismatches_);
  result.mismatches_total = mismatches_total_;
  return result;
}

}  // namespace cairn
