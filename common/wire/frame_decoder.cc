#include "common/wire/frame_decoder.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/wire/limits.h"
#include "common/wire/wire_format.h"

namespace cairn {
namespace {

struct FieldTag {
  uint32_t field;
  WireType type;
};

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("malformed frame: ", what));
}

absl::Status OverBound(absl::string_view what, uint64_t value, uint64_t bound) {
  return absl::InvalidArgumentError(
      absl::StrCat("frame too large: ", value, " ", what, ", at most ", bound));
}

// Little-endian base-128; the bits above 64 must be zero.
std::optional<uint64_t> ReadVarint(SliceCursor* cursor, size_t bytes_max) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes_max; ++i) {
    if (cursor->remaining() == 0) return std::nullopt;
    const uint8_t byte = cursor->Next(1)[0];
    if (i == kVarint64BytesMax - 1 && byte > 1) return std::nullopt;
    value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

uint64_t ReadFixed64(SliceCursor* cursor) {
  uint8_t bytes[8];
  cursor->Copy(bytes, sizeof(bytes));
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  return value;
}

std::optional<FieldTag> ReadTag(SliceCursor* cursor) {
  const std::optional<uint64_t> tag = ReadVarint(cursor, kVarint32BytesMax);
  if (!tag || *tag > UINT32_MAX || *tag >> 3 == 0) return std::nullopt;
  const auto type = static_cast<WireType>(*tag & 7);
  switch (type) {
    case WireType::kVarint:
    case WireType::kFixed64:
    case WireType::kBytes:
    case WireType::kFixed32:
      return FieldTag{static_cast<uint32_t>(*tag >> 3), type};
  }
  return std::nullopt;
}

// The length in front of a bytes field, if that many bytes follow.
std::optional<size_t> ReadLength(SliceCursor* cursor) {
  const std::optional<uint64_t> length = ReadVarint(cursor, kVarint32BytesMax);
  if (!length || *length > cursor->remaining()) return std::nullopt;
  return static_cast<size_t>(*length);
}

bool SkipField(WireType type, SliceCursor* cursor) {
  size_t size = 0;
  switch (type) {
    case WireType::kVarint:
      return ReadVarint(cursor, kVarint64BytesMax).has_value();
    case WireType::kFixed64:
      size = 8;
      break;
    case WireType::kFixed32:
      size = 4;
      break;
    case WireType::kBytes: {
      const std::optional<size_t> length = ReadLength(cursor);
      if (!length) return false;
      size = *length;
      break;
    }
  }
  if (size > cursor->remaining()) return false;
  cursor->Skip(size);
  return true;
}

// `digests` is packed by every current encoder; parsers take single values too.
absl::Status ReadDigests(WireType type, SliceCursor* cursor, PieceHeader* piece) {
  size_t size = sizeof(uint64_t);
  if (type == WireType::kBytes) {
    const std::optional<size_t> length = ReadLength(cursor);
    if (!length) return Malformed("length of a piece's digests");
    size = *length;
  } else if (type != WireType::kFixed64) {
    return Malformed("wire type of a piece's digests");
  }
  if (size % sizeof(uint64_t) != 0) return Malformed("digests of a piece are not 8 bytes each");
  if (size > cursor->remaining()) return Malformed("a digest is cut off");
  piece->digests.reserve(piece->digests.size() + size / sizeof(uint64_t));
  for (; size > 0; size -= sizeof(uint64_t)) piece->digests.push_back(ReadFixed64(cursor));
  return absl::OkStatus();
}

// Where the value of a scalar field goes; null for a field that this version does not know.
uint32_t* ScalarOf(uint32_t field, PieceHeader* piece) {
  switch (field) {
    case kPieceBlock:
      return &piece->block;
    case kPieceGroup:
      return &piece->group;
    case kPieceSlice:
      return &piece->slice;
    case kPieceLayer:
      return &piece->layer;
    case kPieceOffset:
      return &piece->offset;
    case kPieceLength:
      return &piece->length;
    default:
      return nullptr;
  }
}

absl::Status ReadPieceField(FieldTag tag, SliceCursor* cursor, PieceHeader* piece) {
  if (tag.field == kPieceDigests) return ReadDigests(tag.type, cursor, piece);
  uint32_t* const scalar = ScalarOf(tag.field, piece);
  if (scalar == nullptr && tag.field != kPieceState) {
    return SkipField(tag.type, cursor) ? absl::OkStatus() : Malformed("unknown field of a piece");
  }
  if (tag.type != WireType::kVarint) return Malformed("wire type of a piece's field");
  const std::optional<uint64_t> value = ReadVarint(cursor, kVarint64BytesMax);
  if (!value) return Malformed("number in a piece");
  // Protobuf keeps the low 32 bits.
  if (scalar != nullptr) {
    *scalar = static_cast<uint32_t>(*value);
  } else {
    piece->state = static_cast<int32_t>(static_cast<uint32_t>(*value));
  }
  return absl::OkStatus();
}

// Walks over one message and collects what it says.
class Parser {
 public:
  Parser(FrameKind kind, SliceCursor message) : fields_(FieldsOf(kind)), cursor_(message) {}

  absl::Status Parse() {
    const size_t message_bytes = cursor_.remaining();
    while (cursor_.remaining() > 0) {
      const std::optional<FieldTag> tag = ReadTag(&cursor_);
      if (!tag) return Malformed("tag");
      if (absl::Status status = ParseField(*tag); !status.ok()) return status;
    }
    const size_t payload_bytes = payload_ ? payload_->remaining() : 0;
    const size_t header_bytes = message_bytes - payload_bytes;
    if (header_bytes > kFrameHeaderBytesMax) {
      return OverBound("bytes of header", header_bytes, kFrameHeaderBytesMax);
    }
    uint64_t pieces_bytes = 0;
    for (const PieceHeader& piece : header_.pieces) pieces_bytes += piece.length;
    if (pieces_bytes == payload_bytes) return absl::OkStatus();
    return Malformed(
        absl::StrCat("pieces say ", pieces_bytes, " bytes, the payload has ", payload_bytes));
  }

  FrameHeader TakeHeader() { return std::move(header_); }
  SliceCursor payload() const { return payload_.value_or(SliceCursor()); }

 private:
  absl::Status ParseField(FieldTag tag) {
    const bool known = tag.field == fields_.pieces || tag.field == fields_.payload ||
                       (fields_.token != 0 && tag.field == fields_.token);
    if (!known) {
      return SkipField(tag.type, &cursor_) ? absl::OkStatus() : Malformed("unknown field");
    }
    if (tag.type != WireType::kBytes) return Malformed("wire type of a field");
    const std::optional<size_t> length = ReadLength(&cursor_);
    if (!length) return Malformed(absl::StrCat("length of field ", tag.field));
    SliceCursor value = cursor_;
    value.Truncate(*length);
    cursor_.Skip(*length);
    if (tag.field == fields_.pieces) return ParsePiece(value);
    if (tag.field == fields_.payload) return TakePayload(value);
    return ParseToken(value);
  }

  absl::Status ParseToken(SliceCursor value) {
    header_.token.reset();
    if (value.remaining() == 0) return absl::OkStatus();
    if (value.remaining() != kKeyBytes) {
      return Malformed(absl::StrCat("token of ", value.remaining(), " bytes, not ", kKeyBytes));
    }
    value.Copy(header_.token.emplace().bytes.data(), kKeyBytes);
    return absl::OkStatus();
  }

  absl::Status ParsePiece(SliceCursor value) {
    if (header_.pieces.size() == kPiecesPerFrameMax) {
      return OverBound("pieces", header_.pieces.size() + 1, kPiecesPerFrameMax);
    }
    if (value.remaining() > kFrameHeaderBytesMax) {
      return OverBound("bytes of header", value.remaining(), kFrameHeaderBytesMax);
    }
    PieceHeader& piece = header_.pieces.emplace_back();
    while (value.remaining() > 0) {
      const std::optional<FieldTag> tag = ReadTag(&value);
      if (!tag) return Malformed("tag in a piece");
      if (absl::Status status = ReadPieceField(*tag, &value, &piece); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status TakePayload(SliceCursor value) {
    if (payload_) return Malformed("two payloads");
    if (value.remaining() > kFramePayloadBytesMax) {
      return OverBound("bytes of payload", value.remaining(), kFramePayloadBytesMax);
    }
    payload_ = value;
    return absl::OkStatus();
  }

  const FrameFields fields_;
  SliceCursor cursor_;
  FrameHeader header_;
  std::optional<SliceCursor> payload_;
};

}  // namespace

absl::StatusOr<ReceivedFrame> DecodeFrame(FrameKind kind, const grpc::ByteBuffer& message) {
  if (!message.Valid()) return Malformed("no message");
  if (message.Length() > kMessageBytesMax) {
    return OverBound("bytes", message.Length(), kMessageBytesMax);
  }
  ReceivedFrame frame;
  if (!message.Dump(&frame.slices_).ok()) return Malformed("unreadable message");
  Parser parser(kind, SliceCursor(frame.slices_));
  if (absl::Status status = parser.Parse(); !status.ok()) return status;
  frame.header_ = parser.TakeHeader();
  frame.payload_ = parser.payload();
  return frame;
}

}  // namespace cairn
