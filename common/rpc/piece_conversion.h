// Pieces between the generated classes (Commit) and the frame's struct (Write, Get).
#pragma once

#include "cairn/v1/block.pb.h"
#include "common/wire/frame.h"

namespace cairn {

PieceHeader PieceFromProto(const v1::Piece& message);
v1::Piece PieceToProto(const PieceHeader& piece);

}  // namespace cairn
