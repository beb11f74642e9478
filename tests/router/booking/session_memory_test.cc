// Sessions are noted, found, freed and left alone, on a clock that the test moves.
#include "router/booking/session_memory.h"

#include <gmock/gmock.h>

#include <string>

namespace cairn::router {
namespace {

class SessionMemoryTest : public ::testing::Test {
 protected:
  std::optional<ReplicaId> Find(const std::string& session, const std::string& tenant = "acme") {
    return memory_.Find(tenant, session, now_);
  }
  void Note(const std::string& session, ReplicaId replica, const std::string& tenant = "acme") {
    memory_.Note(tenant, session, replica, now_);
  }

  SessionMemory memory_{{.sessions_max = 3, .ttl = absl::Seconds(10)}};
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(SessionMemoryTest, TheLastReplicaIsRemembered) {
  EXPECT_EQ(Find("a"), std::nullopt);
  Note("a", 1);
  EXPECT_EQ(Find("a"), 1u);
  Note("a", 2);
  EXPECT_EQ(Find("a"), 2u);
  EXPECT_EQ(memory_.size(), 1u);
}

TEST_F(SessionMemoryTest, AnotherTenantsSessionOfThatNameIsAnother) {
  Note("a", 1, "acme");
  EXPECT_EQ(Find("a", "rival"), std::nullopt);
  Note("11:acme", 2, "1");
  EXPECT_EQ(Find("acme", "11"), std::nullopt) << "names do not run together";
}

TEST_F(SessionMemoryTest, ASessionIsForgottenAfterItsTtlWhichEachPromptRenews) {
  Note("a", 1);
  now_ += absl::Seconds(9);
  Note("a", 1);
  now_ += absl::Seconds(9);
  EXPECT_EQ(Find("a"), 1u);
  now_ += absl::Seconds(1);
  EXPECT_EQ(Find("a"), std::nullopt) << "also before anybody expires it";
  memory_.Expire(now_);
  EXPECT_EQ(memory_.size(), 0u);
}

TEST_F(SessionMemoryTest, BeyondTheBoundTheOneUsedLongestAgoGoes) {
  Note("a", 1);
  Note("b", 1);
  Note("c", 1);
  Note("a", 1);
  Note("d", 1);
  EXPECT_EQ(memory_.size(), 3u);
  EXPECT_EQ(Find("b"), std::nullopt);
  EXPECT_EQ(Find("a"), 1u);
  for (int i = 0; i < 1000; ++i) Note("s" + std::to_string(i), 1);
  EXPECT_EQ(memory_.size(), 3u);
}

TEST_F(SessionMemoryTest, AReplicaFreesItsSessionsAndTakesNewOnes) {
  Note("a", 1);
  Note("b", 2);
  memory_.Free(1);
  EXPECT_EQ(Find("a"), std::nullopt);
  EXPECT_EQ(Find("b"), 2u);
  Note("a", 1);
  EXPECT_EQ(Find("a"), 1u) << "noted after it was freed";
  memory_.Free(1);
  memory_.Free(1);
  EXPECT_EQ(Find("a"), std::nullopt);
  memory_.Forget(1);
  memory_.Expire(now_ + absl::Minutes(1));
  EXPECT_EQ(memory_.size(), 0u);
}

}  // namespace
}  // namespace cairn::router
