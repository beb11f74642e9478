#include "client/cpp/local/staged_write.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/identity/segment_digest.h"
#include "common/local/local_limits.h"
#include "kernels/copy_digest.h"

namespace cairn {
namespace {

constexpr uint64_t kStagingBytesMin = uint64_t{1} << 20;
constexpr uint64_t kStagingBytesWanted = uint64_t{4} << 20;
// Of one request: it, and its answer, fit into a packet with the digests.
constexpr size_t kItemsPerPutMax = 4096;
constexpr int kPiecesPerPutMax = 512;
static_assert(kPiecesPerPutMax <= kLocalPiecesPerPutMax);
static_assert(kItemsPerPutMax <= kLocalDigestsPerAnswerMax);
static_assert(kItemsPerPutMax * 8 + kPiecesPerPutMax * 64 + 64 < kLocalPacketBytesMax);

uint64_t RoundUp(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

class Writer {
 public:
  Writer(const SegmentSelection& selection, absl::Span<const FramePacker::Block> blocks,
         SegmentSource source)
      : selection_(selection), blocks_(blocks), source_(source) {}

  size_t item_count() const { return blocks_.size() * selection_.segment_count(); }

  // Fills `staging` with items from `first` on, and `put` with their pieces. Answers the item after
  // the last: `first` when none fits, or the source gives another size.
  size_t Fill(absl::Span<uint8_t> staging, size_t first, v1::LocalPut* put) {
    put->clear_pieces();
    digests_.clear();
    uint64_t used = 0;
    size_t item = first;
    for (; item < item_count() && digests_.size() < kItemsPerPutMax; ++item) {
      const SegmentSelection::Segment& segment = selection_.At(item % selection_.segment_count());
      const FramePacker::Block& block = blocks_[item / selection_.segment_count()];
      if (segment.bytes > staging.size() - used) break;
      const absl::Span<const uint8_t> from = source_(block.index, segment.id);
      if (from.size() != segment.bytes) break;
      if (!Continues(*put, block.index, segment.id, segment.bytes, used)) {
        if (put->pieces_size() == kPiecesPerPutMax) break;
        v1::LocalPiece* piece = put->add_pieces();
        piece->set_staging_offset(used);
        piece->mutable_piece()->set_block(block.index);
        piece->mutable_piece()->set_group(segment.id.group);
        piece->mutable_piece()->set_slice(segment.id.slice);
        piece->mutable_piece()->set_layer(segment.id.layer);
      }
      const uint64_t digest = kernels::CopyAndHash(staging.data() + used, from.data(), from.size(),
                                                   SegmentDigestSeed(block.key, segment.id));
      v1::LocalPiece* piece = put->mutable_pieces(put->pieces_size() - 1);
      piece->set_layers(piece->layers() + 1);
      piece->mutable_piece()->set_length(
          static_cast<uint32_t>(piece->piece().length() + segment.bytes));
      piece->mutable_piece()->add_digests(digest);
      digests_.push_back(digest);
      used = std::min<uint64_t>(staging.size(), RoundUp(used + segment.bytes));
    }
    return item;
  }

  // Of the items filled last.
  const std::vector<uint64_t>& digests() const { return digests_; }

 private:
  // The segment lies right after the last piece, which it may be a part of.
  static bool Continues(const v1::LocalPut& put, uint32_t block, const SegmentId& id,
                        uint64_t bytes, uint64_t offset) {
    if (put.pieces().empty()) return false;
    const v1::LocalPiece& last = put.pieces(put.pieces_size() - 1);
    const v1::Piece& piece = last.piece();
    return piece.block() == block && piece.group() == id.group && piece.slice() == id.slice &&
           piece.layer() + last.layers() == id.layer &&
           last.staging_offset() + piece.length() == offset && piece.length() + bytes <= UINT32_MAX;
  }

  const SegmentSelection& selection_;
  const absl::Span<const FramePacker::Block> blocks_;
  const SegmentSource source_;
  std::vector<uint64_t> digests_;
};

}  // namespace

size_t WriteThroughStaging(LocalLink* local, const TokenId& token,
                           const SegmentSelection& selection,
                           absl::Span<const FramePacker::Block> blocks, SegmentSource source,
                           size_t first, absl::Time deadline,
                           absl::FunctionRef<void(size_t item, uint64_t digest)> landed) {
  Writer writer(selection, blocks, source);
  if (first == writer.item_count()) return first;
  const uint64_t bytes = selection.bytes() * blocks.size();
  const absl::StatusOr<LocalLink::Staging> staging =
      local->TakeStaging(std::clamp(bytes, kStagingBytesMin, kStagingBytesWanted), deadline);
  size_t item = first;
  v1::LocalPut put;
  put.set_token(std::string(token.view()));
  while (staging.ok() && item < writer.item_count()) {
    const size_t next = writer.Fill(staging->bytes(), item, &put);
    if (next == item) break;
    const absl::StatusOr<v1::LocalLanded> answer = local->Put(put, deadline);
    if (!answer.ok() || answer->errors_size() > 0) break;
    // What landed is what was meant, or all of it goes again.
    const std::vector<uint64_t>& digests = writer.digests();
    if (!std::equal(digests.begin(), digests.end(), answer->digests().begin(),
                    answer->digests().end())) {
      break;
    }
    for (size_t i = item; i < next; ++i) landed(i, digests[i - item]);
    uint64_t moved = 0;
    for (const v1::LocalPiece& piece : put.pieces()) moved += piece.piece().length();
    local->CountStaged(moved);
    item = next;
  }
  if (item < writer.item_count()) local->CountFallback();
  return item;
}

}  // namespace cairn
