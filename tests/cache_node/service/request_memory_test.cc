// Method: requests under one id in every state that an earlier one can be in, and both bounds.
#include "cache_node/service/request_memory.h"

#include <gtest/gtest.h>

#include "common/rpc/retry_status.h"

namespace cairn::node {
namespace {

const std::string kId(16, 'i');

std::string IdOf(int i) {
  std::string id(16, '\0');
  id[0] = static_cast<char>(i);
  id[1] = static_cast<char>(i >> 8);
  return id;
}

void Answer(RequestMemory& memory, const std::string& id, const std::string& answer) {
  absl::StatusOr<RequestMemory::Turn> turn = memory.Begin("caller", id, 1);
  ASSERT_TRUE(turn.ok());
  turn->Remember(answer);
}

TEST(RequestMemory, SameIdGetsSameAnswer) {
  RequestMemory memory({});
  Answer(memory, kId, "answer");
  const absl::StatusOr<RequestMemory::Turn> again = memory.Begin("caller", kId, 1);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->answer(), "answer");
}

TEST(RequestMemory, IdBelongsToItsCaller) {
  RequestMemory memory({});
  Answer(memory, kId, "answer");
  const absl::StatusOr<RequestMemory::Turn> other = memory.Begin("other", kId, 2);
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(other->answer().has_value());
}

TEST(RequestMemory, OtherBodyUnderAnIdIsInvalid) {
  RequestMemory memory({});
  Answer(memory, kId, "answer");
  const absl::Status status = memory.Begin("caller", kId, 2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("69696969"), std::string::npos) << status;
}

TEST(RequestMemory, IdOfARunningRequestIsAbortedWithARetryDelay) {
  RequestMemory memory({});
  const absl::StatusOr<RequestMemory::Turn> first = memory.Begin("caller", kId, 1);
  ASSERT_TRUE(first.ok());
  const absl::Status second = memory.Begin("caller", kId, 1).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(RetryAfter(second).has_value());
}

TEST(RequestMemory, RequestThatFailedIsForgotten) {
  RequestMemory memory({});
  { const auto turn = memory.Begin("caller", kId, 1); }
  EXPECT_EQ(memory.entries(), 0u);
  EXPECT_EQ(memory.bytes(), 0u);
  EXPECT_TRUE(memory.Begin("caller", kId, 2).ok());
}

TEST(RequestMemory, RequestWithoutIdIsNotRemembered) {
  RequestMemory memory({});
  Answer(memory, "", "answer");
  EXPECT_EQ(memory.entries(), 0u);
}

TEST(RequestMemory, IdOfAnotherLengthIsInvalid) {
  RequestMemory memory({});
  EXPECT_EQ(memory.Begin("caller", "short", 1).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(RequestMemory, OldestIsForgottenOverEntries) {
  RequestMemory memory({.entries_max = 3});
  for (int i = 0; i < 4; ++i) Answer(memory, IdOf(i), "answer");
  EXPECT_EQ(memory.entries(), 3u);
  EXPECT_FALSE(memory.Begin("caller", IdOf(0), 1)->answer().has_value());
  EXPECT_TRUE(memory.Begin("caller", IdOf(3), 1)->answer().has_value());
}

TEST(RequestMemory, OldestAreForgottenOverBytes) {
  constexpr uint64_t kBytesMax = 4096;
  RequestMemory memory({.bytes_max = kBytesMax});
  for (int i = 0; i < 20; ++i) Answer(memory, IdOf(i), std::string(1000, 'a'));
  EXPECT_LE(memory.bytes(), kBytesMax);
  EXPECT_GT(memory.entries(), 0u);
  EXPECT_TRUE(memory.Begin("caller", IdOf(19), 1)->answer().has_value());
}

TEST(RequestMemory, RunningRequestsAreBounded) {
  RequestMemory memory({.entries_max = 2});
  const auto first = memory.Begin("caller", IdOf(1), 1);
  const auto second = memory.Begin("caller", IdOf(2), 1);
  const absl::Status third = memory.Begin("caller", IdOf(3), 1).status();
  EXPECT_EQ(third.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(RetryAfter(third).has_value());
}

}  // namespace
}  // namespace cairn::node
