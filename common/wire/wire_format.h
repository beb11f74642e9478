// The few rules of the Protobuf encoding that a frame needs, and its field numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/wire/frame.h"

namespace cairn {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Longest encodings that a Protobuf parser accepts.
inline constexpr size_t kVarint32BytesMax = 5;
inline constexpr size_t kVarint64BytesMax = 10;

// Field numbers of cairn.v1.Piece.
enum PieceField : uint32_t {
  kPieceBlock = 1,
  kPieceGroup = 2,
  kPieceSlice = 3,
  kPieceLayer = 4,
  kPieceOffset = 5,
  kPieceLength = 6,
  kPieceDigests = 7,
  kPieceState = 8,
};

// Field numbers of a frame; 0 where the message has no such field.
struct FrameFields {
  uint32_t token;
  uint32_t pieces;
  uint32_t payload;
};

constexpr FrameFields FieldsOf(FrameKind kind) {
  return kind == FrameKind::kWriteRequest ? FrameFields{1, 2, 15} : FrameFields{0, 1, 15};
}

constexpr uint32_t MakeTag(uint32_t field, WireType type) {
  return field << 3 | static_cast<uint32_t>(type);
}

constexpr size_t VarintBytes(uint64_t value) {
  size_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

}  // namespace cairn
