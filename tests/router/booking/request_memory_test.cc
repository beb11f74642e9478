// Retries of the same and of another request, by the same and by another caller.
#include "router/booking/request_memory.h"

#include <gmock/gmock.h>

namespace cairn::router {
namespace {

const absl::Time kStart = absl::UnixEpoch();

class RequestMemoryTest : public ::testing::Test {
 protected:
  // The answer, or 0 for none.
  int Find(absl::string_view caller, absl::string_view id, uint64_t digest) {
    const auto found = memory_.Find(caller, id, digest);
    EXPECT_TRUE(found.ok()) << found.status();
    return *found == nullptr ? 0 : **found;
  }

  RequestMemory<int> memory_{2, absl::Seconds(10)};
};

TEST_F(RequestMemoryTest, ARetryGetsTheFirstAnswer) {
  EXPECT_EQ(Find("a", "id", 7), 0);
  memory_.Remember("a", "id", 7, 42, kStart);
  EXPECT_EQ(Find("a", "id", 7), 42);
}

TEST_F(RequestMemoryTest, AnIdBelongsToItsCaller) {
  memory_.Remember("a", "bc", 7, 42, kStart);
  EXPECT_EQ(Find("ab", "c", 7), 0);
  EXPECT_EQ(Find("b", "bc", 7), 0);
}

TEST_F(RequestMemoryTest, AnotherRequestUnderTheSameIdIsRefused) {
  memory_.Remember("a", "id", 7, 42, kStart);
  EXPECT_EQ(memory_.Find("a", "id", 8).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(RequestMemoryTest, TheOldestIsForgottenAtTheBound) {
  memory_.Remember("a", "1", 7, 1, kStart);
  memory_.Remember("a", "2", 7, 2, kStart);
  memory_.Remember("a", "3", 7, 3, kStart);
  EXPECT_EQ(Find("a", "1", 7), 0);
  EXPECT_EQ(Find("a", "2", 7), 2);
  EXPECT_EQ(memory_.size(), 2u);
}

TEST_F(RequestMemoryTest, AnswersAreForgottenAfterTheirTtl) {
  memory_.Remember("a", "1", 7, 1, kStart);
  memory_.Remember("a", "2", 7, 2, kStart + absl::Seconds(1));
  memory_.Expire(kStart + absl::Seconds(10));
  EXPECT_EQ(Find("a", "1", 7), 0);
  EXPECT_EQ(Find("a", "2", 7), 2);
}

}  // namespace
}  // namespace cairn::router
