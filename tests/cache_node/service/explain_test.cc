// Method: ExplainPrompt through the generated classes over a real channel. What a store answers is
// tests/cache_node/store/explain_test.cc's; here it is how the answer reaches a caller.
#include <gmock/gmock.h>

#include "common/rpc/namespace_conversion.h"
#include "tests/cache_node/service/node_fixture.h"
#include "tests/testing/identity_samples.h"

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

class ExplainTest : public NodeFixture {
 protected:
  v1::ExplainPromptRequest RequestOf(const std::vector<uint32_t>& tokens) const {
    v1::ExplainPromptRequest request;
    request.set_fingerprint(fingerprint_);
    v1::Region* const region = request.mutable_prompt()->add_regions();
    region->mutable_scope()->set_tenant(tenant_);
    region->mutable_tokens()->Add(tokens.begin(), tokens.end());
    return request;
  }
  v1::ExplainPromptResponse Explain(const v1::ExplainPromptRequest& request) {
    v1::ExplainPromptResponse response;
    const grpc::Status status = stub_->ExplainPrompt(Context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
};

TEST_F(ExplainTest, AChangingValueIsNamedByItsPlaceItsTokensAndItsLength) {
  const TestPrompt held = MakePrompt(1, 4);
  Put(held);
  std::vector<uint32_t> asked = held.tokens;
  const size_t block = asked.size() / 4;
  asked[block + 3] += 7;
  asked[block + 5] += 7;  // The one between is equal again, but not for good.
  const v1::ExplainPromptResponse response = Explain(RequestOf(asked));
  EXPECT_EQ(response.node_id(), SmallConfig().node_id);
  EXPECT_TRUE(response.namespace_known());
  EXPECT_EQ(response.blocks_total(), 4u);
  EXPECT_EQ(response.blocks_present(), 1u);
  EXPECT_EQ(response.state(), v1::BLOCK_STATE_NEVER_SEEN);
  EXPECT_EQ(response.divergence().position(), block + 3);
  EXPECT_EQ(response.divergence().asked_token(), held.tokens[block + 3] + 7);
  EXPECT_EQ(response.divergence().held_token(), held.tokens[block + 3]);
  EXPECT_EQ(response.divergence().differing_tokens(), 3u);
  EXPECT_EQ(response.divergence().held_key(), held.keys[1].view());
  EXPECT_FALSE(response.partial());
}

TEST_F(ExplainTest, ADifferenceThatReachesTheBlocksEndHasNoLength) {
  const TestPrompt held = MakePrompt(1, 1);
  Put(held);
  std::vector<uint32_t> asked = held.tokens;
  asked.back() += 1;
  const v1::ExplainPromptResponse response = Explain(RequestOf(asked));
  EXPECT_EQ(response.divergence().position(), asked.size() - 1);
  EXPECT_EQ(response.divergence().differing_tokens(), 0u);
}

TEST_F(ExplainTest, AnUnknownNamespaceIsComparedWithThoseThatAreKnown) {
  v1::ExplainPromptRequest request = RequestOf(MakePrompt(1, 2).tokens);
  Namespace fields = namespace_;
  fields.revision = "another";
  *request.mutable_fields() = NamespaceToProto(fields);
  request.set_fingerprint(std::string(32, 'x'));
  const v1::ExplainPromptResponse response = Explain(request);
  EXPECT_FALSE(response.namespace_known());
  EXPECT_EQ(response.state(), v1::BLOCK_STATE_NAMESPACE_UNKNOWN);
  ASSERT_EQ(response.namespaces_size(), 1);
  EXPECT_THAT(response.namespaces(0).difference(), HasSubstr("revision is"));
  EXPECT_THAT(response.namespaces(0).difference(), HasSubstr("\"another\" here"));
}

TEST_F(ExplainTest, APromptThatIsWrongNamesItsField) {
  v1::ExplainPromptRequest request = RequestOf({1, 2, 3});
  request.mutable_prompt()->set_keys(std::string(16, 'k'));
  v1::ExplainPromptResponse response;
  const grpc::Status status = stub_->ExplainPrompt(Context().get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("prompt"));
  request = RequestOf({1, 2, 3});
  request.set_fingerprint("short");
  EXPECT_EQ(stub_->ExplainPrompt(Context().get(), request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace cairn::node
