// A fake engine of four ranks before a real node: its ranks agree on every hit, read nothing wrong,
// and whatever dies, all that it held comes back. The scheduler's loop never waits: with a node
// that stands still it goes on turning.
#include <csignal>
#include <memory>

#include "tests/cluster/engine/fake_engine.h"
#include "tests/cluster/node_fixture.h"

namespace cairn::testing {
namespace {

using Phase = FakeEngine::Phase;

constexpr size_t kBlocks = 6;
// Far more than a turn takes on a busy machine, far less than a call to a node that stands still.
constexpr absl::Duration kTurnMax = absl::Seconds(8);

class EngineTest : public NodeTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartNode({"--host-memory=16MiB", "--memory-limit=1GiB"}));
    engine_ = std::make_unique<FakeEngine>(node().address(), folder());
  }

  const FakeEngine::Request& Serve(uint32_t prompt, size_t blocks) {
    engine_->Begin(prompt, blocks);
    return Finish();
  }
  const FakeEngine::Request& Finish() {
    EXPECT_TRUE(
        engine_->TurnUntil([&] { return engine_->request().phase == Phase::kOver; }, 2 * kSoon));
    return engine_->request();
  }
  bool AwaitHolding(uint32_t rank) {
    return engine_->TurnUntil([&] { return engine_->IsHolding(rank); }, kSoon);
  }

  // Every rank used the same blocks, and no other bytes than theirs.
  static void ExpectAgreed(const FakeEngine::Request& request, size_t hit_blocks) {
    EXPECT_EQ(request.hit_blocks, hit_blocks);
    EXPECT_EQ(request.wrong, 0u);
    for (const std::optional<size_t>& usable : request.usable) {
      EXPECT_EQ(usable.value_or(0), hit_blocks);
    }
  }

  std::unique_ptr<FakeEngine> engine_;
};

TEST_F(EngineTest, WhatOneRequestStoredTheNextOnesLoadLayerByLayer) {
  ExpectAgreed(Serve(1, kBlocks), 0);
  EXPECT_TRUE(engine_->request().stored);
  ExpectAgreed(Serve(1, kBlocks), kBlocks);
  // A longer one has the shared part, and stores the rest.
  ExpectAgreed(Serve(1, kBlocks + 3), kBlocks);
  EXPECT_TRUE(engine_->request().stored);
  ExpectAgreed(Serve(1, kBlocks + 3), kBlocks + 3);
  ExpectAgreed(Serve(2, kBlocks), 0);
  EXPECT_TRUE(AwaitDescribe(IsIdle));
  EXPECT_LT(engine_->longest_turn(), kTurnMax);
}

TEST_F(EngineTest, ARankThatDiesInALoadTakesTheHitFromAllAndHoldsNothing) {
  ExpectAgreed(Serve(1, kBlocks), 0);
  engine_->Hold(2);
  engine_->Begin(1, kBlocks);
  ASSERT_TRUE(AwaitHolding(2));
  engine_->Kill(2);
  const FakeEngine::Request& request = Finish();
  EXPECT_EQ(request.hit_blocks, 0u);
  EXPECT_EQ(request.wrong, 0u);
  EXPECT_EQ(request.usable[2], std::nullopt);
  EXPECT_TRUE(AwaitDescribe(IsIdle));
  // The blocks are still there, for the rank's successor too.
  ExpectAgreed(Serve(1, kBlocks), kBlocks);
}

TEST_F(EngineTest, ARankThatDiesInAStoreLeavesNothingBehind) {
  engine_->Hold(1);
  engine_->Begin(3, kBlocks);
  ASSERT_TRUE(AwaitHolding(1));
  engine_->Kill(1);
  EXPECT_FALSE(Finish().stored);
  EXPECT_TRUE(AwaitDescribe(IsIdle));
  ExpectAgreed(Serve(3, kBlocks), 0);
  EXPECT_TRUE(engine_->request().stored);
  ExpectAgreed(Serve(3, kBlocks), kBlocks);
}

TEST_F(EngineTest, TheSchedulerTurnsOnWhileTheNodeStandsStill) {
  ExpectAgreed(Serve(1, kBlocks), 0);
  node().process().Stop();
  engine_->Begin(1, kBlocks);
  const uint64_t turns = engine_->turns();
  EXPECT_TRUE(engine_->TurnUntil([&] { return engine_->turns() > turns + 1000; }, kSoon));
  EXPECT_NE(engine_->request().phase, Phase::kOver);
  ASSERT_TRUE(node().process().Signal(SIGCONT));
  ExpectAgreed(Finish(), kBlocks);
  EXPECT_LT(engine_->longest_turn(), kTurnMax);
  EXPECT_TRUE(AwaitDescribe(IsIdle));
}

}  // namespace
}  // namespace cairn::testing
