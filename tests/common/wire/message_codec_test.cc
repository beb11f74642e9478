// Sends generated messages through bytes and back, and bytes that are no message.
#include "common/wire/message_codec.h"

#include "cairn/v1/cache_node.pb.h"
#include "common/wire/limits.h"
#include "tests/common/wire/frame_samples.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;

TEST(MessageCodec, RoundTrips) {
  v1::WriteResponse message;
  message.add_errors()->set_message("no such block");
  v1::WriteResponse decoded;
  ASSERT_TRUE(DecodeMessage(EncodeMessage(message), &decoded).ok());
  EXPECT_EQ(decoded.SerializeAsString(), message.SerializeAsString());
}

TEST(MessageCodec, DecodesOverAnyCut) {
  Random random(31);
  v1::GetRequest message;
  message.set_keys(std::string(16 * 500, 'k'));
  message.add_parts()->set_layers(7);
  for (int i = 0; i < 100; ++i) {
    v1::GetRequest decoded;
    ASSERT_TRUE(DecodeMessage(Scatter(message.SerializeAsString(), random), &decoded).ok());
    EXPECT_EQ(decoded.SerializeAsString(), message.SerializeAsString());
  }
}

TEST(MessageCodec, EmptyMessageIsAValidEmptyBuffer) {
  const grpc::ByteBuffer buffer = EncodeMessage(v1::WriteResponse());
  EXPECT_TRUE(buffer.Valid());
  EXPECT_EQ(buffer.Length(), 0u);
  v1::WriteResponse decoded;
  decoded.add_errors();
  ASSERT_TRUE(DecodeMessage(buffer, &decoded).ok());
  EXPECT_EQ(decoded.errors_size(), 0);
}

TEST(MessageCodec, RefusesWhatDoesNotParse) {
  Random random(32);
  v1::GetRequest decoded;
  const absl::Status status = DecodeMessage(Scatter("\x0a\x7f", random), &decoded);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("malformed cairn.v1.GetRequest"));
}

TEST(MessageCodec, RefusesNoMessageAndTooMuch) {
  v1::GetRequest decoded;
  EXPECT_EQ(DecodeMessage(grpc::ByteBuffer(), &decoded).code(), absl::StatusCode::kInvalidArgument);
  Random random(33);
  const std::string large(kMessageBytesMax + 1, 'x');
  const absl::Status status = DecodeMessage(Scatter(large, random), &decoded);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("at most 1114112"));
}

}  // namespace
}  // namespace cairn::testing
