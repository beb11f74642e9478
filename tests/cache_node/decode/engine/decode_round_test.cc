// What steps of one round may not get from each other, nor from blocks that lack what they ask for.
// A pool whose kernels can be held keeps the engine busy, so that the steps behind are one round.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "common/base/check.h"
#include "tests/cache_node/decode/engine/engine_world.h"

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

void PutWithoutDraft(TestStore& store, const TestPrompt& prompt) {
  const auto reserved = store.Reserve(prompt);
  CAIRN_CHECK_OK(reserved.status());
  for (uint32_t i = 0; i < prompt.keys.size(); ++i) {
    CAIRN_CHECK_OK(store.WriteBlock(prompt.tenant(), *reserved->token, prompt.keys[i], i));
    std::vector<SegmentRun> runs = store.RunsOf(prompt.keys[i], i);
    std::erase_if(runs, [](const SegmentRun& run) { return run.group == 1; });
    const auto committed = store.store->Commit(prompt.tenant(), *reserved->token, runs);
    CAIRN_CHECK_OK(committed.status());
    CAIRN_CHECK(committed->errors.empty());
  }
}

// What one step of a round found, another one of it may not have.
TEST(DecodeRoundTest, ASequenceIsNotReadWithTheShapeOfAnotherNamespaceInTheSameRound) {
  DecodeEngine::Options options;
  options.inline_cost = {};  // Nothing is done on the thread that brings it.
  EngineWorld w(options);
  const SequenceId id = w.world.Open(w.world.store.Prompt("t", 1, 0));
  const auto first = w.Step();
  first->Appends(w.world, id, 0, {1, 2, 3});
  w.Do(*first);
  w.pool.Close();
  const auto holds_it = w.Step();
  holds_it->Asks(id, 2);
  ASSERT_TRUE(w.Submit(*holds_it).ok());
  w.pool.AwaitInside();
  const auto own = w.Step();
  own->Asks(id, 2);
  const auto foreign = w.Step();
  foreign->Asks(id, 2);
  foreign->fingerprint = Fingerprint();
  ASSERT_TRUE(w.Submit(*own).ok());
  ASSERT_TRUE(w.Submit(*foreign).ok());
  w.pool.Open();
  own->AwaitDone();
  foreign->AwaitDone();
  EXPECT_EQ(own->code(), absl::StatusCode::kOk);
  EXPECT_EQ(foreign->code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(foreign->output().empty());
}

TEST(DecodeRoundTest, LeasedBlocksThatLackAnOptionalGroupAreNotReadForIt) {
  EngineWorld w;
  const TestPrompt prompt = w.world.store.Prompt("t", 1, 2);
  PutWithoutDraft(w.world.store, prompt);
  const LeaseId lease = *w.world.store.Lease(prompt).lease;
  AttendParameters parameters = EngineWorld::Parameters();
  parameters.group = 1;
  const AttendShape draft = *MakeAttendShape(*w.shape.map, parameters);
  TestStep step(&draft, w.world.store.fingerprint());
  step.Leased(lease, 8);
  w.Do(step);
  EXPECT_EQ(step.code(), absl::StatusCode::kFailedPrecondition) << step.results[0].status;
  EXPECT_THAT(std::string(step.results[0].status.message()), HasSubstr("group 1"));
  EXPECT_TRUE(step.output().empty());
}

TEST(DecodeRoundTest, EmptySequencesAreAskedTogether) {
  EngineWorld w;
  const SequenceId a = w.world.Open(w.world.store.Prompt("t", 1, 0));
  const SequenceId b = w.world.Open(w.world.store.Prompt("t", 2, 0));
  const auto step = w.Step();
  step->Asks(a, 0);
  step->Asks(b, 0);
  w.Do(*step);
  EXPECT_EQ(step->code(0), absl::StatusCode::kOk);
  EXPECT_EQ(step->code(1), absl::StatusCode::kOk);
}

}  // namespace
}  // namespace cairn::node
