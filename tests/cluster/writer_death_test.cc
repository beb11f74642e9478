// A writer process is killed exactly where it says that it is; another client takes over.
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/cluster/checked_payload.h"
#include "tests/cluster/node_fixture.h"
#include "tests/cluster/numbered_prompt.h"

namespace cairn::testing {
namespace {

constexpr absl::Duration kTokenTtl = absl::Milliseconds(600);
// The node's own tick, and a busy machine.
constexpr absl::Duration kSlack = absl::Seconds(2);
constexpr uint32_t kBlocks = 4;

class WriterDeathTest : public NodeTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartNode({"--host-memory=16MiB", "--memory-limit=1GiB"}));
    client_ = NewClient();
    name_space_ = std::make_unique<NamespaceHandle>(Register(**client_, SmallBlocks()));
    prompt_ = std::make_unique<NumberedPrompt>(**client_, *name_space_, 1, kBlocks);
    writer_ = StartActor("writer", {"--prompt=1", absl::StrCat("--blocks=", kBlocks),
                                    absl::StrCat("--ttl_ms=", kTokenTtl / absl::Milliseconds(1))});
  }

  PromptAnswer Lookup() {
    const auto answer = (*client_)->Lookup(*name_space_, prompt_->span());
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->prompts[0] : PromptAnswer();
  }

  // Kills the writer; then a second one asks until it gets the blocks, writes and commits them. No
  // block may be seen before.
  void KillAndTakeOver() {
    writer_->Kill9();
    const absl::Time killed = absl::Now();
    while (true) {
      EXPECT_EQ(Lookup().blocks_present, 0u);
      const auto put = PutPrompt(**client_, *name_space_, prompt_->prompt());
      ASSERT_TRUE(put.ok()) << put.status();
      if (put->blocks_written == kBlocks) break;
      EXPECT_EQ(put->blocks_in_progress, kBlocks);
      ASSERT_LT(absl::Now() - killed, kTokenTtl + kSlack) << "the dead writer's token lives on";
    }
    EXPECT_EQ(Lookup().blocks_present, kBlocks);
    const CheckedRead read = GetAndCompare(**client_, *name_space_, prompt_->keys());
    EXPECT_TRUE(read.result.AllGood()) << read.result.status;
    EXPECT_EQ(read.wrong, 0u);
    EXPECT_TRUE(AwaitDescribe(IsIdle));
  }

  std::unique_ptr<TestClient> client_;
  std::unique_ptr<NamespaceHandle> name_space_;
  std::unique_ptr<NumberedPrompt> prompt_;
  std::unique_ptr<ChildProcess> writer_;
};

TEST_F(WriterDeathTest, KilledAfterReserveItLeavesNothingBehind) {
  Expect(*writer_, "reserved");
  ASSERT_FALSE(HasFailure());
  ASSERT_EQ(Lookup().runs.size(), 1u);
  EXPECT_EQ(Lookup().runs[0].state, v1::BLOCK_STATE_PENDING);
  KillAndTakeOver();
}

TEST_F(WriterDeathTest, KilledMidWriteItLeavesNothingBehind) {
  Expect(*writer_, "reserved");
  GoOn(*writer_, "half");
  ASSERT_FALSE(HasFailure());
  KillAndTakeOver();
}

TEST_F(WriterDeathTest, KilledBeforeCommitItLeavesNothingBehind) {
  Expect(*writer_, "reserved");
  GoOn(*writer_, "half");
  GoOn(*writer_, "written");
  ASSERT_FALSE(HasFailure());
  KillAndTakeOver();
}

TEST_F(WriterDeathTest, KilledAfterCommitItsBlocksStay) {
  Expect(*writer_, "reserved");
  GoOn(*writer_, "half");
  GoOn(*writer_, "written");
  EXPECT_EQ(GoOn(*writer_, "committed"), absl::StrCat(kBlocks, " 1"));
  writer_->Kill9();
  const CheckedRead read = GetAndCompare(**client_, *name_space_, prompt_->keys());
  EXPECT_TRUE(read.result.AllGood()) << read.result.status;
  EXPECT_EQ(read.wrong, 0u);
}

TEST_F(WriterDeathTest, AWriterThatStandsStillPastItsTokenLandsNothing) {
  Expect(*writer_, "reserved");
  GoOn(*writer_, "half");
  ASSERT_FALSE(HasFailure());
  ASSERT_TRUE(AwaitDescribe([](const v1::DescribeResponse& node) {
    return IsIdle(node) && node.load().tokens() == 0;
  })) << "the token does not expire";
  // It goes on now and finds its token gone, which ends it.
  ASSERT_TRUE(writer_->WriteLine("go").ok());
  EXPECT_EQ(writer_->ReadLine(kSoon).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Lookup().blocks_present, 0u);
  EXPECT_EQ(Describe().blocks(), 0u);
}

}  // namespace
}  // namespace cairn::testing
