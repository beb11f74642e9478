// Asks for policies by name, as a node's flag does.

#include "cache_node/store/policies/policy_registry.h"

#include <gmock/gmock.h>

#include <set>
#include <string>

namespace cairn::node {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(PolicyRegistryTest, EachNameMakesThePolicyThatIsCalledSo) {
  const std::vector<absl::string_view> names = EvictionPolicyNames();
  EXPECT_EQ(names.front(), kDefaultEvictionPolicy);
  EXPECT_THAT(names, Contains("lru"));
  EXPECT_THAT(names, Contains("s3_fifo"));
  for (const absl::string_view name : names) {
    const auto policies = MakeEvictionPolicies(name);
    ASSERT_TRUE(policies.ok()) << policies.status();
    EXPECT_EQ((*policies)->Make()->name(), name);
  }
  EXPECT_EQ(std::set<absl::string_view>(names.begin(), names.end()).size(), names.size());
}

TEST(PolicyRegistryTest, AnotherNameIsRefusedWithThoseThatThereAre) {
  const auto policies = MakeEvictionPolicies("mru");
  EXPECT_EQ(policies.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(policies.status().message()), HasSubstr("\"mru\""));
  EXPECT_THAT(std::string(policies.status().message()), HasSubstr("lru, "));
}

}  // namespace
}  // namespace cairn::node
