// A whole node under another policy than its default, and what its metrics say of its working set.
#include <gmock/gmock.h>

#include "cache_node/store/policies/policy_registry.h"
#include "tests/cache_node/service/node_fixture.h"

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

class EvictionTest : public NodeFixture {
 protected:
  // Asks for the prompt as a worker does that will use it.
  void Use(const TestPrompt& prompt) {
    v1::LookupRequest request = LookupRequestOf(prompt);
    request.set_touch(true);
    v1::LookupResponse response;
    const grpc::Status status = stub_->Lookup(Context().get(), request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
};

TEST_F(EvictionTest, ANodeServesUnderEachPolicy) {
  for (const absl::string_view name : EvictionPolicyNames()) {
    SCOPED_TRACE(std::string(name));
    NodeConfig config = SmallConfig();
    config.eviction_policy = std::string(name);
    StartNode(config);
    const TestPrompt prompt = MakePrompt(1, 4);
    Use(prompt);
    Put(prompt);
    Use(prompt);
    EXPECT_EQ(Present(prompt), 4u);
    EXPECT_THAT(node_->metrics().Text(), HasSubstr("cairn_node_declined_newcomers_total 0"));
  }
}

TEST_F(EvictionTest, TheWorkingSetIsAMetricByFactor) {
  const TestPrompt prompt = MakePrompt(1, 4);
  Put(prompt);
  for (int i = 0; i < 4; ++i) Use(prompt);
  for (const char* factor : {"0.5", "1", "2", "4"}) {
    EXPECT_THAT(node_->metrics().Text(),
                HasSubstr(std::string("cairn_hit_rate_at_capacity{factor=\"") + factor +
                          "\",tier=\"host\"} 0.75"));
  }
}

}  // namespace
}  // namespace cairn::node
