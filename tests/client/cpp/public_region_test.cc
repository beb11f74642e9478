// A worker whose prompts begin with a public region, between a fake router, fake nodes and a fake
// engine: which form of the prompt counts, by what the nodes have and who may write. The fake nodes
// know blocks by their keys, which no two scopes share.
#include <gmock/gmock.h>

#include "tests/client/cpp/model_worker_fixture.h"

namespace cairn::testing {
namespace {

constexpr size_t kPublicBlocks = 2;
constexpr size_t kOwnBlocks = 3;
constexpr size_t kBlocks = kPublicBlocks + kOwnBlocks;

class PublicRegionTest : public ModelWorkerTest {
 protected:
  PublicRegionTest() { Own("acme"); }

  // Requests are this tenant's from now on: the same tokens, the first blocks public or its own.
  void Own(const std::string& tenant) {
    MakePrompt(kBlocks, /*tokens_beyond=*/1);
    const auto tokens = absl::MakeConstSpan(tokens_);
    const size_t shared = kPublicBlocks * handle_->block_tokens();
    const Region regions[] = {
        {.scope = {"public", "", ""}, .tokens = tokens.first(shared), .external_ids = {}},
        {.scope = {tenant, "", ""}, .tokens = tokens.subspan(shared), .external_ids = {}}};
    const Region own = {.scope = {tenant, "", ""}, .tokens = tokens, .external_ids = {}};
    prompt_ = *Prompt::Make(hasher_, *handle_, regions);
    own_ = *Prompt::Make(hasher_, *handle_, {&own, 1});
    request_.own_prompt = &*own_;
  }

  // As a writer of the tenant `public`, or not.
  WorkOutcome RunAs(bool publisher) {
    return RunBy(ModelWorker(options_, *handle_, router_client_.get(), &nodes_,
                             publisher ? &public_nodes_ : nullptr));
  }
  // A publisher has put the public region where requests go.
  void Publish() {
    RunAs(/*publisher=*/true);
    ASSERT_EQ(node_->blocks_present(), kBlocks);
    router_->SetHeldBlocks(kPublicBlocks);
  }

  NodeClients public_nodes_{{}, parts_};
  std::optional<Prompt> own_;
};

TEST_F(PublicRegionTest, APublisherStoresBothRegionsEachForItsTenant) {
  const WorkOutcome outcome = RunAs(/*publisher=*/true);
  EXPECT_TRUE(outcome.cache_status.ok()) << outcome.cache_status;
  EXPECT_FALSE(outcome.own_scope);
  EXPECT_EQ(outcome.blocks_stored, kBlocks);
  const std::vector<v1::ReserveRequest> reserves = node_->reserves();
  ASSERT_EQ(reserves.size(), 2u);
  EXPECT_EQ(reserves[0].scope().tenant(), "public");
  EXPECT_EQ(reserves[0].keys().size(), kPublicBlocks * kKeyBytes);
  EXPECT_EQ(reserves[1].scope().tenant(), "acme");
  EXPECT_EQ(reserves[1].region_parent_key(), prompt_->keys()[kPublicBlocks - 1].view());
  EXPECT_EQ(RunAs(/*publisher=*/true).hits.total(), kBlocks);
}

TEST_F(PublicRegionTest, TwoTenantsShareThePublicRegionAndNothingElse) {
  ASSERT_NO_FATAL_FAILURE(Publish());
  Own("globex");
  const WorkOutcome first = RunAs(/*publisher=*/false);
  EXPECT_TRUE(first.cache_status.ok()) << first.cache_status;
  EXPECT_FALSE(first.own_scope);
  EXPECT_EQ(first.hits.total(), kPublicBlocks);
  EXPECT_EQ(first.blocks_stored, kOwnBlocks);
  EXPECT_EQ(RunAs(/*publisher=*/false).hits.total(), kBlocks);
  Own("acme");
  EXPECT_EQ(RunAs(/*publisher=*/false).hits.total(), kBlocks);
}

TEST_F(PublicRegionTest, WithoutThePublicRegionItsOwnScopeCountsFromTheStart) {
  const WorkOutcome outcome = RunAs(/*publisher=*/false);
  EXPECT_TRUE(outcome.cache_status.ok()) << outcome.cache_status;
  EXPECT_TRUE(outcome.own_scope);
  EXPECT_EQ(outcome.blocks_stored, kBlocks);
  for (const v1::ReserveRequest& reserve : node_->reserves()) {
    EXPECT_EQ(reserve.scope().tenant(), "acme");
  }
  // The router is asked for that form too, so that what was stored is found again.
  EXPECT_EQ(router_->routes()[0].prompt().keys().substr(0, kKeyBytes), own_->keys()[0].view());
  const WorkOutcome again = RunAs(/*publisher=*/false);
  EXPECT_TRUE(again.own_scope);
  EXPECT_EQ(again.hits.total(), kBlocks);
}

TEST_F(PublicRegionTest, ANodeWithoutItsEndIsReadInItsOwnScope) {
  ASSERT_NO_FATAL_FAILURE(Publish());
  // The router knows of a node that has it whole, and sends the request to another one.
  other_node_->Stop();
  FakeNode empty(*handle_);
  router_ = std::make_unique<FakeRouter>();
  router_->AddReplica(empty.target());
  router_->SetHeldBlocks(kPublicBlocks);
  RouterClientOptions options;
  options.target = router_->target();
  router_client_ = std::make_unique<RouterClient>(options, parts_);
  const WorkOutcome outcome = RunAs(/*publisher=*/false);
  EXPECT_TRUE(outcome.own_scope);
  EXPECT_EQ(outcome.blocks_stored, kBlocks);
  EXPECT_EQ(empty.Calls("Lookup"), 2);
  EXPECT_EQ(empty.reserves().at(0).scope().tenant(), "acme");
  // Where the request comes again, it finds what it stored.
  EXPECT_EQ(RunAs(/*publisher=*/false).hits.total(), kBlocks);
}

TEST_F(PublicRegionTest, WithoutARouterTheNodeDecides) {
  ASSERT_NO_FATAL_FAILURE(Publish());
  router_client_ = nullptr;
  options_.fixed_replicas = {ReplicaAt("has it", *node_)};
  EXPECT_EQ(RunAs(/*publisher=*/false).hits.total(), kBlocks);
  options_.fixed_replicas = {ReplicaAt("has not", *other_node_)};
  EXPECT_TRUE(RunAs(/*publisher=*/false).own_scope);
  EXPECT_EQ(other_node_->blocks_present(), kBlocks);
}

TEST_F(PublicRegionTest, APublisherThatIsRefusedUsesItsOwnScope) {
  node_->FailNext("Reserve", absl::PermissionDeniedError("not on the list"));
  const WorkOutcome outcome = RunAs(/*publisher=*/true);
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_TRUE(absl::IsPermissionDenied(outcome.cache_status));
  EXPECT_TRUE(outcome.own_scope);
  EXPECT_EQ(outcome.blocks_stored, kBlocks);
  EXPECT_EQ(node_->reserves().back().scope().tenant(), "acme");
}

TEST_F(PublicRegionTest, ARequestThatReadsNothingCountsOnNobodyElsesBlocks) {
  ASSERT_NO_FATAL_FAILURE(Publish());
  request_.may_read = false;
  const WorkOutcome outcome = RunAs(/*publisher=*/false);
  EXPECT_TRUE(outcome.own_scope);
  EXPECT_EQ(outcome.hits.total(), 0u);
  EXPECT_EQ(outcome.blocks_stored, kBlocks);
}

TEST_F(PublicRegionTest, BlocksThatDoNotVerifyMakeThePublicRegionIncomplete) {
  ASSERT_NO_FATAL_FAILURE(Publish());
  const std::vector<uint8_t> bytes =
      SyntheticSegment(handle_->payload_map(), prompt_->keys()[1], {0, 1, 2});
  const std::string bent(bytes.begin(), bytes.end());
  node_->BendGet([bent](FakeNode::Frames* frames) {
    for (v1::GetResponse& frame : *frames) {
      if (frame.payload() == bent) frame.mutable_payload()->front() ^= 1;
    }
  });
  const WorkOutcome outcome = RunAs(/*publisher=*/false);
  EXPECT_TRUE(outcome.own_scope);
  EXPECT_GT(outcome.mismatched_segments, 0u);
  EXPECT_EQ(outcome.hits.total(), 0u);
  EXPECT_EQ(outcome.blocks_stored, kBlocks);
}

}  // namespace
}  // namespace cairn::testing
