#include "tests/sim/worker/rank_write.h"

#include <algorithm>
#include <string>

#include "client/cpp/synthetic_payload.h"
#include "common/base/check.h"
#include "common/identity/segment_digest.h"
#include "common/wire/frame_encoder.h"
#include "common/wire/payload_slice.h"

namespace cairn::sim {
namespace {

constexpr absl::Duration kWriteTimeout = absl::Seconds(5);
constexpr absl::Duration kCommitTimeout = absl::Seconds(2);
constexpr uint32_t kCutChance = 1000;
constexpr uint64_t kPiecesPerFrameMax = 4;
constexpr size_t kCommitsAtOnceMax = 6;

}  // namespace

RankWrite::RankWrite(RequestContext* context, HostId node, const TokenId& token,
                     std::vector<Block> blocks, std::vector<PartLayers> parts, Done done)
    : context_(context), node_(node), token_(token), done_(std::move(done)) {
  for (const Block& block : blocks) {
    for (const PartLayers& part : parts) AddPieces(block, part);
  }
  for (size_t i = 1; i < commits_.size(); ++i) {
    std::swap(commits_[i], commits_[context_->side.dice->Below(i + 1)]);
  }
  BeginStream();
}

RankWrite::~RankWrite() {
  if (stream_ != 0) context_->side.world->network.Drop(stream_);
}

void RankWrite::AddPieces(const Block& block, const PartLayers& part) {
  const PayloadMap& map = context_->prompt->name_space().payload_map();
  const PayloadMap::Part& of = map.parts()[*map.FindPart(part.group, part.slice)];
  v1::Piece& commit = commits_.emplace_back();
  commit.set_block(block.first);
  commit.set_group(part.group);
  commit.set_slice(part.slice);
  for (uint32_t layer = 0; layer < of.layers; ++layer) {
    const SegmentId id{part.group, part.slice, layer};
    Piece piece;
    piece.bytes.resize(of.segment_bytes);
    FillSyntheticSegment(map, block.second, id, absl::MakeSpan(piece.bytes));
    const uint64_t digest = SegmentDigest(block.second, id, piece.bytes);
    commit.add_digests(digest);
    piece.header.block = block.first;
    piece.header.group = id.group;
    piece.header.slice = id.slice;
    piece.header.layer = id.layer;
    piece.header.length = static_cast<uint32_t>(of.segment_bytes);
    piece.header.digests.push_back(digest);
    if (context_->side.dice->Chance(kCutChance)) {
      Piece tail = piece;
      const uint64_t cut = context_->side.dice->Between(1, of.segment_bytes - 1);
      tail.bytes.erase(tail.bytes.begin(), tail.bytes.begin() + static_cast<ptrdiff_t>(cut));
      tail.header.offset = static_cast<uint32_t>(cut);
      tail.header.length -= static_cast<uint32_t>(cut);
      piece.bytes.resize(cut);
      piece.header.length = static_cast<uint32_t>(cut);
      pieces_.push_back(std::move(piece));
      pieces_.push_back(std::move(tail));
    } else {
      pieces_.push_back(std::move(piece));
    }
  }
}

void RankWrite::BeginStream() {
  ++streams_;
  next_piece_ = unanswered_ = 0;
  stream_ = context_->side.world->network.Open(context_->side.host, node_, Method::kWrite,
                                               context_->side.caller, this, kWriteTimeout);
  SendMore();
}

void RankWrite::SendMore() {
  while (next_piece_ < pieces_.size() && unanswered_ < kUnansweredMax) {
    FrameHeader header;
    header.token = token_;
    std::vector<grpc::Slice> payload;
    const size_t end =
        std::min(pieces_.size(), next_piece_ + context_->side.dice->Between(1, kPiecesPerFrameMax));
    for (; next_piece_ < end; ++next_piece_) {
      header.pieces.push_back(pieces_[next_piece_].header);
      payload.push_back(CopySlice(pieces_[next_piece_].bytes));
    }
    Packet packet;
    packet.is_frame = true;
    packet.frame = EncodeFrame(FrameKind::kWriteRequest, header, payload);
    ++unanswered_;
    context_->side.world->network.Send(stream_, Network::Side::kClient, std::move(packet));
  }
  if (next_piece_ == pieces_.size() && unanswered_ == 0) {
    context_->side.world->network.DoneSending(stream_);
  }
}

void RankWrite::OnPacket(StreamId /*stream*/, Packet packet) {
  v1::WriteResponse response;
  CAIRN_CHECK(response.ParseFromString(packet.bytes));
  CAIRN_CHECK(unanswered_ > 0);
  --unanswered_;
  for (const v1::PieceError& error : response.errors()) {
    refused_.Update(absl::Status(static_cast<absl::StatusCode>(error.code()), error.message()));
  }
  SendMore();
}

void RankWrite::OnClosed(StreamId /*stream*/, const absl::Status& status) {
  stream_ = 0;
  if (absl::IsUnavailable(status) && streams_ < kStreamsMax) return BeginStream();
  if (!status.ok()) return End(status);
  if (!refused_.ok()) return End(refused_);
  CommitNext();
}

void RankWrite::CommitNext() {
  v1::CommitRequest request;
  request.set_token(std::string(token_.view()));
  const uint64_t count =
      std::min<uint64_t>(commits_.size(), context_->side.dice->Between(1, kCommitsAtOnceMax));
  for (uint64_t i = 0; i < count; ++i) {
    *request.add_pieces() = std::move(commits_.back());
    commits_.pop_back();
  }
  call_ = std::make_unique<UnaryCall>(
      context_->side, node_, Method::kCommit, request.SerializeAsString(), kCommitTimeout,
      [this](const absl::StatusOr<std::string>& answer) {
        if (!answer.ok()) return End(answer.status());
        v1::CommitResponse response;
        CAIRN_CHECK(response.ParseFromString(*answer));
        if (!response.errors().empty()) {
          return End(absl::Status(static_cast<absl::StatusCode>(response.errors(0).code()),
                                  response.errors(0).message()));
        }
        if (commits_.empty()) return End(absl::OkStatus());
        CommitNext();
      });
}

// The last call of all: `done` may destroy this.
void RankWrite::End(const absl::Status& status) {
  const absl::Status how = status;
  const Done done = std::move(done_);
  done(how);
}

}  // namespace cairn::sim
