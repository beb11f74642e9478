// A frame: one message of the payload streams, WriteRequest or GetResponse of cairn.v1.
//
// These structs are what a frame says before its payload bytes; they hold what the wire holds and
// nothing is checked here against a layout, a lease or a token. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "common/base/bytes16.h"

namespace cairn {

// Which message of the contract a frame is.
enum class FrameKind {
  kWriteRequest,  // has a token
  kGetResponse,   // has none
};

// Field by field the message cairn.v1.Piece.
struct PieceHeader {
  uint32_t block = 0;
  uint32_t group = 0;
  uint32_t slice = 0;
  uint32_t layer = 0;
  uint32_t offset = 0;
  // Payload bytes of this piece in this frame.
  uint32_t length = 0;
  absl::InlinedVector<uint64_t, 4> digests;
  // A cairn.v1.BlockState by number; also one that this version does not know.
  int32_t state = 0;

  friend bool operator==(const PieceHeader&, const PieceHeader&) = default;
};

struct FrameHeader {
  // Never set in a GetResponse; absent also when the field is there and empty.
  std::optional<TokenId> token;
  // The payload holds their bytes in this order, without gaps.
  std::vector<PieceHeader> pieces;

  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

}  // namespace cairn
