// Attend over leased blocks through the wire, each answer held against the kernels' reference over
// what was put; and what is wrong with one item, or with the call.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "common/wire/decode_limits.h"
#include "tests/cache_node/service/decode_fixture.h"

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

class DecodeAttendTest : public DecodeFixture {
 protected:
  static absl::StatusCode Code(const v1::AttendResult& result) {
    return static_cast<absl::StatusCode>(result.code());
  }
};

TEST_F(DecodeAttendTest, AnswersAreTheReferencesOverTheBlocksAskedFor) {
  const TestPrompt prompt = PutPrompt(1, 5);
  const std::string lease = Lease(prompt);
  for (uint32_t layer = 0; layer < kLayers; ++layer) {
    const std::vector<v1::AttendItem> items = {LeasedItem(lease, 80), LeasedItem(lease, 40, 3),
                                               LeasedItem(lease, 90, 2, 2, 2),
                                               LeasedItem(lease, 10, 1, 3)};
    v1::AttendResponse response;
    const grpc::Status status = Attend(items, &response, layer);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(response.results_size(), 4);
    const std::vector<uint32_t>& all = prompt.tokens;
    const std::vector<uint32_t> four(all.begin(), all.begin() + 4 * kBlockTokens);
    ExpectAnswer(response.results(0), items[0], layer, all);
    ExpectAnswer(response.results(1), items[1], layer, all);
    ExpectAnswer(response.results(2), items[2], layer, four, 2);
    ExpectAnswer(response.results(3), items[3], layer, all, 3);
    EXPECT_EQ(response.results(0).length_tokens(), 80u);
    EXPECT_EQ(response.results(2).length_tokens(), 64u);
    // It sees nothing of what begins behind it.
    EXPECT_EQ(response.results(3).output(), std::string(kQueryHeads * kDim * 4, '\0'));
  }
}

TEST_F(DecodeAttendTest, ARepetitionAnywhereIsAnsweredAlike) {
  const TestPrompt prompt = PutPrompt(1, 4);
  const std::string lease = Lease(prompt);
  v1::AttendResponse first, again;
  ASSERT_TRUE(Attend({LeasedItem(lease, 100)}, &first).ok());
  ASSERT_TRUE(Attend({LeasedItem(lease, 100)}, &again).ok());
  EXPECT_EQ(first.SerializeAsString(), again.SerializeAsString());

  StartDecodeNode(DecodeConfigOfTests());  // Another holder.
  PutPrompt(1, 4);
  v1::AttendResponse other;
  ASSERT_TRUE(Attend({LeasedItem(Lease(prompt), 100)}, &other).ok());
  EXPECT_EQ(first.SerializeAsString(), other.SerializeAsString());
}

TEST_F(DecodeAttendTest, WhatIsWrongWithAnItemIsItsAlone) {
  const TestPrompt prompt = PutPrompt(1, 3);
  const std::string lease = Lease(prompt);
  const std::string sequence = OpenSequence(prompt.tokens, 16);
  std::vector<v1::AttendItem> items(9, LeasedItem(lease, 50));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(items[1].mutable_queries()->data(), &nan, sizeof(nan));
  items[2].mutable_queries()->pop_back();
  items[3].mutable_leased()->set_lease(std::string(16, 'x'));
  items[4].mutable_leased()->set_lease("short");
  items[5].mutable_leased()->set_blocks(4);
  items[6] = SequenceItem(sequence, 50);
  items[7] = AppendItem(sequence, 0, 48, {1});
  *items[7].mutable_leased() = items[0].leased();
  v1::AttendResponse response;
  ASSERT_TRUE(Attend(items, &response).ok());
  ASSERT_EQ(response.results_size(), 9);
  using Status = absl::StatusCode;
  const std::vector<Status> expected = {Status::kOk,
                                        Status::kInvalidArgument,
                                        Status::kInvalidArgument,
                                        Status::kAborted,
                                        Status::kInvalidArgument,
                                        Status::kAborted,
                                        Status::kInvalidArgument,
                                        Status::kInvalidArgument,
                                        Status::kOk};
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(Code(response.results(i)), expected[static_cast<size_t>(i)])
        << i << ": " << response.results(i).message();
    EXPECT_EQ(response.results(i).message().empty(),
              expected[static_cast<size_t>(i)] == Status::kOk);
  }
  ExpectAnswer(response.results(8), items[8], 0, prompt.tokens);
}

TEST_F(DecodeAttendTest, WhatIsWrongWithTheCallIsItsStatus) {
  const TestPrompt prompt = PutPrompt(1, 3);
  v1::AttendRequest good;
  good.set_fingerprint(fingerprint_);
  *good.mutable_parameters() = Parameters();
  *good.add_items() = LeasedItem(Lease(prompt), 50);
  const auto call = [&](auto change) {
    v1::AttendRequest request = good;
    change(request);
    v1::AttendResponse response;
    return decode_->Attend(CallerContext().get(), request, &response);
  };
  EXPECT_TRUE(call([](auto&) {}).ok());
  using grpc::StatusCode;
  EXPECT_EQ(call([](auto& r) { r.set_fingerprint("x"); }).error_code(),
            StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(call([](auto& r) { r.set_fingerprint(std::string(32, 'x')); }).error_code(),
            StatusCode::FAILED_PRECONDITION);
  const grpc::Status heads = call([](auto& r) { r.mutable_parameters()->set_query_heads(6); });
  EXPECT_EQ(heads.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(heads.error_message(), HasSubstr("query_heads: 6"));
  v1::AttendResponse layer;
  ASSERT_TRUE(Attend({good.items(0)}, &layer, kLayers).ok());
  EXPECT_EQ(Code(layer.results(0)), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(layer.results(0).message(), HasSubstr("layer: 2"));
}

TEST_F(DecodeAttendTest, ALeaseThatEndedOrWhoseBlocksWentIsNotAnswered) {
  const TestPrompt prompt = PutPrompt(1, 3);
  const TestPrompt deleted = PutPrompt(2, 3);
  const std::string lease = Lease(prompt);
  const std::string other = Lease(deleted);
  v1::AttendResponse before;
  ASSERT_TRUE(Attend({LeasedItem(lease, 50), LeasedItem(other, 50)}, &before).ok());
  EXPECT_EQ(Code(before.results(1)), absl::StatusCode::kOk);
  EndLease(lease);
  v1::DeleteRequest removal;
  removal.set_fingerprint(fingerprint_);
  removal.set_keys(std::string(deleted.keys[1].view()));
  v1::DeleteResponse removed;
  ASSERT_TRUE(stub_->Delete(CallerContext().get(), removal, &removed).ok());
  v1::AttendResponse after;
  ASSERT_TRUE(Attend({LeasedItem(lease, 50), LeasedItem(other, 50)}, &after).ok());
  EXPECT_EQ(Code(after.results(0)), absl::StatusCode::kAborted);
  EXPECT_EQ(Code(after.results(1)), absl::StatusCode::kAborted);
  EXPECT_TRUE(after.results(1).output().empty());
  while (Describe().pins() > 0) {  // The next tick gives its pins back.
  }
}

TEST_F(DecodeAttendTest, AfterARetirementNoAnswerComes) {
  const TestPrompt prompt = PutPrompt(1, 3);
  const std::string lease = Lease(prompt);
  v1::AttendResponse before;
  ASSERT_TRUE(Attend({LeasedItem(lease, 50)}, &before).ok());
  v1::RetireNamespaceRequest retire;
  retire.set_fingerprint(fingerprint_);
  v1::RetireNamespaceResponse retired;
  ASSERT_TRUE(stub_->RetireNamespace(CallerContext().get(), retire, &retired).ok());
  v1::AttendResponse after;
  EXPECT_EQ(Attend({LeasedItem(lease, 50)}, &after).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(DecodeAttendTest, MoreItemsThanARequestMayHaveAreRefusedOneByOne) {
  const TestPrompt prompt = PutPrompt(1, 1);
  const std::string lease = Lease(prompt);
  const std::vector<v1::AttendItem> items(kDecodeItemsMax + 3, LeasedItem(lease, 20));
  v1::AttendResponse response;
  const grpc::Status status = Attend(items, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.results_size(), static_cast<int>(items.size()));
  EXPECT_EQ(Code(response.results(kDecodeItemsMax - 1)), absl::StatusCode::kOk);
  EXPECT_EQ(Code(response.results(kDecodeItemsMax)), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace cairn::node
