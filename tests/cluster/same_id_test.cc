// Two nodes that say the same id, as after a careless copy of a configuration: the first keeps it
// while its feed lives, and the router says who the two are.
#include "tests/cluster/cluster_fixture.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kFirst = 0;
constexpr size_t kSecond = 1;

class SameIdTest : public ClusterTest {
 protected:
  // Both nodes, with the second deaf until the first was heard, and the router.
  void Start() {
    ASSERT_NO_FATAL_FAILURE(AddNodes(2, {"--node-id=twin"}));
    addresses_ = NodeAddresses();
    node(kSecond).Stop();
    ASSERT_NO_FATAL_FAILURE(StartRouter(addresses_, {}, /*await_ready=*/false));
    ASSERT_TRUE(AwaitHolder(kFirst));
    node(kSecond).Continue();
    ASSERT_TRUE(AwaitRefused(kSecond));
  }

  // Until the feed is exact and the only replica is beside it.
  bool AwaitHolder(size_t holder) {
    return AwaitList([&](const ReplicaList& list) {
      return list.holders[holder].state == v1::HOLDER_STATE_EXACT && list.replicas.size() == 1 &&
             list.replicas[0].node_addresses == std::vector<std::string>{addresses_[holder]};
    });
  }

  // Until the feed is refused with both addresses.
  bool AwaitRefused(size_t holder) {
    return AwaitList([&](const ReplicaList& list) {
      return list.holders[holder].state == v1::HOLDER_STATE_OUT &&
             ::testing::Value(list.holders[holder].error, SaysBoth());
    });
  }

  ::testing::Matcher<const std::string&> SaysBoth() const {
    return AllOf(HasSubstr("'twin'"), HasSubstr(addresses_[kFirst]),
                 HasSubstr(addresses_[kSecond]));
  }

  std::vector<std::string> addresses_;
};

TEST_F(SameIdTest, TheSecondIsRefusedWhileTheFirstLives) {
  ASSERT_NO_FATAL_FAILURE(Start());
  const ReplicaList list = List();
  ASSERT_EQ(list.replicas.size(), 1u);
  EXPECT_EQ(list.replicas[0].worker_address, "worker-1");
  EXPECT_THAT(list.replicas[0].conflict, SaysBoth());
  EXPECT_THAT(router().Log(), SaysBoth());
  EXPECT_EQ(list.holders[kFirst].state, v1::HOLDER_STATE_EXACT);
}

TEST_F(SameIdTest, ASilentOneYieldsAndIsRefusedWhenItSpeaksAgain) {
  ASSERT_NO_FATAL_FAILURE(Start());
  node(kFirst).Stop();
  ASSERT_TRUE(AwaitHolder(kSecond));
  EXPECT_EQ(List().replicas[0].worker_address, "worker-2");
  node(kFirst).Continue();
  ASSERT_TRUE(AwaitRefused(kFirst));
  EXPECT_TRUE(AwaitHolder(kSecond));
}

TEST_F(SameIdTest, ABrokenOneYieldsAndItsNextRunIsRefused) {
  ASSERT_NO_FATAL_FAILURE(Start());
  node(kFirst).Kill9();
  ASSERT_TRUE(AwaitHolder(kSecond));
  ASSERT_NO_FATAL_FAILURE(RestartNode(kFirst));
  ASSERT_TRUE(AwaitRefused(kFirst));
  node(kSecond).Kill9();
  EXPECT_TRUE(AwaitHolder(kFirst));
}

}  // namespace
}  // namespace cairn::testing
