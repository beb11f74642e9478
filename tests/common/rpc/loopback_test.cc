// Generated clients against a server of hand-made frames, over a real connection with the options
// that our programs use.
#include <grpcpp/grpcpp.h>

#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "cairn/v1/cache_node.grpc.pb.h"
#include "common/rpc/channel_options.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/retry_status.h"
#include "common/rpc/status_mapping.h"
#include "common/wire/frame_encoder.h"
#include "common/wire/payload_slice.h"
#include "tests/common/rpc/frame_server.h"

namespace cairn::testing {
namespace {

constexpr uint32_t kFrameBytes = kFramePayloadBytesMax;

class NotifyOwner final : public PayloadOwner {
 public:
  explicit NotifyOwner(absl::Notification* ended) : ended_(ended) {}
  ~NotifyOwner() override { ended_->Notify(); }

 private:
  absl::Notification* const ended_;
};

std::unique_ptr<v1::CacheNode::Stub> Connect(const FrameServer& server,
                                             const ChannelOptions& options = {}) {
  return v1::CacheNode::NewStub(grpc::CreateCustomChannel(
      server.address(), grpc::InsecureChannelCredentials(), MakeChannelArguments(options)));
}

// Every call ends, whatever goes wrong.
void SetDeadline(grpc::ClientContext* context) {
  context->set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
}

v1::WriteRequest FrameOf(char fill, uint32_t size) {
  v1::WriteRequest frame;
  frame.set_token(std::string(16, 't'));
  frame.add_pieces()->set_length(size);
  frame.set_payload(std::string(size, fill));
  return frame;
}

absl::Status WriteAll(v1::CacheNode::Stub* stub, grpc::ClientContext* context,
                      const std::vector<v1::WriteRequest>& frames) {
  const auto stream = stub->Write(context);
  for (const v1::WriteRequest& frame : frames) {
    v1::WriteResponse response;
    if (!stream->Write(frame) || !stream->Read(&response)) break;
  }
  stream->WritesDone();
  return FromGrpcStatus(stream->Finish());
}

absl::Status Write(const FrameServer& server, const std::vector<v1::WriteRequest>& frames,
                   const ChannelOptions& options = {}) {
  const std::unique_ptr<v1::CacheNode::Stub> stub = Connect(server, options);
  grpc::ClientContext context;
  SetDeadline(&context);
  return WriteAll(stub.get(), &context, frames);
}

TEST(Loopback, GeneratedWritesArriveAndEmptyResponsesComeBack) {
  FrameServer server;
  ASSERT_TRUE(Write(server, {FrameOf('a', kFrameBytes), FrameOf('b', 0), FrameOf('c', 10)}).ok());
  EXPECT_EQ(server.written(),
            (std::vector<std::string>{std::string(kFrameBytes, 'a'), "", std::string(10, 'c')}));
}

TEST(Loopback, BorrowedFramesArriveAndTheirOwnersEnd) {
  const std::string memory(kFrameBytes, 'm');
  absl::Notification ended[3];
  FrameServer server;
  std::vector<grpc::ByteBuffer> frames;
  for (absl::Notification& notification : ended) {
    const grpc::Slice slice =
        BorrowSlice({reinterpret_cast<const uint8_t*>(memory.data()), memory.size()},
                    std::make_unique<NotifyOwner>(&notification));
    FrameHeader header;
    header.pieces.emplace_back().length = kFrameBytes;
    frames.push_back(EncodeFrame(FrameKind::kGetResponse, header, absl::MakeConstSpan(&slice, 1)));
  }
  frames.push_back(EncodeFrame(FrameKind::kGetResponse, {}, {}));
  server.SetGet(std::move(frames), grpc::Status::OK);

  const auto stub = Connect(server);
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto stream = stub->Get(&context, v1::GetRequest());
  v1::GetResponse response;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_TRUE(response.payload() == memory);
  }
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.ByteSizeLong(), 0u);
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
  for (absl::Notification& notification : ended) notification.WaitForNotification();
}

TEST(Loopback, OwnersEndWhenTheReaderGoesAway) {
  const std::string memory(kFrameBytes, 'm');
  absl::Notification ended[8];
  FrameServer server;
  std::vector<grpc::ByteBuffer> frames;
  for (absl::Notification& notification : ended) {
    const grpc::Slice slice =
        BorrowSlice({reinterpret_cast<const uint8_t*>(memory.data()), memory.size()},
                    std::make_unique<NotifyOwner>(&notification));
    FrameHeader header;
    header.pieces.emplace_back().length = kFrameBytes;
    frames.push_back(EncodeFrame(FrameKind::kGetResponse, header, absl::MakeConstSpan(&slice, 1)));
  }
  server.SetGet(std::move(frames), grpc::Status::OK);
  {
    const auto stub = Connect(server);
    grpc::ClientContext context;
    SetDeadline(&context);
    const auto stream = stub->Get(&context, v1::GetRequest());
    v1::GetResponse response;
    ASSERT_TRUE(stream->Read(&response));
    context.TryCancel();
    EXPECT_FALSE(stream->Finish().ok());
  }
  for (absl::Notification& notification : ended) notification.WaitForNotification();
}

TEST(Loopback, DetailsTravelInTrailers) {
  FrameServer server;
  server.SetGet({}, ToGrpcStatus(WithReason(absl::ResourceExhaustedError("pool is full"),
                                            "POOL_FULL", {{"pool", "host"}})));
  const auto stub = Connect(server);
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto stream = stub->Get(&context, v1::GetRequest());
  v1::GetResponse response;
  EXPECT_FALSE(stream->Read(&response));
  const absl::Status status = FromGrpcStatus(stream->Finish());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "pool is full");
  EXPECT_EQ(RetryAfter(status), kRetryDelayDefault);
  EXPECT_EQ(ReasonOf(status)->metadata.at("pool"), "host");
}

TEST(Loopback, LargestDetailsFitIntoTrailers) {
  FrameServer server;
  const std::string long_text(4 * kStatusMessageBytesMax, '%');  // percent-encoded in a trailer
  server.SetGet({}, ToGrpcStatus(WithReason(absl::AbortedError(long_text), "WHY",
                                            {{"fact", std::string(1500, 'x')}})));
  const auto stub = Connect(server);
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto stream = stub->Get(&context, v1::GetRequest());
  v1::GetResponse response;
  EXPECT_FALSE(stream->Read(&response));
  const absl::Status status = FromGrpcStatus(stream->Finish());
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  EXPECT_EQ(ReasonOf(status)->metadata.at("fact").size(), 1500u);
}

TEST(Loopback, MalformedFrameIsInvalidArgument) {
  FrameServer server;
  v1::WriteRequest frame = FrameOf('x', 10);
  frame.mutable_pieces(0)->set_length(11);
  EXPECT_EQ(Write(server, {frame}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(server.written().empty());
}

TEST(Loopback, MessageOverTheServersBoundIsRefused) {
  FrameServer server;
  ChannelOptions options;
  options.message_bytes_max = 2 * kMessageBytesMax;
  EXPECT_EQ(Write(server, {FrameOf('x', kMessageBytesMax)}, options).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(server.written().empty());
}

TEST(Loopback, MessageOverTheClientsBoundIsNotSent) {
  FrameServer server;
  EXPECT_FALSE(Write(server, {FrameOf('x', kMessageBytesMax)}).ok());
  EXPECT_TRUE(server.written().empty());
}

TEST(Loopback, CompressedMessagesAreRefused) {
  FrameServer server;
  const auto stub = Connect(server);
  grpc::ClientContext context;
  SetDeadline(&context);
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  EXPECT_EQ(WriteAll(stub.get(), &context, {FrameOf('x', kFrameBytes)}).code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(server.written().empty());
}

TEST(Loopback, ASecondServerDoesNotShareThePort) {
  FrameServer first;
  grpc::ServerBuilder builder;
  ApplyServerOptions({}, &builder);
  grpc::CallbackGenericService unused;
  int port = 0;
  builder.RegisterCallbackGenericService(&unused);
  builder.AddListeningPort(first.address(), grpc::InsecureServerCredentials(), &port);
  const std::unique_ptr<grpc::Server> second = builder.BuildAndStart();
  EXPECT_EQ(port, 0);
}

TEST(Loopback, ChannelsToOneServerHaveTheirOwnConnections) {
  FrameServer server;
  const auto first = Connect(server);
  const auto second = Connect(server);
  for (v1::CacheNode::Stub* stub : {first.get(), second.get()}) {
    grpc::ClientContext context;
    SetDeadline(&context);
    EXPECT_TRUE(WriteAll(stub, &context, {FrameOf('x', 1)}).ok());
  }
  EXPECT_EQ(server.peers().size(), 2u);
}

}  // namespace
}  // namespace cairn::testing
