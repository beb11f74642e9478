// Encodes frames and parses them with the generated classes, which other languages' clients use;
// and follows the life of what a frame borrows.
#include "common/wire/frame_encoder.h"

#include <utility>

#include "cairn/v1/cache_node.pb.h"
#include "common/wire/limits.h"
#include "common/wire/payload_slice.h"
#include "tests/common/wire/frame_samples.h"

namespace cairn::testing {
namespace {

absl::Span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// The payload as up to four borrowed or copied slices.
std::vector<grpc::Slice> CutPayload(const std::string& payload, Random& random) {
  std::vector<grpc::Slice> slices;
  absl::Span<const uint8_t> rest = BytesOf(payload);
  for (int i = 0; i < 3; ++i) {
    const absl::Span<const uint8_t> part = rest.subspan(0, Below(random, rest.size() + 1));
    slices.push_back(Below(random, 2) == 0 ? BorrowSlice(part, nullptr) : CopySlice(part));
    rest.remove_prefix(part.size());
  }
  slices.push_back(BorrowSlice(rest, nullptr));
  return slices;
}

FrameHeader OnePiece(uint32_t length) {
  FrameHeader header;
  header.pieces.emplace_back().length = length;
  return header;
}

class FlagOwner final : public PayloadOwner {
 public:
  explicit FlagOwner(int* ended) : ended_(ended) {}
  ~FlagOwner() override { ++*ended_; }

 private:
  int* const ended_;
};

TEST(FrameEncoder, GeneratedClassesParseRandomWriteRequests) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const v1::WriteRequest expected = RandomWriteRequest(random);
    const std::vector<grpc::Slice> payload = CutPayload(expected.payload(), random);
    const grpc::ByteBuffer buffer =
        EncodeFrame(FrameKind::kWriteRequest, HeaderOf(expected), payload);
    v1::WriteRequest parsed;
    ASSERT_TRUE(parsed.ParseFromString(Flatten(buffer)));
    EXPECT_TRUE(parsed.SerializeAsString() == expected.SerializeAsString()) << "message " << i;
  }
}

TEST(FrameEncoder, GeneratedClassesParseRandomGetResponses) {
  Random random(2);
  for (int i = 0; i < 2000; ++i) {
    const v1::GetResponse expected = RandomGetResponse(random);
    const std::vector<grpc::Slice> payload = CutPayload(expected.payload(), random);
    const grpc::ByteBuffer buffer =
        EncodeFrame(FrameKind::kGetResponse, HeaderOf(expected), payload);
    v1::GetResponse parsed;
    ASSERT_TRUE(parsed.ParseFromString(Flatten(buffer)));
    EXPECT_TRUE(parsed.SerializeAsString() == expected.SerializeAsString()) << "message " << i;
  }
}

TEST(FrameEncoder, BytesAreThoseOfTheGeneratedClasses) {
  Random random(4);
  for (int i = 0; i < 200; ++i) {
    const v1::WriteRequest expected = RandomWriteRequest(random);
    const std::vector<grpc::Slice> payload = CutPayload(expected.payload(), random);
    const grpc::ByteBuffer buffer =
        EncodeFrame(FrameKind::kWriteRequest, HeaderOf(expected), payload);
    EXPECT_TRUE(Flatten(buffer) == expected.SerializeAsString()) << "message " << i;
  }
}

TEST(FrameEncoder, EmptyFrameIsOneEmptySlice) {
  const grpc::ByteBuffer buffer = EncodeFrame(FrameKind::kGetResponse, {}, {});
  ASSERT_TRUE(buffer.Valid());
  EXPECT_EQ(buffer.Length(), 0u);
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(buffer.Dump(&slices).ok());
  EXPECT_LE(slices.size(), 1u);
}

TEST(FrameEncoder, BorrowedBytesAreNotCopied) {
  const std::string payload(100'000, 'x');
  const grpc::Slice slice = BorrowSlice(BytesOf(payload), nullptr);
  const grpc::ByteBuffer buffer =
      EncodeFrame(FrameKind::kGetResponse, OnePiece(100'000), absl::MakeConstSpan(&slice, 1));
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(buffer.Dump(&slices).ok());
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[1].begin(), BytesOf(payload).data());
}

TEST(FrameEncoder, OwnerEndsOnceWithTheLastReference) {
  const std::string payload(1000, 'x');
  int ended = 0;
  grpc::Slice slice = BorrowSlice(BytesOf(payload), std::make_unique<FlagOwner>(&ended));
  grpc::ByteBuffer buffer =
      EncodeFrame(FrameKind::kGetResponse, OnePiece(1000), absl::MakeConstSpan(&slice, 1));
  slice = grpc::Slice();
  grpc::ByteBuffer second(buffer);
  buffer.Clear();
  EXPECT_EQ(ended, 0);
  second.Clear();
  EXPECT_EQ(ended, 1);
}

TEST(FrameEncoder, OwnerOfNoBytesEndsAtOnce) {
  int ended = 0;
  const grpc::Slice slice = BorrowSlice({}, std::make_unique<FlagOwner>(&ended));
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(slice.size(), 0u);
}

TEST(FrameEncoder, HeaderBytesAreTheMessageWithoutPayload) {
  Random random(3);
  for (int i = 0; i < 200; ++i) {
    const v1::WriteRequest message = RandomWriteRequest(random);
    EXPECT_EQ(FrameHeaderBytes(FrameKind::kWriteRequest, HeaderOf(message)),
              message.ByteSizeLong() - message.payload().size());
  }
}

TEST(FrameEncoderDeathTest, LengthsThatDoNotAddUpAbort) {
  const grpc::Slice slice = CopySlice(BytesOf("abc"));
  EXPECT_DEATH(EncodeFrame(FrameKind::kGetResponse, OnePiece(4), absl::MakeConstSpan(&slice, 1)),
               "given_bytes == payload_bytes");
}

TEST(FrameEncoderDeathTest, TokenInAGetResponseAborts) {
  FrameHeader header;
  header.token.emplace();
  EXPECT_DEATH(EncodeFrame(FrameKind::kGetResponse, header, {}), "token");
}

TEST(FrameEncoderDeathTest, HeaderOverItsBoundAborts) {
  FrameHeader header;
  header.pieces.emplace_back().digests.resize(kFrameHeaderBytesMax / 8 + 1);
  EXPECT_DEATH(EncodeFrame(FrameKind::kGetResponse, header, {}), "kFrameHeaderBytesMax");
}

}  // namespace
}  // namespace cairn::testing
