// The engine over a small store and table: who computes when it is idle and when it is busy, what
// waits together, in which order; and that what is wrong with one item is its alone. A pool whose
// kernels can be held makes it busy for as long as a test likes.
#include "cache_node/decode/engine/decode_engine.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/cache_node/decode/engine/engine_world.h"
#include "tests/cache_node/decode/engine/slot_pool.h"

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

// Nothing is small enough for who brings it.
DecodeEngine::Options OnItsThread() {
  DecodeEngine::Options options;
  options.inline_cost = {};
  return options;
}

LeaseId LeaseOf(EngineWorld& w, const TestPrompt& prompt) {
  return *w.world.store.Lease(prompt).lease;
}

TEST(DecodeEngineTest, AnIdleEngineDoesASmallStepOnTheThreadThatBringsIt) {
  EngineWorld w;
  const SequenceId id = w.world.Open(w.world.store.Prompt("t", 1, 0));
  const auto step = w.Step();
  step->Appends(w.world, id, 0, {1, 2, 3});
  ASSERT_TRUE(w.Submit(*step).ok());
  ASSERT_TRUE(step->done());
  EXPECT_EQ(step->done_on(), std::this_thread::get_id());
  EXPECT_EQ(step->code(), absl::StatusCode::kOk) << step->results[0].status;
  EXPECT_EQ(step->results[0].length_tokens, 3u);
  EXPECT_EQ(step->output().size(), 3 * w.shape.OutputRowBytes());
  EXPECT_EQ(w.engine->counts().inline_rounds, 1u);
}

TEST(DecodeEngineTest, AnIdleEngineBeginsALargeStepAtOnceOnItsOwnThread) {
  EngineWorld w(OnItsThread());
  const SequenceId id = w.world.Open(w.world.store.Prompt("t", 1, 0));
  w.pool.Close();
  const auto step = w.Step();
  step->Appends(w.world, id, 0, {1, 2, 3});
  ASSERT_TRUE(w.Submit(*step).ok());
  w.pool.AwaitInside();  // Nothing else came.
  EXPECT_FALSE(step->done());
  w.pool.Open();
  step->AwaitDone();
  EXPECT_NE(step->done_on(), std::this_thread::get_id());
  EXPECT_EQ(step->code(), absl::StatusCode::kOk);
}

TEST(DecodeEngineTest, WhatComesWhileItIsBusyIsDoneTogetherAndReadOnce) {
  EngineWorld w(OnItsThread());
  const TestPrompt prompt = w.world.store.Prompt("t", 1, 20);
  ASSERT_EQ(w.world.store.Put(prompt), 20u);
  const LeaseId lease = LeaseOf(w, prompt);
  w.pool.Close();
  std::vector<std::unique_ptr<TestStep>> steps;
  for (int i = 0; i < 9; ++i) {
    steps.push_back(w.Step());
    steps.back()->Leased(lease, 1000);
    ASSERT_TRUE(w.Submit(*steps.back()).ok());
    if (i == 0) w.pool.AwaitInside();
  }
  EXPECT_EQ(w.engine->counts().waiting, 8u);
  w.pool.Open();
  for (const auto& step : steps) step->AwaitDone();
  w.engine->Stop();
  const DecodeCounts counts = w.engine->counts();
  EXPECT_EQ(counts.steps, 9u);
  EXPECT_EQ(counts.rounds, 2u);
  EXPECT_EQ(counts.batches, 2u);
  EXPECT_EQ(counts.attended.shared_rows, 8u);
  EXPECT_EQ(counts.attended.read_bytes, 2 * 20 * 4 * w.shape.TokenBytes());
  EXPECT_EQ(counts.attended.saved_bytes, 7 * 20 * 4 * w.shape.TokenBytes());
  for (const auto& step : steps) EXPECT_EQ(step->results[0].length_tokens, 80u);
}

TEST(DecodeEngineTest, StepsAndJobsOfOneSequenceKeepTheirOrder) {
  EngineWorld w(OnItsThread());
  const SequenceId id = w.world.Open(w.world.store.Prompt("t", 1, 0));
  w.pool.Close();
  const auto busy = w.Step();
  busy->Appends(w.world, id, 0, {1});
  ASSERT_TRUE(w.Submit(*busy).ok());
  w.pool.AwaitInside();
  const auto before = w.Step();
  before->Appends(w.world, id, 1, {2, 3}).Appends(w.world, id, 3, {4});
  ASSERT_TRUE(w.Submit(*before).ok());
  DecodeEngine::Job truncate = [&](SequenceTable& table) {
    EXPECT_TRUE(table.Truncate("t", id, 2).ok());
  };
  ASSERT_TRUE(w.engine->Run(truncate).ok());
  const auto after = w.Step();
  after->Appends(w.world, id, 2, {7});
  ASSERT_TRUE(w.Submit(*after).ok());
  EXPECT_EQ(w.engine->counts().waiting, 3u);
  w.pool.Open();
  after->AwaitDone();
  EXPECT_EQ(before->results[0].length_tokens, 4u);  // All of a round is appended first.
  EXPECT_EQ(before->results[1].length_tokens, 4u);
  EXPECT_EQ(after->results[0].length_tokens, 3u);
  w.engine->Stop();
}

TEST(DecodeEngineTest, ASequencesNumbersAreTheReferencesOverWhatIsStored) {
  EngineWorld w;
  const SequenceId id = w.world.Open(w.world.store.Prompt("t", 1, 0));
  for (uint32_t layer = 0; layer < 2; ++layer) {
    const auto step = w.Step(layer);
    step->Appends(w.world, id, 0, {5, 6, 7, 8, 9}).Appends(w.world, id, 5, {10, 11});
    w.Do(*step);
    const SlotRun run = (*w.world.table->Find("t", id))->Stored(0, 0, layer);
    EXPECT_EQ(run.tokens, 7u);
    for (size_t item = 0; item < 2; ++item) {
      TestRows rows;
      rows.position = step->items[item].position;
      rows.rows = step->items[item].rows;
      const std::string& queries = step->queries(item);
      const auto* bytes = reinterpret_cast<const std::byte*>(queries.data());
      rows.queries.assign(bytes, bytes + queries.size());
      const auto floats = [](const std::string& text) {
        std::vector<float> numbers(text.size() / sizeof(float));
        std::memcpy(numbers.data(), text.data(), text.size());
        return numbers;
      };
      rows.output = floats(step->output(item));
      rows.log_sum_exp = floats(*step->results[item].log_sum_exp);
      ExpectNear(rows, SlotPool::Reference(w.shape, layer, run, rows), 2e-5);
    }
  }
}

TEST(DecodeEngineTest, WhatIsWrongWithAnItemIsItsAlone) {
  EngineWorld w;
  const TestPrompt prompt = w.world.store.Prompt("t", 1, 3);
  ASSERT_EQ(w.world.store.Put(prompt), 3u);
  const LeaseId lease = LeaseOf(w, prompt);
  const SequenceId id = w.world.Open(w.world.store.Prompt("t", 2, 0));
  const auto step = w.Step();
  step->Appends(w.world, id, 0, {1, 2});                          // 0: good.
  step->Asks(SequenceId(), 0);                                    // 1: nobody's.
  step->Leased(LeaseId(), 5);                                     // 2: unknown.
  step->Leased(lease, 5, 1, /*first_block=*/2, /*blocks=*/2);     // 3: more than it covers.
  step->Leased(lease, 5, 1, /*first_block=*/3);                   // 4: none from there.
  step->Appends(w.world, id, 9, {1});                             // 5: behind a hole.
  step->Leased(lease, 5);                                         // 6: NaN.
  step->Leased(lease, 5).items.back().queries.remove_suffix(1);   // 7: a byte short.
  step->Leased(lease, 5).items.back().rows = 0;                   // 8
  step->Leased(lease, uint64_t{1} << 60);                         // 9
  step->AddItem(0, 1);                                            // 10: no target.
  step->Leased(lease, 5).items.back().leased.prompt = 4;          // 11
  step->Asks(id, 1).items.back().tokens = step->items[0].tokens;  // 12: tokens without keys.
  step->Leased(lease, 11, 1, 1, 2);                               // 13: good.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(step->queries(6).data() + 8, &nan, sizeof(nan));
  w.Do(*step);
  using Code = absl::StatusCode;
  const std::vector<Code> expected = {Code::kOk,
                                      Code::kAborted,
                                      Code::kAborted,
                                      Code::kAborted,
                                      Code::kAborted,
                                      Code::kFailedPrecondition,
                                      Code::kInvalidArgument,
                                      Code::kInvalidArgument,
                                      Code::kInvalidArgument,
                                      Code::kInvalidArgument,
                                      Code::kInvalidArgument,
                                      Code::kInvalidArgument,
                                      Code::kInvalidArgument,
                                      Code::kOk};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(step->code(i), expected[i]) << "item " << i << ": " << step->results[i].status;
    EXPECT_EQ(step->output(i).empty(), expected[i] != Code::kOk) << "item " << i;
  }
  EXPECT_THAT(std::string(step->results[6].status.message()), HasSubstr("finite"));
  EXPECT_EQ(step->results[13].length_tokens, 12u);
}

TEST(DecodeEngineTest, AnotherLayerOrNamespaceIsRefused) {
  EngineWorld w;
  const SequenceId id = w.world.Open(w.world.store.Prompt("t", 2, 0));
  const auto layer = w.Step(2);
  layer->Asks(id, 0).Asks(id, 1);
  w.Do(*layer);
  EXPECT_EQ(layer->code(0), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(layer->results[1].status.message()), HasSubstr("layer: 2"));

  const auto other = w.Step();
  other->Asks(id, 0);
  other->fingerprint = w.world.store.Register(SequenceWorld::Shape(true, "other"));
  w.Do(*other);
  EXPECT_EQ(other->code(), absl::StatusCode::kInvalidArgument);
  const auto tenant = w.Step();
  tenant->Asks(id, 0);
  tenant->tenant = "u";
  w.Do(*tenant);
  EXPECT_EQ(tenant->code(), absl::StatusCode::kAborted);
}

TEST(DecodeEngineTest, ItemsBeyondTheBoundsOfARequestAreRefusedAndThoseBeforeAreNot) {
  EngineWorld w;
  const SequenceId id = w.world.Open(w.world.store.Prompt("t", 2, 0));
  const auto many = w.Step();
  for (uint32_t i = 0; i < kDecodeItemsMax + 2; ++i) many->Asks(id, 0);
  w.Do(*many);
  EXPECT_EQ(many->code(kDecodeItemsMax - 1), absl::StatusCode::kOk);
  EXPECT_EQ(many->code(kDecodeItemsMax), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(many->code(kDecodeItemsMax + 1), absl::StatusCode::kInvalidArgument);

  const auto rows = w.Step();
  rows->Asks(id, 0, kDecodeRowsMax - 1).Asks(id, 0, 2).Asks(id, 0, 1);
  w.Do(*rows);
  EXPECT_EQ(rows->code(0), absl::StatusCode::kOk);
  EXPECT_EQ(rows->code(1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(rows->code(2), absl::StatusCode::kOk);
}

TEST(DecodeEngineTest, NothingIsAnsweredOfWhatIsRemovedMeanwhile) {
  EngineWorld w(OnItsThread());
  const TestPrompt prompt = w.world.store.Prompt("t", 1, 4);
  const TestPrompt stays = w.world.store.Prompt("t", 2, 4);
  ASSERT_EQ(w.world.store.Put(prompt), 4u);
  ASSERT_EQ(w.world.store.Put(stays), 4u);
  const LeaseId lease = LeaseOf(w, prompt);
  const LeaseId other = LeaseOf(w, stays);
  const SequenceId id = w.world.Open(prompt);
  const SequenceId fine = w.world.Open(stays);
  w.pool.Inside([&] {
    ASSERT_TRUE(w.world.store.store->Delete("t", w.world.fingerprint, {prompt.keys[2]}).ok());
  });
  const auto step = w.Step();
  step->Leased(lease, 20).Leased(other, 20).Asks(id, 20).Asks(fine, 20);
  step->Leased(lease, 20, 1, 0, /*blocks=*/2);  // Before what is removed.
  w.Do(*step);
  EXPECT_EQ(step->code(0), absl::StatusCode::kAborted);
  EXPECT_TRUE(step->output(0).empty());
  EXPECT_EQ(step->code(1), absl::StatusCode::kOk);
  EXPECT_EQ(step->code(2), absl::StatusCode::kAborted);
  EXPECT_EQ(step->code(3), absl::StatusCode::kOk);
  EXPECT_EQ(step->code(4), absl::StatusCode::kOk);
  const auto again = w.Step();
  again->Leased(lease, 20);  // It was revoked.
  w.Do(*again);
  EXPECT_EQ(again->code(), absl::StatusCode::kAborted);
  w.engine->Stop();
}

TEST(DecodeEngineTest, ARetiredNamespaceIsNotAnswered) {
  EngineWorld w(OnItsThread());
  const TestPrompt prompt = w.world.store.Prompt("t", 1, 4);
  ASSERT_EQ(w.world.store.Put(prompt), 4u);
  const LeaseId lease = LeaseOf(w, prompt);
  const SequenceId id = w.world.Open(w.world.store.Prompt("t", 3, 0));
  w.pool.Inside(
      [&] { ASSERT_TRUE(w.world.store.store->RetireNamespace(w.world.fingerprint).ok()); });
  const auto step = w.Step();
  step->Leased(lease, 20).Appends(w.world, id, 0, {1});
  w.Do(*step);
  EXPECT_EQ(step->code(0), absl::StatusCode::kAborted);
  EXPECT_EQ(step->code(1), absl::StatusCode::kAborted);
  EXPECT_TRUE(step->output(1).empty());
  w.engine->Stop();
}

TEST(DecodeEngineTest, StepsThatNobodyWaitsForAreLeftOut) {
  EngineWorld w(OnItsThread());
  const SequenceId id = w.world.Open(w.world.store.Prompt("t", 1, 0));
  w.pool.Close();
  const auto busy = w.Step();
  busy->Appends(w.world, id, 0, {1});
  ASSERT_TRUE(w.Submit(*busy).ok());
  w.pool.AwaitInside();
  const auto gone = w.Step();
  gone->Appends(w.world, id, 1, {2});
  ASSERT_TRUE(w.Submit(*gone).ok());
  gone->Cancel();
  w.pool.Open();
  gone->AwaitDone();
  EXPECT_EQ(gone->code(), absl::StatusCode::kCancelled);
  w.engine->Stop();
  EXPECT_EQ((*w.world.table->Find("t", id))->end_tokens(), 1u);
}

TEST(DecodeEngineTest, MoreThanMayWaitIsRefusedAndWhatWaitsIsDoneByStop) {
  DecodeEngine::Options options = OnItsThread();
  options.waiting_max = 2;
  EngineWorld w(options);
  const SequenceId id = w.world.Open(w.world.store.Prompt("t", 1, 0));
  w.pool.Close();
  std::vector<std::unique_ptr<TestStep>> steps;
  for (int i = 0; i < 4; ++i) {
    steps.push_back(w.Step());
    steps.back()->Appends(w.world, id, 0, {1});
    const absl::Status status = w.Submit(*steps.back());
    EXPECT_EQ(status.code(), i < 3 ? absl::StatusCode::kOk : absl::StatusCode::kResourceExhausted);
    if (i == 0) w.pool.AwaitInside();
  }
  EXPECT_EQ(w.engine->counts().refused, 1u);
  w.pool.Open();
  w.engine->Stop();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(steps[static_cast<size_t>(i)]->done());
  EXPECT_FALSE(steps[3]->done());
  EXPECT_EQ(w.Submit(*steps[3]).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(w.RunJob([](SequenceTable&) {}).code(), absl::StatusCode::kUnavailable);
}

TEST(DecodeEngineTest, BlocksOfALeaseAreGivenBackWhenItEndsOrIsNotAskedForAnyMore) {
  EngineWorld w;
  const TestPrompt prompt = w.world.store.Prompt("t", 1, 4);
  ASSERT_EQ(w.world.store.Put(prompt), 4u);
  const uint64_t before = w.world.store.store->Status().pins;
  const LeaseId lease = LeaseOf(w, prompt);
  const auto step = w.Step();
  step->Leased(lease, 20);
  w.Do(*step);
  EXPECT_EQ(w.world.store.store->Status().pins, before + 8);  // The lease's, and the engine's.
  ASSERT_TRUE(w.world.store.store->EndLease("t", lease, 0, {4}).ok());
  w.engine->Tick();
  EXPECT_EQ(w.world.store.store->Status().pins, before);
  const auto late = w.Step();
  late->Leased(lease, 20);
  w.Do(*late);
  EXPECT_EQ(late->code(), absl::StatusCode::kAborted);

  const LeaseId unused = LeaseOf(w, prompt);
  const auto other = w.Step();
  other->Leased(unused, 20);
  w.Do(*other);
  w.world.store.Advance(2 * LeasedRuns::kKeptUnused);
  w.engine->Tick();
  EXPECT_EQ(w.world.store.store->Status().pins, before + 4);
}

TEST(DecodeEngineTest, ThreadsThatAllAskAreAllAnswered) {
  EngineWorld w;
  const SequenceId root = w.world.Open(w.world.store.Prompt("t", 1, 0));
  const auto first = w.Step();
  first->Appends(w.world, root, 0, {1, 2, 3});
  w.Do(*first);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (uint32_t i = 0; i < 100; ++i) {
        const auto step = w.Step();
        step->Asks(root, 2).Appends(w.world, root, 0, {1, 2, 3});
        w.Do(*step);
        EXPECT_EQ(step->code(0), absl::StatusCode::kOk);
        EXPECT_EQ(step->results[1].length_tokens, 3u);
        EXPECT_TRUE(
            w.RunJob([&](SequenceTable& table) { EXPECT_TRUE(table.Find("t", root).ok()); }).ok());
        w.engine->Tick();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  w.engine->Stop();
  const DecodeCounts counts = w.engine->counts();
  EXPECT_EQ(counts.steps, 401u);
  EXPECT_EQ(counts.waiting, 0u);
  EXPECT_TRUE(w.world.Audit().ok());
}

}  // namespace
}  // namespace cairn::node
