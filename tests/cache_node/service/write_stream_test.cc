// Method: a node whose budget holds one message (or a few), so that one stream that holds it shows
// what happens to the others.
#include "cache_node/service/write_stream.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "common/base/clock.h"
#include "common/metrics/metrics.h"
#include "common/rpc/caller_resolver.h"
#include "common/rpc/retry_status.h"
#include "common/rpc/status_mapping.h"
#include "common/wire/limits.h"
#include "tests/cache_node/service/node_fixture.h"

namespace cairn::node {
namespace {

class WriteStreamTest : public NodeFixture {
 protected:
  using Stream = grpc::ClientReaderWriter<v1::WriteRequest, v1::WriteResponse>;

  void StartTightNode(absl::Duration wait, absl::Duration stall, int waiting_max = 16) {
    NodeConfig config = SmallConfig();
    config.in_flight_bytes = ByteSize(kMessageBytesMax);
    config.admission_wait = wait;
    config.write_stall = stall;
    config.writers_waiting_max = waiting_max;
    StartNode(config);
  }

  void AwaitWaiting(uint32_t writers) {
    while (Describe().load().writers_waiting() != writers) std::this_thread::yield();
  }
  void AwaitInFlight(uint64_t bytes) {
    while (Describe().load().in_flight_bytes() != bytes) std::this_thread::yield();
  }

  // The frame's segments, a quarter at a time.
  std::vector<v1::WriteRequest> RangesOf(const v1::WriteRequest& frame) const {
    std::vector<v1::WriteRequest> ranges;
    size_t at = 0;
    for (const v1::Piece& run : frame.pieces()) {
      const uint32_t bytes = run.length() / static_cast<uint32_t>(run.digests_size());
      for (int segment = 0; segment < run.digests_size(); ++segment) {
        for (uint32_t offset = 0; offset < bytes; offset += bytes / 4) {
          v1::WriteRequest& range = ranges.emplace_back();
          range.set_token(frame.token());
          v1::Piece* const piece = range.add_pieces();
          *piece = run;
          piece->set_layer(run.layer() + static_cast<uint32_t>(segment));
          piece->set_offset(offset);
          piece->set_length(bytes / 4);
          piece->clear_digests();
          piece->add_digests(run.digests(segment));
          range.set_payload(frame.payload().substr(at, bytes / 4));
          at += bytes / 4;
        }
      }
    }
    return ranges;
  }

  static void ExpectRefused(const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    EXPECT_TRUE(RetryAfter(FromGrpcStatus(status)).has_value());
  }
};

TEST_F(WriteStreamTest, StreamThatStallsIsCutForThoseWhoWait) {
  StartTightNode(absl::Seconds(60), absl::Milliseconds(50));
  const auto idle_context = Context();
  const std::unique_ptr<Stream> idle = stub_->Write(idle_context.get());
  AwaitInFlight(kMessageBytesMax);
  // This one gets through because the idle one is cut.
  Put(MakePrompt(1, 2));
  v1::WriteResponse response;
  EXPECT_FALSE(idle->Read(&response));
  ExpectRefused(idle->Finish());
  EXPECT_THAT(node_->metrics().Text(),
              ::testing::HasSubstr("cairn_node_writers_stalled_total 1\n"));
}

// Two streams without a transport: what they start is kept back, and the test says what became of
// it.
TEST_F(WriteStreamTest, StreamThatEndedAsItsAnswerWasOnItsWayDoesNotQueueAgain) {
  const SystemClock clock;
  Metrics metrics;
  RpcMetrics rpc_metrics(&metrics, &clock);
  InFlightBytes in_flight({.bytes_max = kMessageBytesMax}, &clock);
  const InsecureCallerResolver callers;
  const grpc::GenericCallbackServerContext context;
  const auto start = [&](uint64_t writer) {
    const WriteStream::Parts parts = {
        .store = &node_->store(), .in_flight = &in_flight, .bytes_landed = {}};
    auto rights = std::make_unique<StreamRights>(&callers, &context, "CacheNode/Write");
    return static_cast<WriteStream*>(
        WriteStream::Start(parts, std::move(rights), writer, rpc_metrics.Begin(RpcMethod::kWrite)));
  };
  WriteStream* const stalled = start(1);
  in_flight.Release(stalled);  // Its message landed.
  WriteStream* const holder = start(2);
  stalled->OnStalled(absl::ResourceExhaustedError("stalled"));
  stalled->OnWriteDone(true);
  EXPECT_EQ(in_flight.counts().waiting, 0u);
  stalled->OnDone();
  in_flight.Release(holder);
  holder->OnDone();
}

// To whom each look is one after a change; remembers how often a call's context was used.
class RestlessResolver final : public CallerResolver {
 public:
  absl::StatusOr<Caller> Resolve(const grpc::ServerContextBase&, absl::string_view) const override {
    ++resolved;
    return Caller{.id = "anyone", .tenant = "public"};
  }
  uint64_t Generation() const override { return ++generation_; }

  mutable std::atomic<uint64_t> resolved{0};

 private:
  mutable std::atomic<uint64_t> generation_{0};
};

TEST_F(WriteStreamTest, StreamThatEndedIsNotAskedForItsRights) {
  const SystemClock clock;
  Metrics metrics;
  RpcMetrics rpc_metrics(&metrics, &clock);
  InFlightBytes in_flight({.bytes_max = kMessageBytesMax}, &clock);
  const RestlessResolver callers;
  auto context = std::make_unique<const grpc::GenericCallbackServerContext>();
  auto* const stream = static_cast<WriteStream*>(
      WriteStream::Start({.store = &node_->store(), .in_flight = &in_flight, .bytes_landed = {}},
                         std::make_unique<StreamRights>(&callers, context.get(), "CacheNode/Write"),
                         1, rpc_metrics.Begin(RpcMethod::kWrite)));
  const std::shared_ptr<WriteStream> told = stream->shared_from_this();  // As admission holds it.
  uint64_t resolved = callers.resolved;
  told->OnRightsChanged();
  EXPECT_GT(callers.resolved, resolved);
  in_flight.Release(stream);
  stream->OnStalled(absl::ResourceExhaustedError("stalled"));
  stream->OnDone();
  context = nullptr;  // gRPC's, gone with the call.
  resolved = callers.resolved;
  told->OnRightsChanged();
  EXPECT_EQ(callers.resolved, resolved);
}

TEST_F(WriteStreamTest, RefusedAfterTheLongestWait) {
  StartTightNode(absl::Milliseconds(50), absl::Seconds(60));
  const auto idle_context = Context();
  const std::unique_ptr<Stream> idle = stub_->Write(idle_context.get());
  AwaitInFlight(kMessageBytesMax);
  const auto context = Context();
  const std::unique_ptr<Stream> refused = stub_->Write(context.get());
  v1::WriteResponse response;
  EXPECT_FALSE(refused->Read(&response));
  ExpectRefused(refused->Finish());
  idle->WritesDone();
  EXPECT_TRUE(idle->Finish().ok());
}

TEST_F(WriteStreamTest, RefusedOverTheQueue) {
  StartTightNode(absl::Seconds(60), absl::Seconds(60), 1);
  const auto idle_context = Context();
  const std::unique_ptr<Stream> idle = stub_->Write(idle_context.get());
  AwaitInFlight(kMessageBytesMax);
  const auto waiting_context = Context();
  const std::unique_ptr<Stream> waiting = stub_->Write(waiting_context.get());
  AwaitWaiting(1);
  const auto context = Context();
  const std::unique_ptr<Stream> refused = stub_->Write(context.get());
  v1::WriteResponse response;
  EXPECT_FALSE(refused->Read(&response));
  ExpectRefused(refused->Finish());
  idle->WritesDone();
  EXPECT_TRUE(idle->Finish().ok());
  waiting->WritesDone();
  EXPECT_TRUE(waiting->Finish().ok());
  AwaitInFlight(0);
}

TEST_F(WriteStreamTest, CancelledWaitingStreamLeavesTheQueue) {
  StartTightNode(absl::Seconds(60), absl::Seconds(60));
  const auto idle_context = Context();
  const std::unique_ptr<Stream> idle = stub_->Write(idle_context.get());
  AwaitInFlight(kMessageBytesMax);
  const auto context = Context();
  const std::unique_ptr<Stream> waiting = stub_->Write(context.get());
  AwaitWaiting(1);
  context->TryCancel();
  EXPECT_EQ(waiting->Finish().error_code(), grpc::StatusCode::CANCELLED);
  AwaitWaiting(0);
  idle_context->TryCancel();
  EXPECT_EQ(idle->Finish().error_code(), grpc::StatusCode::CANCELLED);
  AwaitInFlight(0);
}

TEST_F(WriteStreamTest, PayloadWaitsInTheClientUntilItIsAdmitted) {
  StartTightNode(absl::Seconds(60), absl::Seconds(60));
  const auto idle_context = Context();
  const std::unique_ptr<Stream> idle = stub_->Write(idle_context.get());
  AwaitInFlight(kMessageBytesMax);
  const TestPrompt prompt = MakePrompt(1, 1);
  const std::string token = Reserve(prompt);
  grpc::Status status;
  std::thread writer([&] { status = WriteFrames({FrameOf(token, prompt, 0)}); });
  AwaitWaiting(1);
  EXPECT_EQ(node_->metrics().Text().find("cairn_node_write_bytes_total 16384"), std::string::npos);
  idle->WritesDone();
  EXPECT_TRUE(idle->Finish().ok());
  writer.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(node_->metrics().Text(),
              ::testing::HasSubstr("cairn_node_write_bytes_total 16384\n"));
}

// Ranges of one segment land only in their order, and each is answered in its turn. The client does
// not wait for answers, so that the next message is always there.
TEST_F(WriteStreamTest, FramesThatAreReadAheadLandInOrder) {
  constexpr uint32_t kBlocks = 16;
  for (const uint64_t messages : {1u, 2u, 64u}) {
    NodeConfig config = SmallConfig();
    config.in_flight_bytes = ByteSize(messages * kMessageBytesMax);
    StartNode(config);
    const TestPrompt prompt = MakePrompt(1, kBlocks);
    const std::string token = Reserve(prompt);
    const auto context = Context();
    const std::unique_ptr<Stream> stream = stub_->Write(context.get());
    std::thread writer([&] {
      for (uint32_t block = 0; block < kBlocks; ++block) {
        for (const v1::WriteRequest& range : RangesOf(FrameOf(token, prompt, block))) {
          if (!stream->Write(range)) return;
        }
      }
      stream->WritesDone();
    });
    size_t answers = 0;
    v1::WriteResponse response;
    while (stream->Read(&response)) {
      ++answers;
      EXPECT_EQ(response.errors_size(), 0) << response.ShortDebugString();
    }
    writer.join();
    EXPECT_TRUE(stream->Finish().ok());
    EXPECT_EQ(answers, kBlocks * RangesOf(FrameOf(token, prompt, 0)).size());
    v1::CommitResponse committed;
    ASSERT_TRUE(stub_->Commit(Context().get(), CommitRequestOf(token, prompt), &committed).ok());
    EXPECT_TRUE(committed.complete());
    EXPECT_EQ(Describe().load().in_flight_bytes(), 0u);
  }
}

TEST_F(WriteStreamTest, WriterThatGoesLeavesItsSegmentsToAnother) {
  const TestPrompt prompt = MakePrompt(1, 1);
  const std::string token = Reserve(prompt);
  const v1::WriteRequest frame = FrameOf(token, prompt, 0);
  // Half of the pieces' layers, and away.
  const auto context = Context();
  const std::unique_ptr<Stream> gone = stub_->Write(context.get());
  ASSERT_TRUE(gone->Write(frame));
  context->TryCancel();
  gone->Finish();
  ASSERT_TRUE(WriteFrames({frame}).ok());
  v1::CommitResponse committed;
  ASSERT_TRUE(stub_->Commit(Context().get(), CommitRequestOf(token, prompt), &committed).ok());
  EXPECT_TRUE(committed.complete());
}

TEST_F(WriteStreamTest, SixteenWritersOfOneKeyLeaveOneCopy) {
  const TestPrompt prompt = MakePrompt(1, 4);
  std::vector<std::thread> writers;
  for (int i = 0; i < 16; ++i) {
    writers.emplace_back([&] {
      v1::ReserveResponse reserved;
      EXPECT_TRUE(stub_->Reserve(Context().get(), ReserveRequestOf(prompt), &reserved).ok());
      if (reserved.token().empty()) return;
      std::vector<v1::WriteRequest> frames;
      for (uint32_t block = 0; block < 4; ++block) {
        frames.push_back(FrameOf(reserved.token(), prompt, block));
      }
      EXPECT_TRUE(WriteFrames(frames).ok());
      v1::CommitResponse committed;
      EXPECT_TRUE(
          stub_->Commit(Context().get(), CommitRequestOf(reserved.token(), prompt), &committed)
              .ok());
      EXPECT_TRUE(committed.complete());
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(Present(prompt), 4u);
  EXPECT_EQ(Describe().blocks(), 4u);
}

}  // namespace
}  // namespace cairn::node
