#include "cache_node/service/get_frames.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/wire/frame_encoder.h"
#include "common/wire/limits.h"
#include "common/wire/payload_slice.h"

namespace cairn::node {
namespace {

// Upper bound of a piece's encoding without its digests: tags, lengths and eight numbers.
constexpr uint64_t kPieceHeaderBytes = 64;
// A range of a large segment shorter than this waits for the next frame.
constexpr uint64_t kRangeBytesMin = 4096;

class PinShare final : public PayloadOwner {
 public:
  explicit PinShare(std::shared_ptr<const CountedPin> pin) : pin_(std::move(pin)) {}

 private:
  const std::shared_ptr<const CountedPin> pin_;
};

}  // namespace

GetFrames::GetFrames(BlockStore* store, PinCount* pin_count, std::string tenant, GetPlan plan)
    : store_(store), pin_count_(pin_count), tenant_(std::move(tenant)), plan_(std::move(plan)) {}

absl::StatusOr<std::optional<grpc::ByteBuffer>> GetFrames::Next() {
  Draft draft;
  if (pin_ != nullptr && !pin().readable()) {
    // Its first segments are out already; the reader drops them with the rest.
    CAIRN_CHECK(AddState(BlockState::kDeleted, {}, draft));
    NextKey();
  }
  while (key_ < plan_.keys.size()) {
    const absl::StatusOr<bool> done = AddKey(draft);
    if (!done.ok()) return done.status();
    if (!*done) break;
  }
  if (draft.header.pieces.empty()) {
    CAIRN_CHECK(key_ == plan_.keys.size());
    return std::nullopt;
  }
  CAIRN_CHECK(draft.payload_bytes <= kFramePayloadBytesMax);
  payload_bytes_ += draft.payload_bytes;
  return EncodeFrame(FrameKind::kGetResponse, draft.header, draft.slices);
}

absl::StatusOr<bool> GetFrames::AddKey(Draft& draft) {
  if (!HasHeaderRoom(draft, 1)) return false;
  if (plan_.map == nullptr) {
    CAIRN_CHECK(AddState(BlockState::kNamespaceUnknown, {}, draft));
    NextKey();
    return true;
  }
  if (pin_ == nullptr) {
    absl::StatusOr<BlockStore::PinAnswer> answer =
        store_->PinForRead(tenant_, plan_.fingerprint, plan_.lease, plan_.keys[key_]);
    if (!answer.ok()) return answer.status();
    if (!answer->pin) {
      CAIRN_CHECK(AddState(answer->state, {}, draft));
      NextKey();
      return true;
    }
    CAIRN_CHECK(answer->pin.bytes().size() >= plan_.map->block_bytes());
    pin_ = std::make_shared<const CountedPin>(std::move(answer->pin), pin_count_);
  }
  for (; range_ < plan_.ranges.size(); ++range_, segment_ = 0) {
    if (!AddRange(plan_.ranges[range_], draft)) return false;
  }
  NextKey();
  return true;
}

bool GetFrames::AddRange(const GetPlan::Range& range, Draft& draft) {
  while (segment_ < range.segments) {
    if (!AddPiece(range, draft)) return false;
  }
  return true;
}

bool GetFrames::AddPiece(const GetPlan::Range& range, Draft& draft) {
  const auto present = [&] { return pin().SegmentPresent(range.first_segment + segment_); };
  if (!present()) {
    const SegmentId at = plan_.map->SegmentAt(range.first_segment + segment_);
    if (!AddState(BlockState::kNeverSeen, at, draft)) return false;
    while (segment_ < range.segments && !present()) ++segment_;
    return true;
  }
  if (!HasHeaderRoom(draft, 1)) return false;
  const uint64_t segment_bytes = plan_.map->parts()[range.part].segment_bytes;
  const uint64_t room = kFramePayloadBytesMax - draft.payload_bytes;
  if (segment_bytes > kFramePayloadBytesMax) {
    const uint64_t rest = segment_bytes - offset_;
    if (room < std::min(rest, kRangeBytesMin)) return false;
    AddPayload(range, 1, std::min(rest, room), draft);
    return true;
  }
  size_t segments = 0;
  const size_t segments_max =
      std::min<size_t>(range.segments - segment_, static_cast<size_t>(room / segment_bytes));
  while (segments < segments_max && HasHeaderRoom(draft, segments + 1) &&
         pin().SegmentPresent(range.first_segment + segment_ + segments)) {
    ++segments;
  }
  if (segments == 0) return false;
  AddPayload(range, segments, segments * segment_bytes, draft);
  return true;
}

bool GetFrames::AddState(BlockState state, const SegmentId& at, Draft& draft) {
  if (!HasHeaderRoom(draft, 0)) return false;
  PieceHeader& piece = draft.header.pieces.emplace_back();
  piece.block = static_cast<uint32_t>(key_);
  piece.group = at.group;
  piece.slice = at.slice;
  piece.layer = at.layer;
  piece.state = static_cast<int32_t>(state);
  draft.header_bytes += kPieceHeaderBytes;
  return true;
}

void GetFrames::AddPayload(const GetPlan::Range& range, size_t segments, uint64_t bytes,
                           Draft& draft) {
  const size_t first = range.first_segment + segment_;
  const SegmentId at = plan_.map->SegmentAt(first);
  PieceHeader& piece = draft.header.pieces.emplace_back();
  piece.block = static_cast<uint32_t>(key_);
  piece.group = at.group;
  piece.slice = at.slice;
  piece.layer = at.layer;
  piece.offset = static_cast<uint32_t>(offset_);
  piece.length = static_cast<uint32_t>(bytes);
  const absl::Span<const uint64_t> digests = pin().digests().subspan(first, segments);
  piece.digests.assign(digests.begin(), digests.end());
  draft.header_bytes += kPieceHeaderBytes + 8 * segments;
  const uint64_t begin = plan_.map->SegmentOffset(first) + offset_;
  draft.slices.push_back(
      BorrowSlice(pin().bytes().subspan(begin, bytes), std::make_unique<PinShare>(pin_)));
  draft.payload_bytes += bytes;

  const uint64_t segment_bytes = plan_.map->parts()[range.part].segment_bytes;
  offset_ += bytes;
  if (offset_ >= segment_bytes) {
    CAIRN_CHECK(offset_ == segments * segment_bytes);
    offset_ = 0;
    segment_ += segments;
  }
}

bool GetFrames::HasHeaderRoom(const Draft& draft, size_t digests) {
  return draft.header.pieces.size() < kPiecesPerFrameMax &&
         draft.header_bytes + kPieceHeaderBytes + 8 * digests <= kFrameHeaderBytesMax - 64;
}

void GetFrames::NextKey() {
  pin_ = nullptr;
  ++key_;
  range_ = segment_ = 0;
  offset_ = 0;
}

}  // namespace cairn::node
