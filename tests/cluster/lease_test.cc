// A lease shared by reader processes, which end, die, or read on after it is over.
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/hex.h"
#include "tests/cluster/checked_payload.h"
#include "tests/cluster/node_fixture.h"
#include "tests/cluster/numbered_prompt.h"

namespace cairn::testing {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;

constexpr uint32_t kReaders = 4;
constexpr uint32_t kBlocks = 8;
// Half of the pool: what leases may hold.
constexpr uint32_t kLongBlocks = 128;
constexpr uint32_t kPoolBlocks = 256;

class LeaseTest : public NodeTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(
        StartNode({"--host-memory=16MiB", "--memory-limit=1GiB", "--eviction-policy=lru"}));
    client_ = NewClient();
    name_space_ = std::make_unique<NamespaceHandle>(Register(**client_, SmallBlocks()));
  }

  // Puts prompt 1 and leases it, for the actors only.
  LeaseId TakeLease(uint32_t blocks, uint32_t readers, absl::Duration ttl) {
    prompt_ = std::make_unique<NumberedPrompt>(**client_, *name_space_, 1, blocks);
    const auto put = PutPrompt(**client_, *name_space_, prompt_->prompt());
    EXPECT_TRUE(put.ok() && put->complete()) << put.status();
    LookupOptions options;
    options.lease_readers = readers;
    options.lease_ttl = ttl;
    auto answer = (*client_)->Lookup(*name_space_, prompt_->span(), options);
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (!answer.ok() || !answer->lease) return {};
    EXPECT_EQ(answer->prompts[0].blocks_leased, blocks);
    answer->lease->Release();
    return answer->lease->id();
  }

  std::unique_ptr<ChildProcess> StartReader(const LeaseId& lease, uint32_t reader,
                                            std::vector<std::string> flags) {
    flags.push_back("--prompt=1");
    flags.push_back(absl::StrCat("--blocks=", prompt_->keys().size()));
    flags.push_back(absl::StrCat("--lease=", ToHex(lease.view())));
    flags.push_back(absl::StrCat("--reader=", reader));
    return StartActor("reader", flags);
  }

  // Four readers, each of which says that it can use at most that many blocks.
  void StartReaders(const LeaseId& lease, const std::vector<uint32_t>& usable_max) {
    for (uint32_t i = 0; i < usable_max.size(); ++i) {
      readers_.push_back(StartReader(lease, i, {absl::StrCat("--usable_max=", usable_max[i])}));
    }
    for (const auto& reader : readers_) Expect(*reader, "joined");
    ASSERT_FALSE(HasFailure());
  }

  LeaseState AwaitLease(const LeaseId& lease) {
    const auto state = (*client_)->GetLease(lease, absl::Seconds(10));
    EXPECT_TRUE(state.ok()) << state.status();
    return state.ok() ? *state : LeaseState();
  }

  // Writes more blocks than the pool holds, so that every block that may go has gone.
  void FillPool(uint32_t first_number) {
    for (uint32_t i = 0; i < 2 * kPoolBlocks / kBlocks; ++i) {
      const NumberedPrompt prompt(**client_, *name_space_, first_number + i, kBlocks);
      const auto put = PutPrompt(**client_, *name_space_, prompt.prompt());
      ASSERT_TRUE(put.ok()) << put.status();
    }
  }

  uint32_t BlocksPresent() {
    const auto answer = (*client_)->Lookup(*name_space_, prompt_->span());
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->prompts[0].blocks_present : 0;
  }

  std::unique_ptr<TestClient> client_;
  std::unique_ptr<NamespaceHandle> name_space_;
  std::unique_ptr<NumberedPrompt> prompt_;
  std::vector<std::unique_ptr<ChildProcess>> readers_;
};

TEST_F(LeaseTest, UsableBlocksAreTheLeastOfItsReaders) {
  const LeaseId lease = TakeLease(kBlocks, kReaders, absl::Seconds(60));
  ASSERT_NO_FATAL_FAILURE(StartReaders(lease, {8, 5, 7, 8}));
  const char* const usable[] = {"8 0 OK", "5 0 OK", "7 0 OK", "8 0 OK"};
  for (uint32_t i = 0; i < kReaders; ++i) EXPECT_EQ(GoOn(*readers_[i], "read"), usable[i]);
  for (uint32_t i = 0; i < kReaders; ++i) {
    EXPECT_EQ(GoOn(*readers_[i], "ended"), i + 1 == kReaders ? "1" : "0") << "reader " << i;
  }
  const LeaseState state = AwaitLease(lease);
  EXPECT_TRUE(state.complete);
  EXPECT_EQ(state.readers_ended, kReaders);
  EXPECT_THAT(state.usable_blocks, ElementsAre(5));
  EXPECT_TRUE(AwaitDescribe(IsIdle));
}

TEST_F(LeaseTest, AReaderThatDiesCountsZeroAndTheLeaseCompletes) {
  const LeaseId lease = TakeLease(kBlocks, kReaders, absl::Seconds(3));
  ASSERT_NO_FATAL_FAILURE(StartReaders(lease, {8, 8, 8, 8}));
  for (const auto& reader : readers_) EXPECT_EQ(GoOn(*reader, "read"), "8 0 OK");
  readers_.back()->Kill9();
  for (uint32_t i = 0; i + 1 < kReaders; ++i) EXPECT_EQ(GoOn(*readers_[i], "ended"), "0");
  const LeaseState state = AwaitLease(lease);
  EXPECT_TRUE(state.complete);
  EXPECT_THAT(state.usable_blocks, ElementsAre(0));
  EXPECT_TRUE(AwaitDescribe(IsIdle));
}

TEST_F(LeaseTest, BlocksUnderALeaseOutlastEvictionOfTheWholePool) {
  const LeaseId lease = TakeLease(kBlocks, 1, absl::Seconds(60));
  const auto reader = StartReader(lease, 0, {});
  Expect(*reader, "joined");
  ASSERT_NO_FATAL_FAILURE(FillPool(100));
  EXPECT_EQ(BlocksPresent(), kBlocks);
  EXPECT_EQ(GoOn(*reader, "read"), "8 0 OK");
  EXPECT_EQ(GoOn(*reader, "ended"), "1");
}

TEST_F(LeaseTest, AReaderPastItsLeaseIsAborted) {
  const LeaseId lease = TakeLease(kBlocks, 1, absl::Milliseconds(300));
  const auto reader = StartReader(lease, 0, {});
  Expect(*reader, "joined");
  ASSERT_TRUE(AwaitDescribe(IsIdle)) << "the lease does not expire";
  ASSERT_NO_FATAL_FAILURE(FillPool(100));
  EXPECT_EQ(BlocksPresent(), 0u);
  EXPECT_EQ(GoOn(*reader, "read"), "0 0 ABORTED");
}

// The lease ends while its bytes are on their way to a process that has stopped reading; then the
// whole pool is written anew, twice.
TEST_F(LeaseTest, AReaderOvertakenByItsLeaseGetsExactBytesOrIsAborted) {
  const LeaseId lease = TakeLease(kLongBlocks, 1, absl::Milliseconds(500));
  const auto reader = StartReader(lease, 0, {"--hold_at_block=3"});
  Expect(*reader, "joined");
  GoOn(*reader, "holding");
  ASSERT_TRUE(AwaitDescribe([](const v1::DescribeResponse& node) {
    return node.load().leases() == 0;
  })) << "the lease does not expire";
  ASSERT_NO_FATAL_FAILURE(FillPool(100));
  const std::vector<std::string> said = absl::StrSplit(GoOn(*reader, "read"), ' ');
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[1], "0") << "segments were wrong";
  EXPECT_THAT(said[2], AnyOf("OK", "ABORTED"));
  EXPECT_TRUE(AwaitDescribe(IsIdle));
}

}  // namespace
}  // namespace cairn::testing
