// Method: one wrong thing at a time in an otherwise good request, through the generated classes;
// the status must be INVALID_ARGUMENT or the one named, say the value, and leave nothing behind.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>

#include <functional>

#include "common/rpc/id_conversion.h"
#include "common/rpc/namespace_conversion.h"
#include "common/rpc/retry_status.h"
#include "common/rpc/status_mapping.h"
#include "common/wire/limits.h"
#include "tests/cache_node/service/node_fixture.h"

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

class BadInputTest : public NodeFixture {
 protected:
  BadInputTest() : prompt_(MakePrompt(1, 2)) {}

  void TearDown() override {
    const v1::DescribeResponse described = Describe();
    EXPECT_EQ(described.pins(), 0u);
    EXPECT_EQ(described.load().host_reserved_bytes(), 0u);
    EXPECT_EQ(described.load().leases(), 0u);
    EXPECT_TRUE(node_->store().Audit().ok()) << node_->store().Audit();
  }

  static void ExpectInvalid(const grpc::Status& status, const std::string& says) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(says));
  }

  void LookupIsInvalid(const v1::LookupRequest& request, const std::string& says) {
    v1::LookupResponse response;
    ExpectInvalid(stub_->Lookup(Context().get(), request, &response), says);
  }
  void ReserveIsInvalid(const v1::ReserveRequest& request, const std::string& says) {
    v1::ReserveResponse response;
    ExpectInvalid(stub_->Reserve(Context().get(), request, &response), says);
  }
  void GetIsInvalid(const v1::GetRequest& request, const std::string& says) {
    std::vector<v1::GetResponse> frames;
    ExpectInvalid(Get(request, &frames), says);
    EXPECT_TRUE(frames.empty());
  }

  // Writes one frame of a reservation that is aborted afterwards.
  v1::WriteResponse WriteOne(const std::function<void(v1::WriteRequest&)>& bend,
                             grpc::Status* status) {
    const std::string token = Reserve(prompt_);
    v1::WriteRequest frame = FrameOf(token, prompt_, 0);
    bend(frame);
    std::vector<v1::WriteResponse> responses;
    *status = WriteFrames({frame}, &responses);
    v1::AbortRequest abort;
    abort.set_token(token);
    v1::AbortResponse aborted;
    EXPECT_TRUE(stub_->Abort(Context().get(), abort, &aborted).ok());
    EXPECT_EQ(Present(prompt_), 0u);
    return responses.empty() ? v1::WriteResponse() : responses[0];
  }
  void PieceIsInvalid(const std::function<void(v1::WriteRequest&)>& bend) {
    grpc::Status status;
    const v1::WriteResponse response = WriteOne(bend, &status);
    EXPECT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(response.errors_size(), 1);
    EXPECT_EQ(response.errors(0).code(), grpc::StatusCode::INVALID_ARGUMENT)
        << response.ShortDebugString();
    EXPECT_FALSE(response.errors(0).message().empty());
  }

  const TestPrompt prompt_;
};

TEST_F(BadInputTest, LookupFields) {
  v1::LookupRequest request = LookupRequestOf(prompt_);
  request.mutable_prompts(0)->mutable_regions(0)->clear_tokens();
  LookupIsInvalid(request, "tokens");
  request = LookupRequestOf(prompt_);
  request.set_fingerprint("short");
  LookupIsInvalid(request, "fingerprint has 5 bytes");
  request = LookupRequestOf(prompt_);
  request.clear_prompts();
  LookupIsInvalid(request, "prompts");
  request = LookupRequestOf(prompt_);
  request.mutable_lease()->set_readers(0);
  LookupIsInvalid(request, "lease.readers: 0");
  request.mutable_lease()->set_readers(kReadersPerLeaseMax + 1);
  LookupIsInvalid(request, "lease.readers: 1025");
  request = LookupRequestOf(prompt_);
  request.set_wait_ms(kWaitMsMax + 1);
  LookupIsInvalid(request, "wait_ms: 10001");
  request = LookupRequestOf(prompt_);
  request.mutable_prompts(0)->set_keys("0123456789abcdef");
  LookupIsInvalid(request, "prompts[0]");
}

TEST_F(BadInputTest, LookupOverTheBatch) {
  v1::LookupRequest request = LookupRequestOf(prompt_);
  for (uint32_t i = 0; i < kPromptsPerLookupMax; ++i) {
    request.add_prompts()->set_keys("0123456789abcdef");
  }
  LookupIsInvalid(request, "257");
}

TEST_F(BadInputTest, ReserveFields) {
  v1::ReserveRequest request = ReserveRequestOf(prompt_);
  request.clear_keys();
  ReserveIsInvalid(request, "keys");
  request = ReserveRequestOf(prompt_);
  request.clear_tokens();
  ReserveIsInvalid(request, "tokens: 0 for 2 blocks");
  request = ReserveRequestOf(prompt_);
  request.mutable_tokens()->RemoveLast();
  ReserveIsInvalid(request, "tokens: 31");
  request = ReserveRequestOf(prompt_);
  request.set_keys(KeysToProto({prompt_.keys[0], prompt_.keys[0]}));
  ReserveIsInvalid(request, "again at 1");
  request = ReserveRequestOf(prompt_);
  request.set_keys(request.keys() + "x");
  ReserveIsInvalid(request, "keys has 33 bytes");
  request = ReserveRequestOf(prompt_);
  request.set_parent_key("x");
  ReserveIsInvalid(request, "parent_key has 1 bytes");
  request = ReserveRequestOf(prompt_);
  request.set_request_id("x");
  ReserveIsInvalid(request, "request_id: 1 bytes");
  request = ReserveRequestOf(prompt_);
  request.add_external_ids("id");
  ReserveIsInvalid(request, "external_ids");
}

TEST_F(BadInputTest, ReserveWishesNoNodeCanKeep) {
  v1::ReserveRequest request = ReserveRequestOf(prompt_);
  request.mutable_retention()->set_priority(101);
  ReserveIsInvalid(request, "retention: priority: 101, at most 100");
  for (const uint64_t ms : {uint64_t{4'000'000'000'000}, UINT64_MAX}) {
    request = ReserveRequestOf(prompt_);
    request.mutable_retention()->set_ttl_ms(ms);
    ReserveIsInvalid(request, "0 has no end");
    request.mutable_retention()->set_ttl_ms(0);
    request.mutable_retention()->set_priority_ms(ms);
    ReserveIsInvalid(request, "0 has no end");
  }
}

TEST_F(BadInputTest, ReserveOverTheBatch) {
  v1::ReserveRequest request = ReserveRequestOf(prompt_);
  for (uint32_t i = 0; i < kBlocksPerReserveMax; ++i) request.mutable_keys()->append(16, 'k');
  ReserveIsInvalid(request, "4098");
}

TEST_F(BadInputTest, ReserveInAnUnknownNamespace) {
  fingerprint_ = std::string(32, 'x');
  v1::ReserveResponse response;
  const grpc::Status status = stub_->Reserve(Context().get(), ReserveRequestOf(prompt_), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("7878"));
}

TEST_F(BadInputTest, ReserveForAnotherTenant) {
  v1::ReserveRequest request = ReserveRequestOf(prompt_);
  request.mutable_scope()->set_tenant("acme");
  v1::ReserveResponse response;
  const grpc::Status status = stub_->Reserve(Context().get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), HasSubstr("acme"));
}

TEST_F(BadInputTest, NameBoundToOtherFieldsSaysBoth) {
  v1::RegisterNamespaceRequest request;
  request.set_name("model");
  Namespace other = namespace_;
  other.revision = "sha256:ff";
  *request.mutable_fields() = NamespaceToProto(other);
  v1::RegisterNamespaceResponse response;
  const grpc::Status status = stub_->RegisterNamespace(Context().get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("sha256:ff"));
  EXPECT_THAT(status.error_message(), HasSubstr("sha256:00"));
  request.set_name("");
  ExpectInvalid(stub_->RegisterNamespace(Context().get(), request, &response), "name");
}

TEST_F(BadInputTest, GetFields) {
  GetIsInvalid({}, "fingerprint");
  v1::GetRequest request = GetRequestOf(prompt_);
  request.clear_keys();
  GetIsInvalid(request, "keys");
  request = GetRequestOf(prompt_);
  request.set_keys(request.keys() + request.keys());
  GetIsInvalid(request, "again at 2");
  request = GetRequestOf(prompt_);
  request.add_parts()->set_group(1);
  GetIsInvalid(request, "group 1");
  request = GetRequestOf(prompt_);
  request.add_parts()->set_first_layer(2);
  GetIsInvalid(request, "layers 2");
  request = GetRequestOf(prompt_);
  request.add_parts();
  request.add_parts()->set_first_layer(1);
  GetIsInvalid(request, "twice");
  request = GetRequestOf(prompt_);
  request.set_lease("x");
  GetIsInvalid(request, "lease has 1 bytes");
}

TEST_F(BadInputTest, GetWithAnUnknownLeaseIsAborted) {
  v1::GetRequest request = GetRequestOf(prompt_);
  request.set_lease(std::string(16, 'x'));
  std::vector<v1::GetResponse> frames;
  EXPECT_EQ(Get(request, &frames).error_code(), grpc::StatusCode::ABORTED);
}

TEST_F(BadInputTest, WriteOfAWrongSegmentLength) {
  PieceIsInvalid([](v1::WriteRequest& frame) {
    frame.mutable_pieces(0)->set_length(frame.pieces(0).length() - 64);
    frame.mutable_payload()->resize(frame.payload().size() - 64);
  });
}

TEST_F(BadInputTest, WriteOfAnotherPart) {
  PieceIsInvalid([](v1::WriteRequest& frame) { frame.mutable_pieces(0)->set_group(7); });
  PieceIsInvalid([](v1::WriteRequest& frame) { frame.mutable_pieces(0)->set_block(2); });
  PieceIsInvalid([](v1::WriteRequest& frame) { frame.mutable_pieces(0)->set_layer(1); });
}

TEST_F(BadInputTest, WriteWithADigestThatDiffers) {
  PieceIsInvalid([](v1::WriteRequest& frame) { frame.mutable_payload()->at(100) ^= 1; });
}

TEST_F(BadInputTest, FrameThatSaysNothingEndsTheStream) {
  grpc::Status status;
  WriteOne([](v1::WriteRequest& frame) { frame.clear_token(); }, &status);
  ExpectInvalid(status, "token");
  WriteOne([](v1::WriteRequest& frame) { frame.Clear(); }, &status);
  ExpectInvalid(status, "token");
  WriteOne([](v1::WriteRequest& frame) { frame.mutable_payload()->pop_back(); }, &status);
  ExpectInvalid(status, "payload");
}

TEST_F(BadInputTest, UnknownTokensAreAborted) {
  v1::CommitRequest commit = CommitRequestOf(std::string(16, 'x'), prompt_);
  v1::CommitResponse response;
  EXPECT_EQ(stub_->Commit(Context().get(), commit, &response).error_code(),
            grpc::StatusCode::ABORTED);
  commit.clear_pieces();
  EXPECT_EQ(stub_->Commit(Context().get(), commit, &response).error_code(),
            grpc::StatusCode::ABORTED);
  std::vector<v1::WriteResponse> responses;
  EXPECT_TRUE(WriteFrames({FrameOf(std::string(16, 'x'), prompt_, 0)}, &responses).ok());
  ASSERT_EQ(responses.size(), 1u);
  EXPECT_EQ(responses[0].errors(0).code(), grpc::StatusCode::ABORTED);
}

TEST_F(BadInputTest, CommitPiecesHoldDigestsOnly) {
  const std::string token = Reserve(prompt_);
  v1::CommitRequest commit = CommitRequestOf(token, prompt_);
  commit.mutable_pieces(1)->set_length(1);
  v1::CommitResponse response;
  ExpectInvalid(stub_->Commit(Context().get(), commit, &response), "pieces[1]");
  commit.mutable_pieces(1)->clear_digests();
  ExpectInvalid(stub_->Commit(Context().get(), commit, &response), "pieces[1]: digests");
  v1::AbortRequest abort;
  abort.set_token(token);
  v1::AbortResponse aborted;
  EXPECT_TRUE(stub_->Abort(Context().get(), abort, &aborted).ok());
}

TEST_F(BadInputTest, ErrorsCarryAReason) {
  v1::GetRequest request;
  std::vector<v1::GetResponse> frames;
  const grpc::Status status = Get(request, &frames);
  EXPECT_FALSE(status.error_details().empty());
}

TEST_F(BadInputTest, UnknownMethodIsUnimplemented) {
  grpc::GenericStub stub(channel_);
  grpc::CompletionQueue queue;
  const auto context = Context();
  const grpc::Slice empty;
  const grpc::ByteBuffer request(&empty, 1);
  const auto call =
      stub.PrepareUnaryCall(context.get(), "/cairn.v1.CacheNode/Nothing", request, &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), HasSubstr("Nothing"));
}

}  // namespace
}  // namespace cairn::node
