// Method: leases, waits and request ids through the generated classes; who waits does so on a
// thread of its own, and the test goes on when the node says that it waits.
#include <gmock/gmock.h>

#include <thread>

#include "tests/cache_node/service/node_fixture.h"

namespace cairn::node {
namespace {

using ::testing::ElementsAre;

class LeaseTest : public NodeFixture {
 protected:
  v1::LookupResponse Lease(const TestPrompt& prompt, uint32_t readers,
                           const std::string& request_id = "") {
    v1::LookupRequest request = LookupRequestOf(prompt);
    request.mutable_lease()->set_readers(readers);
    request.set_request_id(request_id);
    v1::LookupResponse response;
    const grpc::Status status = stub_->Lookup(Context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  bool End(const std::string& lease, uint32_t reader, uint32_t usable) {
    v1::EndLeaseRequest request;
    request.set_lease(lease);
    request.set_reader(reader);
    request.add_usable_blocks(usable);
    v1::EndLeaseResponse response;
    const grpc::Status status = stub_->EndLease(Context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.complete();
  }

  v1::GetLeaseResponse StateOf(const std::string& lease, uint32_t wait_ms) {
    v1::GetLeaseRequest request;
    request.set_lease(lease);
    request.set_wait_ms(wait_ms);
    v1::GetLeaseResponse response;
    const grpc::Status status = stub_->GetLease(Context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  // Until the node runs `count` calls of the method.
  void AwaitRunning(const std::string& method, int count) {
    const std::string line =
        "cairn_node_rpcs_running{method=\"" + method + "\"} " + std::to_string(count) + "\n";
    while (node_->metrics().Text().find(line) == std::string::npos) std::this_thread::yield();
  }
};

TEST_F(LeaseTest, FourReadersShareALeaseAndTheLeastCounts) {
  const TestPrompt prompt = MakePrompt(1, 4);
  Put(prompt);
  const v1::LookupResponse leased = Lease(prompt, 4);
  ASSERT_EQ(leased.lease().size(), 16u);
  EXPECT_EQ(leased.results(0).blocks_leased(), 4u);
  EXPECT_GT(leased.lease_ttl_ms(), 0u);
  v1::GetLeaseResponse waited;
  std::thread waiter([&] { waited = StateOf(leased.lease(), 10'000); });
  AwaitRunning("GetLease", 1);
  std::vector<std::thread> readers;
  for (uint32_t reader = 0; reader < 4; ++reader) {
    readers.emplace_back([&, reader] {
      v1::GetRequest request = GetRequestOf(prompt);
      request.set_lease(leased.lease());
      std::vector<v1::GetResponse> frames;
      EXPECT_TRUE(Get(request, &frames).ok());
      EXPECT_EQ(Assemble(prompt, map_, frames).size(), 4 * map_.segment_count());
      End(leased.lease(), reader, 4 - reader % 2);
    });
  }
  for (std::thread& reader : readers) reader.join();
  waiter.join();
  EXPECT_TRUE(waited.complete());
  EXPECT_EQ(waited.readers_ended(), 4u);
  EXPECT_THAT(waited.usable_blocks(), ElementsAre(3));
  EXPECT_EQ(Describe().load().leases(), 0u);
}

TEST_F(LeaseTest, EndIsIdempotentForEachReader) {
  const TestPrompt prompt = MakePrompt(1, 1);
  Put(prompt);
  const v1::LookupResponse leased = Lease(prompt, 2);
  EXPECT_FALSE(End(leased.lease(), 0, 1));
  EXPECT_FALSE(End(leased.lease(), 0, 1));
  EXPECT_TRUE(End(leased.lease(), 1, 1));
}

TEST_F(LeaseTest, WaitForReadersEndsAtItsBound) {
  const TestPrompt prompt = MakePrompt(1, 1);
  Put(prompt);
  const v1::LookupResponse leased = Lease(prompt, 1);
  EXPECT_FALSE(StateOf(leased.lease(), 50).complete());
  EXPECT_FALSE(StateOf(leased.lease(), 0).complete());
  End(leased.lease(), 0, 1);
}

TEST_F(LeaseTest, RenewGrantsATtl) {
  const TestPrompt prompt = MakePrompt(1, 1);
  Put(prompt);
  const v1::LookupResponse leased = Lease(prompt, 1);
  v1::RenewLeaseRequest request;
  request.set_lease(leased.lease());
  request.set_ttl_ms(5000);
  v1::RenewLeaseResponse response;
  ASSERT_TRUE(stub_->RenewLease(Context().get(), request, &response).ok());
  EXPECT_EQ(response.ttl_ms(), 5000u);
  End(leased.lease(), 0, 1);
}

TEST_F(LeaseTest, RetryWithTheSameIdGetsTheSameLease) {
  const TestPrompt prompt = MakePrompt(1, 1);
  Put(prompt);
  const std::string id(16, 'i');
  const v1::LookupResponse first = Lease(prompt, 1, id);
  const v1::LookupResponse second = Lease(prompt, 1, id);
  EXPECT_EQ(first.lease(), second.lease());
  EXPECT_EQ(Describe().load().leases(), 1u);
  v1::LookupRequest other = LookupRequestOf(prompt);
  other.mutable_lease()->set_readers(2);
  other.set_request_id(id);
  v1::LookupResponse response;
  EXPECT_EQ(stub_->Lookup(Context().get(), other, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  End(first.lease(), 0, 1);
}

TEST_F(LeaseTest, ReserveRetryWithTheSameIdGetsTheSameToken) {
  const TestPrompt prompt = MakePrompt(1, 2);
  v1::ReserveRequest request = ReserveRequestOf(prompt);
  request.set_request_id(std::string(16, 'i'));
  v1::ReserveResponse first;
  v1::ReserveResponse second;
  ASSERT_TRUE(stub_->Reserve(Context().get(), request, &first).ok());
  ASSERT_TRUE(stub_->Reserve(Context().get(), request, &second).ok());
  EXPECT_EQ(first.token().size(), 16u);
  EXPECT_EQ(first.SerializeAsString(), second.SerializeAsString());
  request.clear_request_id();
  ASSERT_TRUE(stub_->Reserve(Context().get(), request, &second).ok());
  EXPECT_EQ(second.answers(0).outcome(), v1::RESERVE_OUTCOME_IN_PROGRESS);
}

TEST_F(LeaseTest, LookupWaitsForBlocksThatAreBeingWritten) {
  const TestPrompt prompt = MakePrompt(1, 3);
  const std::string token = Reserve(prompt);
  v1::LookupResponse waited;
  std::thread waiter([&] {
    v1::LookupRequest request = LookupRequestOf(prompt);
    request.set_wait_ms(10'000);
    request.mutable_lease()->set_readers(1);
    EXPECT_TRUE(stub_->Lookup(Context().get(), request, &waited).ok());
  });
  AwaitRunning("Lookup", 1);
  std::vector<v1::WriteRequest> frames;
  for (uint32_t block = 0; block < 3; ++block) frames.push_back(FrameOf(token, prompt, block));
  ASSERT_TRUE(WriteFrames(frames).ok());
  v1::CommitResponse committed;
  ASSERT_TRUE(stub_->Commit(Context().get(), CommitRequestOf(token, prompt), &committed).ok());
  waiter.join();
  EXPECT_EQ(waited.results(0).blocks_leased(), 3u);
  End(waited.lease(), 0, 3);
  // Probes while it waited are not counted.
  EXPECT_THAT(node_->metrics().Text(), ::testing::HasSubstr("cairn_node_lookups_total 1\n"));
}

TEST_F(LeaseTest, LookupStopsWaitingWhenTheWriterAborts) {
  const TestPrompt prompt = MakePrompt(1, 1);
  const std::string token = Reserve(prompt);
  v1::LookupResponse waited;
  std::thread waiter([&] {
    v1::LookupRequest request = LookupRequestOf(prompt);
    request.set_wait_ms(10'000);
    EXPECT_TRUE(stub_->Lookup(Context().get(), request, &waited).ok());
  });
  AwaitRunning("Lookup", 1);
  v1::AbortRequest abort;
  abort.set_token(token);
  v1::AbortResponse aborted;
  ASSERT_TRUE(stub_->Abort(Context().get(), abort, &aborted).ok());
  waiter.join();
  EXPECT_EQ(waited.results(0).blocks_present(), 0u);
  EXPECT_NE(waited.results(0).runs(0).state(), v1::BLOCK_STATE_PENDING);
}

TEST_F(LeaseTest, LookupWhoseWaitIsOverSaysPending) {
  const TestPrompt prompt = MakePrompt(1, 1);
  Reserve(prompt);
  v1::LookupRequest request = LookupRequestOf(prompt);
  request.set_wait_ms(30);
  v1::LookupResponse response;
  ASSERT_TRUE(stub_->Lookup(Context().get(), request, &response).ok());
  EXPECT_EQ(response.results(0).runs(0).state(), v1::BLOCK_STATE_PENDING);
}

TEST_F(LeaseTest, CancelledWaitLeavesAtOnce) {
  const TestPrompt prompt = MakePrompt(1, 1);
  Reserve(prompt);
  const auto context = Context();
  grpc::Status status;
  std::thread waiter([&] {
    v1::LookupRequest request = LookupRequestOf(prompt);
    request.set_wait_ms(10'000);
    v1::LookupResponse response;
    status = stub_->Lookup(context.get(), request, &response);
  });
  AwaitRunning("Lookup", 1);
  context->TryCancel();
  waiter.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  AwaitRunning("Lookup", 0);
}

TEST_F(LeaseTest, NodeStopsWhileALeaseIsOpen) {
  const TestPrompt prompt = MakePrompt(1, 2);
  Put(prompt);
  EXPECT_EQ(Lease(prompt, 1).results(0).blocks_leased(), 2u);
  Reserve(MakePrompt(2, 2));
  node_->Drain();
  node_ = nullptr;
}

TEST_F(LeaseTest, ReportedMismatchThatIsNoneKeepsTheBlock) {
  const TestPrompt prompt = MakePrompt(1, 1);
  Put(prompt);
  const v1::LookupResponse leased = Lease(prompt, 1);
  v1::EndLeaseRequest request;
  request.set_lease(leased.lease());
  request.add_usable_blocks(0);
  request.add_mismatches()->set_key(std::string(prompt.keys[0].view()));
  v1::EndLeaseResponse response;
  const grpc::Status status = stub_->EndLease(Context().get(), request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(response.complete());
  EXPECT_EQ(Present(prompt), 1u);
  EXPECT_THAT(node_->metrics().Text(),
              ::testing::HasSubstr("cairn_node_reported_mismatches_total 1\n"));
}

}  // namespace
}  // namespace cairn::node
