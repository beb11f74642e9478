// Nodes say who they are at the addresses that are followed; the test says which feeds live.
#include "router/membership/holder_registry.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/router/model_holder.h"

namespace cairn::router {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class HolderRegistryTest : public ::testing::Test {
 protected:
  absl::StatusOr<HolderRegistry::Claimed> Claim(HolderIndex holder, const std::string& node_id,
                                                const std::string& worker) {
    const ModelHolder node({.node_id = node_id, .worker_address = worker});
    auto claimed = registry_.Claim(holder, node.Hello().hello(),
                                   [this](HolderIndex other) { return alive_.contains(other); });
    if (claimed.ok()) alive_.insert(holder);
    return claimed;
  }
  std::vector<std::string> Workers() {
    std::vector<std::string> workers;
    for (const auto& [id, replica] : registry_.replicas()) {
      workers.push_back(replica.worker_address);
    }
    return workers;
  }

  HolderRegistry registry_ = *HolderRegistry::Make({"a:1", "b:1", "c:1"});
  std::set<HolderIndex> alive_;
};

TEST_F(HolderRegistryTest, EachNodeBringsItsReplica) {
  ASSERT_TRUE(Claim(0, "node-a", "wa").ok());
  ASSERT_TRUE(Claim(1, "node-b", "").ok());
  EXPECT_THAT(Workers(), ElementsAre("wa"));
  EXPECT_EQ(registry_.replicas().begin()->second.holder, 0);
  EXPECT_EQ(registry_.FindReplica("wa"), registry_.replicas().begin()->first);
  EXPECT_EQ(registry_.FindReplica("wb"), std::nullopt);
}

TEST_F(HolderRegistryTest, AnIdWhoseFeedLivesIsRefusedAndBothAddressesAreSaid) {
  ASSERT_TRUE(Claim(0, "node-a", "wa").ok());
  const auto refused = Claim(1, "node-a", "wb");
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(), AllOf(HasSubstr("a:1"), HasSubstr("b:1")));
  EXPECT_EQ(registry_.ConflictOf(0), refused.status().message());
  EXPECT_EQ(registry_.ConflictOf(1), refused.status().message());
  EXPECT_THAT(registry_.ConflictOf(2), IsEmpty());
  EXPECT_THAT(Workers(), ElementsAre("wa"));
  ASSERT_TRUE(Claim(1, "node-b", "wb").ok());
  EXPECT_THAT(registry_.ConflictOf(0), IsEmpty());
}

TEST_F(HolderRegistryTest, ASilentOrBrokenHolderYieldsItsIdAndItsReplicaMoves) {
  ASSERT_TRUE(Claim(0, "node-a", "wa").ok());
  const auto replica = registry_.FindReplica("wa");
  ASSERT_FALSE(Claim(1, "node-a", "wa").ok());
  alive_.erase(0);
  const auto claimed = Claim(1, "node-a", "wa");
  ASSERT_TRUE(claimed.ok());
  EXPECT_EQ(claimed->displaced, HolderIndex{0});
  EXPECT_THAT(claimed->removed, IsEmpty());
  EXPECT_EQ(registry_.FindReplica("wa"), replica);
  EXPECT_EQ(registry_.replicas().at(*replica).holder, 1);
  EXPECT_THAT(registry_.NodeIdOf(0), IsEmpty());
  EXPECT_THAT(registry_.ConflictOf(1), IsEmpty());
}

TEST_F(HolderRegistryTest, ANodeWithAnotherWorkerReplacesItsReplica) {
  ASSERT_TRUE(Claim(0, "node-a", "old").ok());
  const auto old = *registry_.FindReplica("old");
  const auto claimed = Claim(0, "node-a", "new");
  ASSERT_TRUE(claimed.ok());
  EXPECT_THAT(claimed->removed, ElementsAre(old));
  EXPECT_THAT(Workers(), ElementsAre("new"));
}

TEST_F(HolderRegistryTest, AWorkerThatTwoLivingNodesNameStaysBesideTheFirst) {
  ASSERT_TRUE(Claim(0, "node-a", "wa").ok());
  ASSERT_TRUE(Claim(1, "node-b", "wa").ok());
  EXPECT_EQ(registry_.replicas().begin()->second.holder, 0);
  EXPECT_THAT(registry_.ConflictOf(0), HasSubstr("worker wa"));
  alive_.erase(0);
  ASSERT_TRUE(Claim(1, "node-b", "wa").ok());
  EXPECT_EQ(registry_.replicas().begin()->second.holder, 1);
}

TEST_F(HolderRegistryTest, ADisputedWorkerGoesToTheOtherNodeWhenTheFirstIsOutOrNamesAnother) {
  const auto settle = [this] {
    registry_.SettleWorkers([this](HolderIndex holder) { return !alive_.contains(holder); });
  };
  const auto beside = [this] {
    return registry_.replicas().at(*registry_.FindReplica("wa")).holder;
  };
  ASSERT_TRUE(Claim(0, "node-a", "wa").ok());
  ASSERT_TRUE(Claim(1, "node-b", "wa").ok());
  ASSERT_TRUE(Claim(2, "node-c", "wa").ok());
  settle();
  EXPECT_EQ(beside(), 0);
  alive_.erase(0);
  settle();
  EXPECT_EQ(beside(), 1);
  EXPECT_THAT(registry_.ConflictOf(1), IsEmpty());
  ASSERT_TRUE(Claim(1, "node-b", "wb").ok());
  settle();
  EXPECT_EQ(beside(), 2);
  EXPECT_THAT(Workers(), ::testing::UnorderedElementsAre("wa", "wb"));
  EXPECT_THAT(registry_.ConflictOf(2), IsEmpty());
}

TEST_F(HolderRegistryTest, AnAddressThatIsRemovedLeavesItsReplicaUntilItIsDropped) {
  ASSERT_TRUE(Claim(0, "node-a", "wa").ok());
  alive_.erase(0);
  registry_.Remove(0);
  EXPECT_FALSE(registry_.IsFollowed(0));
  EXPECT_THAT(Workers(), ElementsAre("wa"));
  EXPECT_EQ(*registry_.Add("d:1"), 3) << "its place is still needed";
  const auto replica = *registry_.FindReplica("wa");
  EXPECT_THAT(registry_.DropDeparted([](HolderIndex) { return false; }), IsEmpty());
  EXPECT_THAT(registry_.DropDeparted([](HolderIndex) { return true; }), ElementsAre(replica));
  EXPECT_THAT(Workers(), IsEmpty());
  EXPECT_EQ(*registry_.Add("e:1"), 0);
  EXPECT_EQ(registry_.AddressOf(0), "e:1");
  EXPECT_THAT(registry_.NodeIdOf(0), IsEmpty());
}

TEST_F(HolderRegistryTest, AnAddressWithoutAReplicaLeavesItsPlaceAtOnce) {
  registry_.Remove(1);
  EXPECT_EQ(*registry_.Add("b:1"), 1);
  EXPECT_FALSE(registry_.Add("b:1").ok());
}

TEST_F(HolderRegistryTest, ADepartedNodeThatComesBackElsewhereBringsItsReplica) {
  ASSERT_TRUE(Claim(0, "node-a", "wa").ok());
  const auto replica = registry_.FindReplica("wa");
  alive_.erase(0);
  registry_.Remove(0);
  ASSERT_TRUE(Claim(1, "node-a", "wa").ok());
  EXPECT_EQ(registry_.FindReplica("wa"), replica);
  EXPECT_EQ(registry_.replicas().at(*replica).holder, 1);
  EXPECT_EQ(*registry_.Add("d:1"), 0) << "nothing refers to its old place";
}

TEST_F(HolderRegistryTest, AWorkersAddressThatAnotherNodeNamesAfterADepartureIsAnotherWorker) {
  ASSERT_TRUE(Claim(0, "node-a", "wa").ok());
  const auto old = *registry_.FindReplica("wa");
  alive_.erase(0);
  registry_.Remove(0);
  const auto claimed = Claim(1, "node-b", "wa");
  ASSERT_TRUE(claimed.ok());
  EXPECT_THAT(claimed->removed, ElementsAre(old));
  EXPECT_NE(*registry_.FindReplica("wa"), old);
}

TEST_F(HolderRegistryTest, ADisputeEndsWhenTheOtherAddressIsRemoved) {
  ASSERT_TRUE(Claim(0, "node-a", "wa").ok());
  ASSERT_FALSE(Claim(1, "node-a", "wb").ok());
  ASSERT_TRUE(Claim(2, "node-c", "wa").ok());
  alive_.erase(0);
  registry_.Remove(0);
  EXPECT_THAT(registry_.ConflictOf(1), IsEmpty());
  registry_.SettleWorkers([this](HolderIndex holder) { return !alive_.contains(holder); });
  EXPECT_THAT(registry_.ConflictOf(2), IsEmpty());
  EXPECT_EQ(registry_.replicas().at(*registry_.FindReplica("wa")).holder, 2);
}

TEST_F(HolderRegistryTest, AReplicaHashesAlikeInEveryRouter) {
  HolderRegistry other = *HolderRegistry::Make({"x:1"});
  ASSERT_TRUE(Claim(1, "node-a", "wa").ok());
  const ModelHolder node({.node_id = "n", .worker_address = "wa"});
  ASSERT_TRUE(other.Claim(0, node.Hello().hello(), [](HolderIndex) { return false; }).ok());
  EXPECT_EQ(registry_.replicas().begin()->second.stable_hash,
            other.replicas().begin()->second.stable_hash);
}

TEST_F(HolderRegistryTest, AddressesAreGivenOnceAndNotEmpty) {
  EXPECT_THAT(HolderRegistry::Make({"a:1", "a:1"}).status().message(), HasSubstr("a:1"));
  EXPECT_FALSE(HolderRegistry::Make({""}).ok());
  EXPECT_FALSE(HolderRegistry::Make(std::vector<std::string>(kHoldersMax + 1, "a")).ok());
}

}  // namespace
}  // namespace cairn::router
