#include "cache_node/service/frame_writer.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

WritePiece ToWritePiece(const PieceHeader& piece) {
  return {.run = {.block = piece.block,
                  .group = piece.group,
                  .slice = piece.slice,
                  .layer = piece.layer,
                  .digests = piece.digests},
          .offset = piece.offset,
          .length = piece.length};
}

}  // namespace

absl::StatusOr<v1::WriteResponse> FrameWriter::Land(const ReceivedFrame& frame) {
  const FrameHeader& header = frame.header();
  if (!header.token.has_value()) {
    return absl::InvalidArgumentError("WriteRequest.token: missing; send Reserve's in each frame");
  }
  if (header.pieces.empty()) {
    return absl::InvalidArgumentError("WriteRequest.pieces: empty; a frame has at least one piece");
  }
  if (!tokens_.contains(*header.token) && tokens_.size() >= kTokensMax) {
    return absl::InvalidArgumentError(absl::StrCat("WriteRequest.token: this stream has named ",
                                                   kTokensMax,
                                                   " tokens already; use a new stream"));
  }
  tokens_.insert(*header.token);
  v1::WriteResponse response;
  SliceCursor payload = frame.payload();
  for (size_t i = 0; i < header.pieces.size(); ++i) {
    const PieceHeader& piece = header.pieces[i];
    SliceCursor bytes = payload;
    bytes.Truncate(piece.length);
    payload.Skip(piece.length);
    const absl::Status landed = LandPiece(*header.token, piece, bytes);
    if (landed.ok()) continue;
    v1::PieceError* error = response.add_errors();
    error->set_piece(static_cast<uint32_t>(i));
    error->set_code(static_cast<int>(landed.code()));
    error->set_message(std::string(landed.message()));
  }
  CAIRN_CHECK(payload.remaining() == 0);
  return response;
}

absl::Status FrameWriter::LandPiece(const TokenId& token, const PieceHeader& piece,
                                    SliceCursor& payload) {
  absl::StatusOr<WriteClaim> claim =
      store_->BeginWrite(tenant_, token, writer_, ToWritePiece(piece));
  if (!claim.ok()) return claim.status();
  if (claim->already_in()) return absl::OkStatus();
  CAIRN_CHECK(claim->destination().size() == payload.remaining());
  claim->Fill([&payload](size_t size_max) { return payload.Next(size_max); });
  absl::Status finished = store_->FinishWrite(*std::move(claim));
  if (finished.ok()) bytes_landed_ += piece.length;
  return finished;
}

void FrameWriter::End() {
  for (const TokenId& token : tokens_) store_->EndWriter(token, writer_);
  tokens_.clear();
}

}  // namespace cairn::node
