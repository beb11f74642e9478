// Sequences from their opening to their end: what they begin with, who may use them, and that all
// comes back. Each test is a story on a small store with a fake clock.
#include <gmock/gmock.h>

#include "common/base/check.h"
#include "tests/cache_node/decode/sequence/sequence_world.h"

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

class SequenceTableTest : public ::testing::Test {
 protected:
  SequenceTableTest() {
    prompt_ = w_.store.Prompt("t", 1, 3);
    CAIRN_CHECK(w_.store.Put(prompt_) == 3);
  }
  ~SequenceTableTest() override {
    w_.table->CloseAll();
    const absl::Status quiet = w_.Quiet();
    EXPECT_TRUE(quiet.ok()) << quiet;
  }

  absl::StatusCode Code(const SequenceId& id, const std::string& tenant = "t") {
    return w_.table->Find(tenant, id).status().code();
  }

  SequenceWorld w_;
  TestPrompt prompt_;
};

TEST_F(SequenceTableTest, ItBeginsBehindThePromptAndHoldsWhatIsAppended) {
  const auto opened = w_.TryOpen(prompt_, {.reserve_tokens = 8});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->first_token, 0u);
  EXPECT_EQ(opened->covered_tokens, 12u);
  EXPECT_EQ(opened->reserved_tokens, 8u);
  EXPECT_EQ(opened->idle, absl::Minutes(1));
  EXPECT_TRUE(w_.Append(opened->id, 12, {5, 6, 7, 8, 9}).ok());
  EXPECT_TRUE(w_.Holds(opened->id, 12, {5, 6, 7, 8, 9}));
  const auto sequence = w_.table->Find("t", opened->id);
  ASSERT_TRUE(sequence.ok());
  const SlotRun run = (*sequence)->Stored(0, 1, 1);
  EXPECT_EQ(run.first_position, 0u);
  EXPECT_EQ(run.tokens, 17u);
  ASSERT_EQ(run.slots.size(), 5u);
  const BlockPin pin = w_.store.Pin("t", prompt_.keys[1]);
  EXPECT_EQ(static_cast<const void*>(run.slots[1]), pin.bytes().data());
  EXPECT_TRUE(w_.Audit().ok()) << w_.Audit();
}

TEST_F(SequenceTableTest, ItCanBeAMiddleOrATailOfThePrompt) {
  const auto middle = w_.TryOpen(prompt_, {.first_block = 1, .blocks_max = 1});
  ASSERT_TRUE(middle.ok());
  EXPECT_EQ(middle->first_token, 4u);
  EXPECT_EQ(middle->covered_tokens, 8u);
  const auto tail = w_.TryOpen(prompt_, {.first_block = 3});
  ASSERT_TRUE(tail.ok());
  EXPECT_EQ(tail->first_token, 12u);
  EXPECT_EQ(tail->covered_tokens, 12u);
  EXPECT_EQ(w_.table->Numbers().pinned_bytes, w_.map->block_bytes());
  EXPECT_TRUE(w_.Append(tail->id, 12, {1, 2, 3, 4, 5}).ok());
  EXPECT_TRUE(w_.Holds(tail->id, 12, {1, 2, 3, 4, 5}));
  const auto sequence = w_.table->Find("t", tail->id);
  EXPECT_EQ((*sequence)->Stored(0, 0, 0).first_position, 12u);
  EXPECT_EQ((*sequence)->Stored(0, 0, 0).tokens, 5u);
}

TEST_F(SequenceTableTest, BlocksThatManySequencesPinCountOnce) {
  const SequenceId a = w_.Open(prompt_);
  const SequenceId b = w_.Open(prompt_);
  EXPECT_EQ(w_.table->Numbers().pinned_bytes, 3 * w_.map->block_bytes());
  EXPECT_EQ(w_.store.store->Status().pins, 3u);
  EXPECT_EQ(w_.table->Close("t", {a}), 1u);
  EXPECT_EQ(w_.store.store->Status().pins, 3u);
  EXPECT_EQ(w_.table->Close("t", {b}), 1u);
  EXPECT_EQ(w_.store.store->Status().pins, 0u);
}

TEST_F(SequenceTableTest, PinnedBlocksAreNotEvicted) {
  const SequenceId id = w_.Open(prompt_);
  for (uint32_t i = 0; i < 60; ++i) w_.store.Put(w_.store.Prompt("t", 100 + i, 3));
  ASSERT_TRUE(w_.table->Find("t", id).ok());
  EXPECT_EQ(w_.store.Present(prompt_), 3u);
}

TEST_F(SequenceTableTest, AForeignAnUnknownAndAClosedSequenceAreAllAlike) {
  const SequenceId id = w_.Open(prompt_);
  EXPECT_EQ(Code(id, "u"), absl::StatusCode::kAborted);
  EXPECT_EQ(w_.table->Close("u", {id}), 0u);
  EXPECT_EQ(Code(id), absl::StatusCode::kOk);
  EXPECT_EQ(w_.table->Close("t", {id, id, SequenceId{}}), 1u);
  const absl::Status closed = w_.table->Find("t", id).status();
  EXPECT_EQ(closed, w_.table->Find("u", id).status());
  EXPECT_EQ(closed, w_.table->Find("t", SequenceId{}).status());
  EXPECT_THAT(closed.message(), HasSubstr("open it again"));
  EXPECT_EQ(w_.table->Truncate("t", id, 12).status(), closed);
  EXPECT_EQ(w_.table->ReleaseWindow("t", id, 4, 0).status(), closed);
  EXPECT_EQ(w_.table->Fork("t", id, 1, 0).status(), closed);
}

TEST_F(SequenceTableTest, OneThatIsNotUsedEnds) {
  const SequenceId used = w_.Open(prompt_, {.idle = absl::Seconds(10)});
  const SequenceId idle = w_.Open(prompt_, {.idle = absl::Seconds(10)});
  w_.store.Advance(absl::Seconds(7));
  EXPECT_EQ(Code(used), absl::StatusCode::kOk);
  w_.store.Advance(absl::Seconds(7));
  w_.table->Tick();
  EXPECT_EQ(w_.table->Numbers().running, 1u);
  EXPECT_EQ(w_.table->Numbers().ended_idle, 1u);
  EXPECT_EQ(Code(idle), absl::StatusCode::kAborted);
  EXPECT_EQ(Code(used), absl::StatusCode::kOk);
  // Also without a tick it is not found after its time.
  w_.store.Advance(absl::Seconds(10));
  EXPECT_EQ(Code(used), absl::StatusCode::kAborted);
  EXPECT_EQ(w_.table->Numbers().reclaimed(), 2u);
}

TEST_F(SequenceTableTest, ANodeThatStoodStillGivesItsSequencesTheTimeBack) {
  const SequenceId id = w_.Open(prompt_, {.idle = absl::Seconds(10)});
  w_.store.clock.Advance(absl::Minutes(5));  // Without a tick.
  w_.store.time.Tick();
  w_.table->Tick();
  EXPECT_EQ(Code(id), absl::StatusCode::kOk);
}

TEST_F(SequenceTableTest, OneWhoseBlocksAreRemovedEnds) {
  const SequenceId asked = w_.Open(prompt_);
  const SequenceId silent = w_.Open(prompt_);
  const TestPrompt other = w_.store.Prompt("t", 2, 2);
  ASSERT_EQ(w_.store.Put(other), 2u);
  const SequenceId untouched = w_.Open(other);
  ASSERT_TRUE(w_.store.store->Delete("t", w_.fingerprint, {prompt_.keys[2]}).ok());
  const absl::Status gone = w_.table->Find("t", asked).status();
  EXPECT_EQ(gone.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(gone.message(), HasSubstr("removed"));
  EXPECT_EQ(Code(untouched), absl::StatusCode::kOk);
  w_.table->Tick();
  EXPECT_EQ(w_.table->Numbers().running, 1u);
  EXPECT_EQ(w_.table->Numbers().ended_removed, 2u);
  EXPECT_EQ(Code(silent), absl::StatusCode::kAborted);
  EXPECT_EQ(w_.store.store->Status().pinned_bytes, 2 * w_.map->block_bytes());
}

TEST_F(SequenceTableTest, AClearOfTheScopeEndsItToo) {
  const SequenceId id = w_.Open(prompt_);
  ASSERT_TRUE(
      w_.store.store->ClearScope("t", w_.fingerprint, w_.store.Plan(prompt_).scope_digest).ok());
  EXPECT_EQ(Code(id), absl::StatusCode::kAborted);
}

TEST_F(SequenceTableTest, NothingOutlivesARetiredNamespace) {
  const SequenceId pinned = w_.Open(prompt_);
  const SequenceId tail = w_.Open(prompt_, {.first_block = 3});
  ASSERT_TRUE(w_.store.store->RetireNamespace(w_.fingerprint).ok());
  const auto refused = w_.TryOpen(prompt_, {.first_block = 3});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  w_.store.Register(w_.fields);  // Anew: nothing from before belongs to it.
  EXPECT_EQ(Code(pinned), absl::StatusCode::kAborted);
  EXPECT_EQ(Code(tail), absl::StatusCode::kAborted);
  EXPECT_EQ(w_.table->Numbers().ended_removed, 2u);
}

TEST_F(SequenceTableTest, BlocksThatWereRemovedBeforeTheOpeningAreRefused) {
  SequenceTable::Opening opening = w_.OpeningOf(prompt_, {});
  ASSERT_EQ(opening.pins.size(), 3u);
  ASSERT_TRUE(w_.store.store->Delete("t", w_.fingerprint, {prompt_.keys[0]}).ok());
  EXPECT_EQ(w_.table->Open(std::move(opening)).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(w_.table->Numbers().bytes_reserved, 0u);
}

TEST_F(SequenceTableTest, AnIdleTimeOverTheBoundIsRefused) {
  const auto refused =
      w_.TryOpen(prompt_, {.idle = absl::Milliseconds(kSequenceIdleMsMax) + absl::Seconds(1)});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("idle_ms 1801000"));
}

TEST_F(SequenceTableTest, NumbersSayWhatIsFree) {
  DecodeNumbers numbers = w_.table->Numbers();
  EXPECT_EQ(numbers.bytes_max, SequenceWorld::kDecodeBytes);
  EXPECT_EQ(numbers.bytes_free(), SequenceWorld::kDecodeBytes);
  EXPECT_EQ(numbers.tokens_free, 0u);
  const SequenceId id = w_.Open(prompt_, {.reserve_tokens = 10});
  const uint64_t page = w_.map->block_bytes();
  numbers = w_.table->Numbers();
  EXPECT_EQ(numbers.running, 1u);
  EXPECT_EQ(numbers.tokens_reserved, 10u);
  EXPECT_EQ(numbers.bytes_reserved, 3 * page);
  EXPECT_EQ(numbers.tokens_free, (80u - 3) * 4);  // 16 slabs of 5 pages.
  ASSERT_TRUE(w_.Append(id, 12, {1, 2, 3, 4, 5}).ok());
  numbers = w_.table->Numbers();
  EXPECT_EQ(numbers.tokens_reserved, 5u);
  EXPECT_EQ(numbers.bytes_used, 2 * page);
  EXPECT_EQ(numbers.bytes_reserved, page);
  EXPECT_EQ(numbers.appended_rows, 20u);
  ASSERT_TRUE(w_.table->Truncate("t", id, 13).ok());
  numbers = w_.table->Numbers();
  EXPECT_EQ(numbers.tokens_reserved, 9u);
  EXPECT_EQ(numbers.bytes_used, page);
  EXPECT_EQ(numbers.bytes_reserved, 2 * page);
}

TEST(SequenceBoundsTest, ANodeWithoutDecodeMemorySaysWhatIsMissing) {
  SequenceTable::Options options = SequenceWorld::TableOptions();
  options.pages.bytes_max = 0;
  SequenceWorld w(options);
  const absl::Status refused = w.TryOpen(w.store.Prompt("t", 1, 1), {}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("--decode-memory"));
}

TEST(SequenceBoundsTest, EachBoundRefusesAloneAndLeavesNothing) {
  SequenceTable::Options tight = SequenceWorld::TableOptions();
  const auto refusal = [](const SequenceTable::Options& options, const SequenceWorld::Wish& wish) {
    SequenceWorld w(options);
    const TestPrompt prompt = w.store.Prompt("t", 1, 3);
    CAIRN_CHECK(w.store.Put(prompt) == 3);
    const absl::Status status = w.TryOpen(prompt, wish).status();
    EXPECT_EQ(w.table->Numbers().refused, absl::IsResourceExhausted(status) ? 1u : 0u);
    EXPECT_TRUE(w.Quiet().ok()) << w.Quiet();
    return status;
  };
  EXPECT_TRUE(refusal(tight, {.reserve_tokens = SequenceTable::kTokensMax + 1}).code() ==
              absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refusal(tight, {.reserve_tokens = 1000}).message(), HasSubstr("share"));
  tight.pages.tenant_bytes_max = 3 * 3072;
  EXPECT_THAT(refusal(tight, {.reserve_tokens = 16}).message(), HasSubstr("at most 9216 bytes"));
  tight = SequenceWorld::TableOptions();
  tight.pins.bytes_max = 3 * 3072 - 1;
  EXPECT_THAT(refusal(tight, {}).message(), HasSubstr("pinned by sequences"));
  tight = SequenceWorld::TableOptions();
  tight.book_bytes_max = 2000;
  EXPECT_THAT(refusal(tight, {}).message(), HasSubstr("books"));
  tight = SequenceWorld::TableOptions();
  tight.sequences_max = 0;
  EXPECT_THAT(refusal(tight, {}).message(), HasSubstr("at most 0 sequences"));
}

TEST(SequenceBoundsTest, ForksCountAgainstTheSameBounds) {
  SequenceTable::Options options = SequenceWorld::TableOptions();
  options.sequences_max = 3;
  SequenceWorld w(options);
  const TestPrompt prompt = w.store.Prompt("t", 1, 1);
  ASSERT_EQ(w.store.Put(prompt), 1u);
  const SequenceId id = w.Open(prompt);
  EXPECT_EQ(w.table->Fork("t", id, 3, 1).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(w.table->Fork("t", id, 2, 1).ok());
  EXPECT_EQ(w.TryOpen(prompt, {}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(w.table->Fork("t", id, 1, SequenceTable::kTokensMax + 1).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace cairn::node
