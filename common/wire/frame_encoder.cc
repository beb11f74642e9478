#include "common/wire/frame_encoder.h"

#include <cstring>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/wire/limits.h"
#include "common/wire/wire_format.h"

namespace cairn {
namespace {

// Writes into memory whose size was computed before; Finish proves that both agree.
class Writer {
 public:
  Writer(uint8_t* out, size_t size) : at_(out), end_(out + size) {}

  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) Byte(static_cast<uint8_t>(value | 0x80));
    Byte(static_cast<uint8_t>(value));
  }

  void Tag(uint32_t field, WireType type) { Varint(MakeTag(field, type)); }

  void Bytes(const uint8_t* bytes, size_t size) {
    CAIRN_CHECK(static_cast<size_t>(end_ - at_) >= size);
    std::memcpy(at_, bytes, size);
    at_ += size;
  }

  void Fixed64(uint64_t value) {
    uint8_t bytes[8];
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<uint8_t>(value >> (8 * i));
    Bytes(bytes, sizeof(bytes));
  }

  void Finish() const { CAIRN_CHECK(at_ == end_); }

 private:
  void Byte(uint8_t byte) {
    CAIRN_CHECK(at_ < end_);
    *at_++ = byte;
  }

  uint8_t* at_;
  uint8_t* const end_;
};

// The numbers of a piece before its digests, as (field, value) by field; a zero is not sent.
template <typename Visitor>
void VisitNumbers(const PieceHeader& piece, Visitor visit) {
  const std::pair<PieceField, uint32_t> numbers[] = {
      {kPieceBlock, piece.block}, {kPieceGroup, piece.group},   {kPieceSlice, piece.slice},
      {kPieceLayer, piece.layer}, {kPieceOffset, piece.offset}, {kPieceLength, piece.length},
  };
  for (const auto& [field, value] : numbers) {
    if (value != 0) visit(field, value);
  }
}

// Protobuf extends the sign of an enum's number to ten bytes.
uint64_t StateVarint(const PieceHeader& piece) {
  return static_cast<uint64_t>(int64_t{piece.state});
}

size_t BytesFieldOverhead(uint32_t field, size_t size) {
  return VarintBytes(MakeTag(field, WireType::kBytes)) + VarintBytes(size);
}

size_t PieceBytes(const PieceHeader& piece) {
  size_t bytes = 0;
  VisitNumbers(piece, [&](PieceField, uint32_t value) { bytes += 1 + VarintBytes(value); });
  if (!piece.digests.empty()) {
    const size_t packed = piece.digests.size() * sizeof(uint64_t);
    bytes += BytesFieldOverhead(kPieceDigests, packed) + packed;
  }
  if (piece.state != 0) bytes += 1 + VarintBytes(StateVarint(piece));
  return bytes;
}

// In the order of the field numbers, so that the bytes are those of the generated classes.
void WritePiece(const PieceHeader& piece, Writer* writer) {
  VisitNumbers(piece, [&](PieceField field, uint32_t value) {
    writer->Tag(field, WireType::kVarint);
    writer->Varint(value);
  });
  if (!piece.digests.empty()) {
    writer->Tag(kPieceDigests, WireType::kBytes);
    writer->Varint(piece.digests.size() * sizeof(uint64_t));
    for (const uint64_t digest : piece.digests) writer->Fixed64(digest);
  }
  if (piece.state != 0) {
    writer->Tag(kPieceState, WireType::kVarint);
    writer->Varint(StateVarint(piece));
  }
}

uint64_t PayloadBytes(const FrameHeader& header) {
  uint64_t bytes = 0;
  for (const PieceHeader& piece : header.pieces) bytes += piece.length;
  return bytes;
}

}  // namespace

size_t FrameHeaderBytes(FrameKind kind, const FrameHeader& header) {
  const FrameFields fields = FieldsOf(kind);
  size_t bytes = 0;
  if (header.token) bytes += BytesFieldOverhead(fields.token, kKeyBytes) + kKeyBytes;
  for (const PieceHeader& piece : header.pieces) {
    const size_t size = PieceBytes(piece);
    bytes += BytesFieldOverhead(fields.pieces, size) + size;
  }
  const uint64_t payload_bytes = PayloadBytes(header);
  if (payload_bytes != 0) bytes += BytesFieldOverhead(fields.payload, payload_bytes);
  return bytes;
}

grpc::ByteBuffer EncodeFrame(FrameKind kind, const FrameHeader& header,
                             absl::Span<const grpc::Slice> payload) {
  const FrameFields fields = FieldsOf(kind);
  const size_t header_bytes = FrameHeaderBytes(kind, header);
  const uint64_t payload_bytes = PayloadBytes(header);
  CAIRN_CHECK(!header.token || fields.token != 0);
  CAIRN_CHECK(header.pieces.size() <= kPiecesPerFrameMax);
  CAIRN_CHECK(header_bytes <= kFrameHeaderBytesMax);
  CAIRN_CHECK(payload_bytes <= kFramePayloadBytesMax);

  std::vector<grpc::Slice> slices;
  slices.reserve(payload.size() + 1);
  slices.emplace_back(header_bytes);
  // The slice is ours alone until it is in the buffer.
  Writer writer(const_cast<uint8_t*>(slices[0].begin()), header_bytes);
  if (header.token) {
    writer.Tag(fields.token, WireType::kBytes);
    writer.Varint(kKeyBytes);
    writer.Bytes(header.token->bytes.data(), kKeyBytes);
  }
  for (const PieceHeader& piece : header.pieces) {
    writer.Tag(fields.pieces, WireType::kBytes);
    writer.Varint(PieceBytes(piece));
    WritePiece(piece, &writer);
  }
  if (payload_bytes != 0) {
    writer.Tag(fields.payload, WireType::kBytes);
    writer.Varint(payload_bytes);
  }
  writer.Finish();

  uint64_t given_bytes = 0;
  for (const grpc::Slice& slice : payload) {
    given_bytes += slice.size();
    if (slice.size() != 0) slices.push_back(slice);
  }
  CAIRN_CHECK(given_bytes == payload_bytes);
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace cairn
