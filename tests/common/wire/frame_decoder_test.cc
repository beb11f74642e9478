// Decodes what the generated classes encode, over random slice boundaries, and messages bent by
// hand at one place each; all that is refused must be INVALID_ARGUMENT and name the place.
#include "common/wire/frame_decoder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cairn/v1/cache_node.pb.h"
#include "common/wire/limits.h"
#include "tests/common/wire/frame_samples.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;

constexpr FrameKind kWrite = FrameKind::kWriteRequest;

std::string PayloadOf(const ReceivedFrame& frame) {
  SliceCursor cursor = frame.payload();
  std::string bytes(cursor.remaining(), '\0');
  cursor.Copy(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size());
  return bytes;
}

absl::StatusOr<ReceivedFrame> Decode(FrameKind kind, absl::string_view bytes) {
  Random random(bytes.size());
  return DecodeFrame(kind, Scatter(bytes, random));
}

void ExpectRefused(absl::string_view bytes, const std::string& words) {
  const absl::Status status = Decode(kWrite, bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
}

// One field of a message by hand.
std::string Bytes(int field, absl::string_view value) {
  std::string out;
  for (size_t n = static_cast<size_t>(field) << 3 | 2; n != 0; n >>= 7) {
    out.push_back(static_cast<char>((n & 0x7f) | (n >= 0x80 ? 0x80 : 0)));
  }
  size_t size = value.size();
  for (; size >= 0x80; size >>= 7) out.push_back(static_cast<char>(size | 0x80));
  out.push_back(static_cast<char>(size));
  return absl::StrCat(out, value);
}

// A WriteRequest with one piece of fields `piece`.
std::string WithPiece(absl::string_view piece) { return Bytes(2, piece); }

template <typename Message>
void ExpectDecodes(FrameKind kind, const Message& expected, Random& random) {
  const std::string bytes = expected.SerializeAsString();
  absl::StatusOr<ReceivedFrame> frame = DecodeFrame(kind, Scatter(bytes, random));
  ASSERT_TRUE(frame.ok()) << frame.status();
  const ReceivedFrame moved = *std::move(frame);
  EXPECT_EQ(moved.header(), HeaderOf(expected));
  EXPECT_EQ(PayloadOf(moved), expected.payload());
}

TEST(FrameDecoder, AgreesWithGeneratedWriteRequests) {
  Random random(11);
  for (int i = 0; i < 2000; ++i) ExpectDecodes(kWrite, RandomWriteRequest(random), random);
}

TEST(FrameDecoder, AgreesWithGeneratedGetResponses) {
  Random random(12);
  for (int i = 0; i < 2000; ++i) {
    ExpectDecodes(FrameKind::kGetResponse, RandomGetResponse(random), random);
  }
}

TEST(FrameDecoder, EmptyMessageIsAnEmptyFrame) {
  const auto frame = Decode(kWrite, "");
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(frame->header(), FrameHeader());
  EXPECT_EQ(frame->payload().remaining(), 0u);
}

TEST(FrameDecoder, NoMessageIsRefused) {
  EXPECT_EQ(DecodeFrame(kWrite, grpc::ByteBuffer()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(FrameDecoder, FieldsMayComeInAnyOrder) {
  Random random(13);
  for (int i = 0; i < 200; ++i) {
    const v1::WriteRequest expected = RandomWriteRequest(random);
    v1::WriteRequest head = expected;
    head.clear_payload();
    const std::string bytes = Bytes(15, expected.payload()) + head.SerializeAsString();
    const auto frame = DecodeFrame(kWrite, Scatter(bytes, random));
    ASSERT_TRUE(frame.ok()) << frame.status();
    EXPECT_EQ(frame->header(), HeaderOf(expected));
    EXPECT_EQ(PayloadOf(*frame), expected.payload());
  }
}

TEST(FrameDecoder, UnknownFieldsAreSkipped) {
  // Numbers 16 (varint), 17 (fixed64), 18 (bytes), 19 (fixed32), in the frame and in a piece.
  const std::string unknown =
      "\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
      "\x89\x01"
      "12345678"
      "\x92\x01\x03"
      "abc"
      "\x9d\x01"
      "1234";
  const std::string piece =
      absl::StrCat(unknown, absl::string_view("\x08\x05\x30\x02", 4), unknown);
  const auto frame =
      Decode(kWrite, absl::StrCat(unknown, WithPiece(piece), unknown, Bytes(15, "xy"), unknown));
  ASSERT_TRUE(frame.ok()) << frame.status();
  ASSERT_EQ(frame->header().pieces.size(), 1u);
  EXPECT_EQ(frame->header().pieces[0].block, 5u);
  EXPECT_EQ(PayloadOf(*frame), "xy");
}

TEST(FrameDecoder, LastOfARepeatedScalarCounts) {
  const std::string tokens = Bytes(1, std::string(16, 'a')) + Bytes(1, std::string(16, 'b'));
  const auto frame = Decode(kWrite, tokens + WithPiece("\x08\x05\x08\x07"));
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(frame->header().token->view(), std::string(16, 'b'));
  EXPECT_EQ(frame->header().pieces[0].block, 7u);
}

TEST(FrameDecoder, EmptyTokenIsNoToken) {
  const auto frame = Decode(kWrite, Bytes(1, std::string(16, 'a')) + Bytes(1, ""));
  ASSERT_TRUE(frame.ok());
  EXPECT_FALSE(frame->header().token.has_value());
}

TEST(FrameDecoder, DigestsMayBeUnpackedOrInSeveralRuns) {
  const std::string one("\x39\x01\0\0\0\0\0\0\0", 9);
  const std::string run = Bytes(7, absl::string_view("\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0", 16));
  const auto frame = Decode(kWrite, WithPiece(run + one + run));
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_THAT(frame->header().pieces[0].digests, ::testing::ElementsAre(2, 3, 1, 2, 3));
}

TEST(FrameDecoder, NumbersAreCutTo32BitsAsInGeneratedCode) {
  const std::string piece(
      "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x40\xfe\xff\xff\xff\xff\x01", 18);
  v1::Piece generated;
  ASSERT_TRUE(generated.ParseFromString(piece));
  const auto frame = Decode(kWrite, WithPiece(piece));
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(frame->header().pieces[0].block, generated.block());
  EXPECT_EQ(frame->header().pieces[0].state, static_cast<int32_t>(generated.state()));
}

TEST(FrameDecoder, EveryTruncationIsRefusedOrShorter) {
  Random random(14);
  v1::WriteRequest message;
  message.set_token(std::string(16, 't'));
  for (uint32_t i = 0; i < 3; ++i) {
    v1::Piece* piece = message.add_pieces();
    piece->set_block(i);
    piece->set_length(10);
    piece->add_digests(i);
  }
  message.set_payload(std::string(30, 'p'));
  const std::string bytes = message.SerializeAsString();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto frame = DecodeFrame(kWrite, Scatter(bytes.substr(0, size), random));
    v1::WriteRequest parsed;
    const bool parses = parsed.ParseFromString(bytes.substr(0, size));
    const bool complete = parses && parsed.pieces_size() == 0;
    EXPECT_EQ(frame.ok(), complete) << "first " << size << " bytes";
  }
}

TEST(FrameDecoder, RefusesBrokenTags) {
  ExpectRefused(absl::string_view("\x00\x00", 2), "tag");  // field 0
  ExpectRefused("\x80", "tag");                            // cut off
  ExpectRefused("\x8a\x80\x80\x80\x80\x01", "tag");        // six bytes
  ExpectRefused("\xfa\xff\xff\xff\x7f", "tag");            // over 32 bits
  ExpectRefused("\x83\x01\x84\x01", "tag");                // group
  ExpectRefused("\x86\x01", "tag");                        // wire type 6
  ExpectRefused(WithPiece(absl::string_view("\x00\x00", 2)), "tag in a piece");
}

TEST(FrameDecoder, RefusesWrongWireTypes) {
  ExpectRefused(absl::string_view("\x08\x01", 2), "wire type of a field");  // token
  ExpectRefused(
      "\x79"
      "12345678",
      "wire type of a field");  // payload
  ExpectRefused(WithPiece("\x0d"
                          "1234"),
                "wire type of a piece's field");
  ExpectRefused(WithPiece("\x42\x01x"), "wire type of a piece's field");  // state
  ExpectRefused(WithPiece("\x3d"
                          "1234"),
                "wire type of a piece's digests");
}

TEST(FrameDecoder, RefusesLengthsThatReachTooFar) {
  ExpectRefused(
      "\x0a\x11"
      "0123456789abcdef",
      "length of field 1");
  ExpectRefused("\x12\x01", "length of field 2");
  ExpectRefused("\x7a\xff\xff\xff\xff\x0f", "length of field 15");
  ExpectRefused("\x7a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "length of field 15");
  // The piece ends before the message does: its field must not borrow bytes from what follows.
  ExpectRefused(WithPiece("\x92\x01\x05"
                          "ab") +
                    Bytes(15, "payload"),
                "unknown field of a piece");
  ExpectRefused(WithPiece("\x3a\x08"
                          "1234") +
                    Bytes(15, "payload"),
                "piece's digests");
  ExpectRefused(WithPiece("\x39"
                          "1234") +
                    Bytes(15, "payload"),
                "a digest is cut off");
  ExpectRefused(WithPiece("\x08\x80") + Bytes(15, "payload"), "number in a piece");
  ExpectRefused(
      "\x9d\x01"
      "123",
      "unknown field");
}

TEST(FrameDecoder, RefusesVarintsThatDoNotEnd) {
  ExpectRefused(WithPiece("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "number in a piece");
  ExpectRefused(WithPiece("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), "number in a piece");
}

TEST(FrameDecoder, RefusesDigestsThatAreNotEightBytes) {
  ExpectRefused(WithPiece(Bytes(7, "1234567")), "not 8 bytes each");
}

TEST(FrameDecoder, RefusesTokensOfAnotherLength) {
  ExpectRefused(Bytes(1, std::string(15, 't')), "token of 15 bytes");
  ExpectRefused(Bytes(1, std::string(17, 't')), "token of 17 bytes");
}

TEST(FrameDecoder, RefusesTwoPayloads) {
  ExpectRefused(WithPiece("\x30\x02") + Bytes(15, "xy") + Bytes(15, "xy"), "two payloads");
}

TEST(FrameDecoder, RefusesLengthsThatDoNotAddUp) {
  ExpectRefused(WithPiece("\x30\x02") + Bytes(15, "xyz"), "pieces say 2 bytes, the payload has 3");
  ExpectRefused(WithPiece("\x30\x02"), "pieces say 2 bytes, the payload has 0");
  ExpectRefused(Bytes(15, "x"), "pieces say 0 bytes, the payload has 1");
  // Two lengths whose sum is 2 modulo 2^32.
  ExpectRefused(WithPiece("\x30\xff\xff\xff\xff\x0f") + WithPiece("\x30\x03") + Bytes(15, "xy"),
                "pieces say 4294967298 bytes");
}

TEST(FrameDecoder, AcceptsAFrameAtItsBoundsAndRefusesOneOver) {
  v1::WriteRequest message;
  for (uint32_t i = 0; i < kPiecesPerFrameMax; ++i) message.add_pieces()->set_block(i);
  message.mutable_pieces(0)->set_length(kFramePayloadBytesMax);
  message.set_payload(std::string(kFramePayloadBytesMax, 'p'));
  const std::string at_bounds = message.SerializeAsString();
  EXPECT_TRUE(Decode(kWrite, at_bounds).ok());
  ExpectRefused(at_bounds + WithPiece(""), "1025 pieces, at most 1024");

  message.mutable_payload()->push_back('p');
  message.mutable_pieces(0)->set_length(kFramePayloadBytesMax + 1);
  ExpectRefused(message.SerializeAsString(), "1048577 bytes of payload, at most 1048576");
}

TEST(FrameDecoder, RefusesHeadersOverTheirBound) {
  const std::string unknown = Bytes(16, std::string(kFrameHeaderBytesMax, 'u'));
  ExpectRefused(unknown, "bytes of header, at most 65536");
  ExpectRefused(WithPiece(unknown), "bytes of header, at most 65536");
  ExpectRefused(Bytes(16, std::string(kMessageBytesMax, 'u')), "at most 1114112");
}

TEST(FrameDecoder, TokenOfAWriteRequestIsAPieceOfAGetResponse) {
  // Field 1 differs between the kinds: bytes of one are not taken for the other.
  EXPECT_FALSE(Decode(FrameKind::kGetResponse, Bytes(1, std::string(16, '\xff'))).ok());
}

}  // namespace
}  // namespace cairn::testing
