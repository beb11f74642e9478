// Four processes write the slices of one reservation with one token; one of them dies.
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/hex.h"
#include "tests/cluster/checked_payload.h"
#include "tests/cluster/node_fixture.h"
#include "tests/cluster/numbered_prompt.h"

namespace cairn::testing {
namespace {

constexpr uint32_t kRanks = 4;
constexpr uint32_t kBlocks = 3;
constexpr absl::Duration kTokenTtl = absl::Seconds(2);

class RanksTest : public NodeTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartNode({"--host-memory=16MiB", "--memory-limit=1GiB"}));
    client_ = NewClient();
    name_space_ = std::make_unique<NamespaceHandle>(Register(**client_, SmallBlocks()));
    prompt_ = std::make_unique<NumberedPrompt>(**client_, *name_space_, 1, kBlocks);
  }

  // One reservation, and a rank for each slice that is about to write.
  void StartRanks() {
    ReserveOptions options;
    options.token_ttl = kTokenTtl;
    options.abort_on_destroy = false;
    const auto session = (*client_)->Reserve(*name_space_, prompt_->prompt(), 0, kBlocks, options);
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_EQ(session->reserved().size(), kBlocks);
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      ranks_.push_back(StartActor(
          "rank", {"--prompt=1", absl::StrCat("--blocks=", kBlocks), absl::StrCat("--slice=", rank),
                   absl::StrCat("--token=", ToHex(session->token()->view()))}));
    }
    for (const auto& rank : ranks_) Expect(*rank, "attached");
    for (const auto& rank : ranks_) GoOn(*rank, "half");
    ASSERT_FALSE(HasFailure());
  }

  uint32_t BlocksPresent() {
    const auto answer = (*client_)->Lookup(*name_space_, prompt_->span());
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->prompts[0].blocks_present : 0;
  }

  std::unique_ptr<TestClient> client_;
  std::unique_ptr<NamespaceHandle> name_space_;
  std::unique_ptr<NumberedPrompt> prompt_;
  std::vector<std::unique_ptr<ChildProcess>> ranks_;
};

TEST_F(RanksTest, TheBlocksAppearWithTheLastRanksCommit) {
  ASSERT_NO_FATAL_FAILURE(StartRanks());
  for (const auto& rank : ranks_) GoOn(*rank, "written");
  for (uint32_t rank = 0; rank + 1 < kRanks; ++rank) {
    EXPECT_EQ(GoOn(*ranks_[rank], "committed"), "0 0");
    EXPECT_EQ(BlocksPresent(), 0u) << "after the commit of rank " << rank;
  }
  EXPECT_EQ(GoOn(*ranks_.back(), "committed"), absl::StrCat(kBlocks, " 1"));
  EXPECT_EQ(BlocksPresent(), kBlocks);
  const CheckedRead read = GetAndCompare(**client_, *name_space_, prompt_->keys());
  EXPECT_TRUE(read.result.AllGood()) << read.result.status;
  EXPECT_EQ(read.wrong, 0u);
}

TEST_F(RanksTest, WhenOneDiesTheBlocksNeverAppearAndTheirSpaceComesBack) {
  ASSERT_NO_FATAL_FAILURE(StartRanks());
  EXPECT_EQ(Describe().load().host_reserved_bytes(), kBlocks * name_space_->block_bytes());
  ranks_.back()->Kill9();
  for (uint32_t rank = 0; rank + 1 < kRanks; ++rank) {
    GoOn(*ranks_[rank], "written");
    EXPECT_EQ(GoOn(*ranks_[rank], "committed"), "0 0");
  }
  uint32_t present_max = 0;
  EXPECT_TRUE(AwaitDescribe([&](const v1::DescribeResponse& node) {
    present_max = std::max(present_max, BlocksPresent());
    return node.load().tokens() == 0 && node.load().host_used_bytes() == 0;
  }));
  EXPECT_EQ(present_max, 0u);
  EXPECT_EQ(BlocksPresent(), 0u);
  const v1::DescribeResponse node = Describe();
  EXPECT_TRUE(IsIdle(node)) << node.DebugString();
  EXPECT_EQ(node.blocks(), 0u);
  // The ranks that live keep what they stage in for a while.
  EXPECT_TRUE(AwaitDescribe([](const v1::DescribeResponse& later) {
    uint64_t charged = 0;
    for (const v1::TenantInfo& tenant : later.tenants()) charged += tenant.charged_bytes();
    return charged == 0;
  }));
}

}  // namespace
}  // namespace cairn::testing
