// Calls about whole sequences: opening, forks, truncations, windows, closing; what ends them, what
// is given back then, and what the node says of it.
#include <gmock/gmock.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "common/rpc/retry_status.h"
#include "common/rpc/status_mapping.h"
#include "common/wire/decode_limits.h"
#include "tests/cache_node/service/decode_fixture.h"

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

class DecodeSequenceCallsTest : public DecodeFixture {
 protected:
  grpc::Status Fork(const std::string& id, uint32_t count, uint64_t reserve,
                    v1::ForkSequenceResponse* response, const std::string& request_id = "") {
    v1::ForkSequenceRequest request;
    request.set_sequence(id);
    request.set_count(count);
    request.set_reserve_tokens(reserve);
    request.set_request_id(request_id);
    return decode_->ForkSequence(CallerContext().get(), request, response);
  }
  grpc::Status Truncate(const std::string& id, uint64_t length,
                        v1::TruncateSequenceResponse* response) {
    v1::TruncateSequenceRequest request;
    request.set_sequence(id);
    request.set_length_tokens(length);
    return decode_->TruncateSequence(CallerContext().get(), request, response);
  }
  // Nothing is held, and every sequence that began has ended.
  void ExpectNothingHeld() {
    const v1::DecodeReport report = AwaitReport([](const v1::DecodeReport& r) {
      return r.running() == 0 && r.bytes_free() == r.bytes_max();
    });
    EXPECT_EQ(report.tokens_reserved(), 0u);
    while (Describe().pins() > 0) {
    }
  }
};

TEST_F(DecodeSequenceCallsTest, AnOpeningPinsWhatIsThereAndReservesTheRest) {
  const TestPrompt prompt = PutPrompt(1, 4);
  std::vector<uint32_t> tokens = prompt.tokens;
  tokens.insert(tokens.end(), {1, 2, 3});
  v1::OpenSequenceResponse opened;
  ASSERT_TRUE(Open(OpenRequestOf(tokens, 20), &opened).ok());
  EXPECT_EQ(opened.first_token(), 0u);
  EXPECT_EQ(opened.covered_tokens(), 64u);
  EXPECT_GE(opened.reserved_tokens(), 20u);
  EXPECT_EQ(opened.idle_ms(), 60'000u);
  EXPECT_EQ(opened.sequence().size(), 16u);
  const v1::DecodeReport report =
      AwaitReport([](const v1::DecodeReport& r) { return r.running() == 1; });
  EXPECT_EQ(report.tokens_reserved(), opened.reserved_tokens());
  EXPECT_EQ(report.bytes_max() - report.bytes_free(), 2 * map_.block_bytes());

  v1::OpenSequenceRequest part = OpenRequestOf(tokens, 8);
  part.set_first_block(1);
  part.set_blocks_max(2);
  v1::OpenSequenceResponse middle;
  ASSERT_TRUE(Open(part, &middle).ok());
  EXPECT_EQ(middle.first_token(), 16u);
  EXPECT_EQ(middle.covered_tokens(), 48u);
  EXPECT_EQ(Close(opened.sequence() + middle.sequence()), 2u);
  EXPECT_EQ(Close(opened.sequence() + middle.sequence()), 0u);
  ExpectNothingHeld();
}

TEST_F(DecodeSequenceCallsTest, ARepetitionOfAnOpeningIsTheSameSequence) {
  v1::OpenSequenceRequest request = OpenRequestOf({1, 2, 3}, 20);
  request.set_request_id(std::string(16, 'r'));
  v1::OpenSequenceResponse first, again;
  ASSERT_TRUE(Open(request, &first).ok());
  ASSERT_TRUE(Open(request, &again).ok());
  EXPECT_EQ(first.SerializeAsString(), again.SerializeAsString());
  request.set_reserve_tokens(21);
  EXPECT_EQ(Open(request, &again).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  v1::ForkSequenceResponse forked, forked_again;
  ASSERT_TRUE(Fork(first.sequence(), 2, 8, &forked, std::string(16, 'f')).ok());
  ASSERT_TRUE(Fork(first.sequence(), 2, 8, &forked_again, std::string(16, 'f')).ok());
  EXPECT_EQ(forked.sequences(), forked_again.sequences());
  AwaitReport([](const v1::DecodeReport& r) { return r.running() == 3; });
}

TEST_F(DecodeSequenceCallsTest, WhatDoesNotFitIsRefusedWithADelayAndFitsLater) {
  v1::OpenSequenceResponse opened, refused;
  const uint64_t room = (ByteSize::MiB(8).bytes() / map_.block_bytes()) * kBlockTokens * 3 / 4;
  ASSERT_TRUE(Open(OpenRequestOf({1}, room), &opened).ok());
  const grpc::Status status = Open(OpenRequestOf({1}, room), &refused);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(RetryAfter(FromGrpcStatus(status)).has_value());
  EXPECT_EQ(AwaitReport([](const v1::DecodeReport& r) { return r.refused() > 0; }).refused(), 1u);
  EXPECT_EQ(Close(opened.sequence()), 1u);
  EXPECT_TRUE(Open(OpenRequestOf({1}, room), &refused).ok());
}

TEST_F(DecodeSequenceCallsTest, ANodeWithoutMemoryForSequencesSaysSo) {
  NodeConfig config = DecodeConfigOfTests();
  config.decode.memory = ByteSize();
  config.decode.streams_max = 4;
  StartDecodeNode(config);
  v1::OpenSequenceResponse response;
  const grpc::Status status = Open(OpenRequestOf({1}, 1), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("--decode-memory"));
  const TestPrompt prompt = PutPrompt(1, 2);
  v1::AttendResponse attended;
  ASSERT_TRUE(Attend({LeasedItem(Lease(prompt), 40)}, &attended).ok());
  EXPECT_EQ(attended.results(0).code(), 0);

  config.decode.streams_max = 0;
  StartDecodeNode(config);
  EXPECT_EQ(Attend({}, &attended).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_FALSE(Describe().has_decode());
}

TEST_F(DecodeSequenceCallsTest, WrongRequestsAreNamed) {
  using grpc::StatusCode;
  const auto open = [&](auto change) {
    v1::OpenSequenceRequest request = OpenRequestOf({1, 2, 3}, 20);
    change(request);
    v1::OpenSequenceResponse response;
    return Open(request, &response);
  };
  EXPECT_EQ(open([](auto& r) { r.set_fingerprint("x"); }).error_code(),
            StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(open([](auto& r) { r.set_fingerprint(std::string(32, 'x')); }).error_code(),
            StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(open([](auto& r) { r.set_first_block(1); }).error_message(),
              HasSubstr("first_block: 1"));
  EXPECT_THAT(open([](auto& r) { r.set_wait_ms(10'001); }).error_message(), HasSubstr("wait_ms"));
  EXPECT_THAT(open([](auto& r) { r.set_idle_ms(kSequenceIdleMsMax + 1); }).error_message(),
              HasSubstr("idle_ms"));
  EXPECT_EQ(open([](auto& r) { r.set_request_id("short"); }).error_code(),
            StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(open([](auto& r) { r.clear_prompt(); }).error_code(), StatusCode::INVALID_ARGUMENT);
  const std::string unknown(16, 'u');
  v1::ForkSequenceResponse forked;
  EXPECT_EQ(Fork(unknown, 1, 1, &forked).error_code(), StatusCode::ABORTED);
  EXPECT_EQ(Fork("x", 1, 1, &forked).error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Fork(unknown, kForksMax + 1, 1, &forked).error_code(), StatusCode::INVALID_ARGUMENT);
  v1::TruncateSequenceResponse truncated;
  EXPECT_EQ(Truncate(unknown, 1, &truncated).error_code(), StatusCode::ABORTED);
  v1::CloseSequencesRequest close;
  close.set_sequences("17 bytes are odd.");
  v1::CloseSequencesResponse closed;
  EXPECT_EQ(decode_->CloseSequences(CallerContext().get(), close, &closed).error_code(),
            StatusCode::INVALID_ARGUMENT);
}

TEST_F(DecodeSequenceCallsTest, ForksGoTheirOwnWaysAndATruncationForgets) {
  const TestPrompt prompt = PutPrompt(1, 2);
  const std::string id = OpenSequence(prompt.tokens, 64);
  const auto stream = NewStream();
  Append(*stream, id, 32, {1, 2, 3});
  v1::ForkSequenceResponse forked;
  ASSERT_TRUE(Fork(id, 2, 16, &forked).ok());
  EXPECT_EQ(forked.length_tokens(), 35u);
  const std::string a = forked.sequences().substr(0, 16);
  const std::string b = forked.sequences().substr(16);
  std::vector<uint32_t> base = prompt.tokens;
  base.insert(base.end(), {1, 2, 3});
  const std::vector<v1::AttendItem> items = {
      AppendItem(a, 0, 35, {10}), AppendItem(b, 0, 35, {20, 21}), AppendItem(id, 0, 35, {30})};
  const auto results = stream->Ask(1, 0, items);
  const std::vector<std::vector<uint32_t>> own = {{10}, {20, 21}, {30}};
  for (size_t i = 0; i < 3; ++i) {
    std::vector<uint32_t> tokens = base;
    tokens.insert(tokens.end(), own[i].begin(), own[i].end());
    ExpectAnswer(results[i], items[i], 0, tokens);
  }
  v1::TruncateSequenceResponse truncated;
  ASSERT_TRUE(Truncate(b, 36, &truncated).ok());
  EXPECT_EQ(truncated.length_tokens(), 35u);  // What all layers hold.
  const v1::AttendItem other = AppendItem(b, 0, 36, {22});
  base.insert(base.end(), {20, 22});
  ExpectAnswer(stream->Ask(2, 0, {other})[0], other, 0, base);
  EXPECT_EQ(Close(id + a + b), 3u);
  ExpectNothingHeld();
}

TEST_F(DecodeSequenceCallsTest, AReleasedWindowIsNotAskedForAgain) {
  const std::string id = OpenSequence({0}, 100);
  const auto stream = NewStream();
  std::vector<uint32_t> tokens(80);
  for (uint32_t i = 0; i < 80; ++i) tokens[i] = i;
  Append(*stream, id, 0, tokens);
  v1::ReleaseWindowRequest release;
  release.set_sequence(id);
  release.set_before_token(48);
  v1::ReleaseWindowResponse released;
  ASSERT_TRUE(decode_->ReleaseWindow(CallerContext().get(), release, &released).ok());
  EXPECT_EQ(released.blocks(), 3u);
  const auto refused = stream->Ask(1, 0, {SequenceItem(id, 79)});
  EXPECT_EQ(refused[0].code(), static_cast<int>(absl::StatusCode::kFailedPrecondition));

  TestStream windowed(decode_.get(), CallerContext());
  v1::AttentionParameters parameters = Parameters();
  parameters.set_window_tokens(32);
  ASSERT_TRUE(windowed.SendOpen(fingerprint_, {parameters}));
  EXPECT_TRUE(windowed.Receive(0).empty());
  const auto results = windowed.Ask(1, 0, {SequenceItem(id, 79), SequenceItem(id, 78)});
  EXPECT_EQ(results[0].code(), 0) << results[0].message();
  EXPECT_EQ(results[1].code(), static_cast<int>(absl::StatusCode::kFailedPrecondition));
}

TEST_F(DecodeSequenceCallsTest, ADeadClientsSequencesEndWhenTheyWereIdle) {
  const TestPrompt prompt = PutPrompt(1, 2);
  {
    const auto stub = NewDecodeStub();
    v1::OpenSequenceRequest request = OpenRequestOf(prompt.tokens, 64);
    request.set_idle_ms(100);
    v1::OpenSequenceResponse opened;
    ASSERT_TRUE(stub->OpenSequence(CallerContext().get(), request, &opened).ok());
    const auto stream = NewStream(stub.get());
    Append(*stream, opened.sequence(), 32, {1});
    stream->Cancel();
  }
  ExpectNothingHeld();
  EXPECT_EQ(Describe().decode().reclaimed(), 1u);
}

TEST_F(DecodeSequenceCallsTest, SequencesEndWithTheirBlocksAndTheirNamespace) {
  const TestPrompt prompt = PutPrompt(1, 3);
  const std::string id = OpenSequence(prompt.tokens, 16);
  const std::string tail = OpenSequence({1}, 16);
  const auto stream = NewStream();
  ASSERT_EQ(stream->Ask(1, 0, {SequenceItem(id, 40)})[0].code(), 0);
  v1::DeleteRequest removal;
  removal.set_fingerprint(fingerprint_);
  removal.set_keys(std::string(prompt.keys[1].view()));
  v1::DeleteResponse removed;
  ASSERT_TRUE(stub_->Delete(CallerContext().get(), removal, &removed).ok());
  const auto results = stream->Ask(2, 0, {SequenceItem(id, 40), AppendItem(tail, 0, 0, {1})});
  EXPECT_EQ(results[0].code(), static_cast<int>(absl::StatusCode::kAborted));
  EXPECT_EQ(results[1].code(), 0);
  v1::RetireNamespaceRequest retire;
  retire.set_fingerprint(fingerprint_);
  v1::RetireNamespaceResponse retired;
  ASSERT_TRUE(stub_->RetireNamespace(CallerContext().get(), retire, &retired).ok());
  EXPECT_EQ(stream->Ask(3, 0, {SequenceItem(tail, 0)})[0].code(),
            static_cast<int>(absl::StatusCode::kAborted));
  ExpectNothingHeld();
  EXPECT_EQ(Describe().decode().reclaimed(), 2u);
}

TEST_F(DecodeSequenceCallsTest, ADrainRefusesOpeningsAndEndsStreamsAfterTheGrace) {
  const std::string id = OpenSequence({1}, 16);
  const auto stream = NewStream();
  std::thread drain([&] { node_->Drain(); });
  v1::OpenSequenceResponse response;
  while (Open(OpenRequestOf({1}, 1), &response).error_code() != grpc::StatusCode::UNAVAILABLE) {
  }
  v1::DecodeResponse last;
  while (stream->ReceiveAny(&last)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  drain.join();
}

TEST_F(DecodeSequenceCallsTest, NumbersAddUp) {
  const TestPrompt prompt = PutPrompt(1, 2);
  const std::string id = OpenSequence(prompt.tokens, 32);
  const auto stream = NewStream();
  Append(*stream, id, 32, {1, 2});
  v1::ForkSequenceResponse forked;
  ASSERT_TRUE(Fork(id, 3, 16, &forked).ok());
  Close(id);
  AwaitReport([](const v1::DecodeReport& r) { return r.running() == 3; });
  const std::string text = node_->metrics().Text();
  for (const std::string line :
       {"cairn_decode_opened_total 1\n", "cairn_decode_forked_total 3\n",
        "cairn_decode_closed_total 1\n", "cairn_decode_sequences 3\n", "cairn_decode_streams 1\n",
        "cairn_decode_steps_total 2\n", "cairn_decode_items_total 2\n",
        "cairn_decode_rows_total 4\n", "cairn_decode_preempted_total 0\n",
        "cairn_decode_round_items_count 2\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  const v1::DecodeReport report = Describe().decode();
  EXPECT_THAT(text, HasSubstr(absl::StrCat("cairn_decode_bytes_max ", report.bytes_max(), "\n")));
}

}  // namespace
}  // namespace cairn::node
