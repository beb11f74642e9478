// Method: a node that runs one Get at a time, and a reader that takes nothing of it.
#include <gmock/gmock.h>

#include <thread>

#include "tests/cache_node/service/node_fixture.h"

namespace cairn::node {
namespace {

constexpr size_t kLargeBlocks = 512;  // 16 KiB each: more than a transport takes unread.

class GetStallTest : public NodeFixture {
 protected:
  using Reader = std::unique_ptr<grpc::ClientReader<v1::GetResponse>>;

  void StartNodeOfOneGet(absl::Duration stall) {
    NodeConfig config = SmallConfig();
    config.gets_max = 1;
    config.get_stall = stall;
    StartNode(config);
  }

  bool HasMetric(const std::string& line) const {
    return node_->metrics().Text().find(line) != std::string::npos;
  }
};

TEST_F(GetStallTest, ReaderThatTakesNothingLosesItsSlotAndPins) {
  StartNodeOfOneGet(absl::Milliseconds(200));
  const TestPrompt large = MakePrompt(1, kLargeBlocks);
  const TestPrompt small = MakePrompt(2, 1);
  Put(large);
  Put(small);
  const std::unique_ptr<v1::CacheNode::Stub> own_channel = NewStub();
  const auto context = Context();
  const Reader stuck = own_channel->Get(context.get(), GetRequestOf(large));
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (!HasMetric("cairn_node_gets_stalled_total 1\n") && absl::Now() < deadline) {
    std::this_thread::yield();
  }
  ASSERT_TRUE(HasMetric("cairn_node_gets_stalled_total 1\n"));

  grpc::Status status;
  std::vector<v1::GetResponse> frames;
  do {  // Its slot is free when gRPC is done with the call.
    status = Get(GetRequestOf(small), &frames);
  } while (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED && absl::Now() < deadline);
  EXPECT_TRUE(status.ok()) << status.error_message();
  while (Describe().pins() > 0 && absl::Now() < deadline) {
  }
  EXPECT_EQ(Describe().pins(), 0u);

  v1::GetResponse frame;
  while (stuck->Read(&frame)) {
  }
  EXPECT_EQ(stuck->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

// Long before anybody would call it stalled.
TEST_F(GetStallTest, CancelAndDeadlineFreePinsAndSlotAtOnce) {
  StartNodeOfOneGet(absl::Hours(1));
  const TestPrompt large = MakePrompt(1, kLargeBlocks);
  Put(large);
  for (const bool cancels : {true, false}) {
    const std::unique_ptr<v1::CacheNode::Stub> own_channel = NewStub();
    const auto context = Context();
    if (!cancels) context->set_deadline(absl::ToChronoTime(absl::Now() + absl::Milliseconds(300)));
    const Reader stuck = own_channel->Get(context.get(), GetRequestOf(large));
    stuck->WaitForInitialMetadata();
    if (cancels) {
      EXPECT_GT(Describe().pins(), 0u);
      context->TryCancel();
    }
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (Describe().pins() > 0 && absl::Now() < deadline) std::this_thread::yield();
    EXPECT_EQ(Describe().pins(), 0u);
    v1::GetResponse frame;
    while (stuck->Read(&frame)) {
    }
    EXPECT_EQ(stuck->Finish().error_code(),
              cancels ? grpc::StatusCode::CANCELLED : grpc::StatusCode::DEADLINE_EXCEEDED);
    grpc::Status next;
    std::vector<v1::GetResponse> frames;
    do {  // Its slot is free when gRPC is done with the call.
      next = Get(GetRequestOf(large), &frames);
    } while (next.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED && absl::Now() < deadline);
    EXPECT_TRUE(next.ok()) << next.error_message();
  }
}

TEST_F(GetStallTest, ReaderThatIsBehindAndReadsOnGetsAll) {
  StartNodeOfOneGet(absl::Minutes(5));
  const TestPrompt large = MakePrompt(1, kLargeBlocks);
  Put(large);
  const auto context = Context();
  const Reader reader = stub_->Get(context.get(), GetRequestOf(large));
  while (HasMetric("cairn_node_get_bytes_total 0\n")) std::this_thread::yield();
  // Its slot is taken for as long as it does not read.
  std::vector<v1::GetResponse> frames;
  const grpc::Status refused = Get(GetRequestOf(MakePrompt(2, 1)), &frames);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  v1::GetResponse frame;
  while (reader->Read(&frame)) {
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_TRUE(HasMetric("cairn_node_gets_stalled_total 0\n"));
}

}  // namespace
}  // namespace cairn::node
