// Processes of one host that share memory with their node, and are killed exactly where they say
// they are: readers that have it mapped, writers in the middle of a staged put, and the node
// itself.
#include <memory>

#include "absl/strings/str_cat.h"
#include "tests/cluster/checked_payload.h"
#include "tests/cluster/node_fixture.h"
#include "tests/cluster/numbered_prompt.h"

namespace cairn::testing {
namespace {

constexpr uint32_t kBlocks = 4;

uint64_t ChargedBytes(const v1::DescribeResponse& node) {
  uint64_t bytes = 0;
  for (const v1::TenantInfo& tenant : node.tenants()) bytes += tenant.charged_bytes();
  return bytes;
}

class LocalTest : public NodeTest {
 protected:
  void SetUp() override {
    // The token outlives the test: what comes back does so for another reason.
    ASSERT_NO_FATAL_FAILURE(StartNode({"--host-memory=16MiB", "--memory-limit=1GiB",
                                       "--eviction-policy=lru", "--local-return-ms=50"}));
    client_ = NewClient();
    name_space_ = std::make_unique<NamespaceHandle>(Register(**client_, SmallBlocks()));
  }

  void Put(uint32_t number) {
    const NumberedPrompt prompt(**client_, *name_space_, number, kBlocks);
    const auto put = PutPrompt(**client_, *name_space_, prompt.prompt());
    ASSERT_TRUE(put.ok()) << put.status();
    ASSERT_EQ(put->blocks_written, kBlocks);
  }
  std::unique_ptr<ChildProcess> StartMapper() {
    auto mapper = StartActor("mapper", {"--prompt=1", absl::StrCat("--blocks=", kBlocks)});
    EXPECT_EQ(Expect(*mapper, "mapped"), absl::StrCat(kBlocks));
    return mapper;
  }

  std::unique_ptr<TestClient> client_;
  std::unique_ptr<NamespaceHandle> name_space_;
};

TEST_F(LocalTest, AReaderThatIsKilledWhileItHoldsBlocksInPlaceLeavesNoPin) {
  Put(1);
  const auto mapper = StartMapper();
  EXPECT_EQ(Describe().load().leases(), 1u);
  EXPECT_GT(Describe().load().host_pinned_bytes(), 0u);
  mapper->Kill9();
  EXPECT_TRUE(AwaitDescribe(IsIdle)) << "its share has no time to live: only its socket ends it";
}

TEST_F(LocalTest, AWriterThatIsKilledInTheMiddleOfAStagedPutLeavesNothing) {
  const auto writer =
      StartActor("writer", {"--prompt=1", absl::StrCat("--blocks=", kBlocks), "--ttl_ms=300"});
  Expect(*writer, "reserved");
  GoOn(*writer, "half");
  ASSERT_FALSE(HasFailure());
  EXPECT_GE(ChargedBytes(Describe()), kBlocks * name_space_->block_bytes() + (1 << 20))
      << "staging memory counts";
  writer->Kill9();
  EXPECT_TRUE(AwaitDescribe(
      [](const v1::DescribeResponse& node) { return IsIdle(node) && ChargedBytes(node) == 0; }));
  Put(1);
}

TEST_F(LocalTest, ReadersOfANodeThatIsKilledKeepTheirMemoryAndFallBack) {
  Put(1);
  const auto mapper = StartMapper();
  node().process().Kill9();
  EXPECT_EQ(GoOn(*mapper, "checked"), "0");
  EXPECT_EQ(GoOn(*mapper, "got"), absl::StrCat("0 0 UNAVAILABLE"));
}

TEST_F(LocalTest, MemoryThatAReaderHasIsUnreturnedUntilItsProcessEnds) {
  Put(1);
  const auto mapper = StartMapper();
  // What it reads is taken away, and its memory is wanted for blocks of another size.
  ASSERT_TRUE((*client_)->ClearScope(name_space_->fingerprint(), ScopeOf("")).ok());
  Layout layout = SmallBlocks();
  layout.block_tokens /= 2;
  const NamespaceHandle others = Register(**client_, layout);
  uint32_t number = 100;
  const auto want_the_pool = [&] {
    for (int i = 0; i < 20; ++i) {
      const NumberedPrompt prompt(**client_, others, ++number, 32);
      (void)PutPrompt(**client_, others, prompt.prompt());
    }
    return Describe().load().host_bytes();
  };
  const uint64_t pool_bytes = Describe().load().host_bytes();
  EXPECT_EQ(want_the_pool(), pool_bytes - (1 << 20));
  mapper->Kill9();
  EXPECT_TRUE(
      AwaitDescribe([&](const v1::DescribeResponse&) { return want_the_pool() == pool_bytes; }));
}

}  // namespace
}  // namespace cairn::testing
