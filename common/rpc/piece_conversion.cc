#include "common/rpc/piece_conversion.h"

namespace cairn {

PieceHeader PieceFromProto(const v1::Piece& message) {
  PieceHeader piece;
  piece.block = message.block();
  piece.group = message.group();
  piece.slice = message.slice();
  piece.layer = message.layer();
  piece.offset = message.offset();
  piece.length = message.length();
  piece.digests.assign(message.digests().begin(), message.digests().end());
  piece.state = static_cast<int32_t>(message.state());
  return piece;
}

v1::Piece PieceToProto(const PieceHeader& piece) {
  v1::Piece message;
  message.set_block(piece.block);
  message.set_group(piece.group);
  message.set_slice(piece.slice);
  message.set_layer(piece.layer);
  message.set_offset(piece.offset);
  message.set_length(piece.length);
  message.mutable_digests()->Add(piece.digests.begin(), piece.digests.end());
  message.set_state(static_cast<v1::BlockState>(piece.state));
  return message;
}

}  // namespace cairn
