// Forks, truncations and windows: what sequences share, when it is copied, and what room that
// takes. Each test is a story on a small store with a fake clock.
#include <gmock/gmock.h>

#include "common/base/check.h"
#include "tests/cache_node/decode/sequence/sequence_world.h"

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

class SequenceForkTest : public ::testing::Test {
 protected:
  SequenceForkTest() {
    prompt_ = w_.store.Prompt("t", 1, 2);
    CAIRN_CHECK(w_.store.Put(prompt_) == 2);
    page_ = w_.map->block_bytes();
  }
  ~SequenceForkTest() override {
    Audit();
    w_.table->CloseAll();
    const absl::Status quiet = w_.Quiet();
    EXPECT_TRUE(quiet.ok()) << quiet;
  }

  void Audit() { EXPECT_TRUE(w_.Audit().ok()) << w_.Audit(); }
  std::vector<SequenceId> Fork(const SequenceId& id, uint32_t count, uint64_t reserve_tokens) {
    const auto forked = w_.table->Fork("t", id, count, reserve_tokens);
    CAIRN_CHECK_OK(forked.status());
    Audit();
    return forked->ids;
  }
  uint64_t Used() { return w_.table->Numbers().bytes_used / page_; }
  uint64_t Reserved() { return w_.table->Numbers().bytes_reserved / page_; }
  void Truncate(const SequenceId& id, uint64_t length) {
    const auto left = w_.table->Truncate("t", id, length);
    ASSERT_TRUE(left.ok()) << left.status();
    Audit();
  }
  // By other tenants, so that nothing is left for this one.
  void TakeAllThatIsFree() {
    for (const char* tenant : {"u", "v"}) {
      for (uint64_t wish = w_.table->Numbers().bytes_free() / page_; wish > 0; --wish) {
        const auto opened =
            w_.TryOpen(prompt_, {.first_block = 2, .reserve_tokens = wish * 4, .tenant = tenant});
        if (opened.ok()) break;
      }
    }
    const uint64_t left = w_.table->Numbers().bytes_free() / page_;
    CAIRN_CHECK(left <= w_.table->Numbers().bytes_max / page_ - 80);  // 16 slabs of 5.
  }

  SequenceWorld w_;
  TestPrompt prompt_;
  uint64_t page_ = 0;
};

TEST_F(SequenceForkTest, ForksShareWhatIsFullAndCopyTheLastPageWhenTheyWrite) {
  const SequenceId parent = w_.Open(prompt_, {.reserve_tokens = 12});
  ASSERT_TRUE(w_.Append(parent, 8, {1, 2, 3, 4, 5, 6}).ok());
  EXPECT_EQ(Used(), 2u);
  const std::vector<SequenceId> forks = Fork(parent, 3, 4);
  EXPECT_EQ(Used(), 2u);
  // Each fork may write in the shared page and one behind it; the parent needs a copy as well.
  EXPECT_EQ(Reserved(), 1u + 3 * 2 + 1);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(w_.Holds(forks[i], 8, {1, 2, 3, 4, 5, 6}));
    EXPECT_TRUE(w_.Append(forks[i], 14, {100 + i, 200 + i, 300 + i}).ok());
  }
  ASSERT_TRUE(w_.Append(parent, 14, {7}).ok());
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(w_.Holds(forks[i], 8, {1, 2, 3, 4, 5, 6, 100 + i, 200 + i, 300 + i}));
  }
  EXPECT_TRUE(w_.Holds(parent, 8, {1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(Used(), 2u + 3 * 2);  // The parent wrote last: it had its page for itself.
}

TEST_F(SequenceForkTest, TheParentMayWriteFirst) {
  const SequenceId parent = w_.Open(prompt_, {.reserve_tokens = 4});
  ASSERT_TRUE(w_.Append(parent, 8, {1, 2}).ok());
  const SequenceId fork = Fork(parent, 1, 2)[0];
  TakeAllThatIsFree();
  ASSERT_TRUE(w_.Append(parent, 10, {3, 4}).ok());
  ASSERT_TRUE(w_.Append(fork, 10, {5, 6}).ok());
  EXPECT_TRUE(w_.Holds(parent, 8, {1, 2, 3, 4}));
  EXPECT_TRUE(w_.Holds(fork, 8, {1, 2, 5, 6}));
}

TEST_F(SequenceForkTest, AForkBeginsWhereAllLayersAre) {
  const SequenceId parent = w_.Open(prompt_, {.reserve_tokens = 12});
  ASSERT_TRUE(w_.TryAppend(parent, {.layer = 0}, 8, {1, 2, 3, 4, 5, 6, 7}).ok());
  ASSERT_TRUE(w_.TryAppend(parent, {.layer = 1}, 8, {1, 2, 3}).ok());
  const auto forked = w_.table->Fork("t", parent, 1, 6);
  ASSERT_TRUE(forked.ok());
  EXPECT_EQ(forked->length_tokens, 11u);
  const SequenceId fork = forked->ids[0];
  EXPECT_TRUE(w_.Holds(fork, 8, {1, 2, 3}));
  ASSERT_TRUE(w_.Append(fork, 11, {9, 9}).ok());
  ASSERT_TRUE(w_.TryAppend(parent, {.layer = 1}, 11, {4, 5, 6, 7}).ok());
  EXPECT_TRUE(w_.Holds(parent, 8, {1, 2, 3, 4, 5, 6, 7}));
  EXPECT_TRUE(w_.Holds(fork, 8, {1, 2, 3, 9, 9}));
}

TEST_F(SequenceForkTest, AForkOfAForkOutlivesBoth) {
  const SequenceId first = w_.Open(prompt_, {.reserve_tokens = 8});
  ASSERT_TRUE(w_.Append(first, 8, {1, 2, 3}).ok());
  const SequenceId second = Fork(first, 1, 8)[0];
  ASSERT_TRUE(w_.Append(second, 11, {4, 5}).ok());
  const SequenceId third = Fork(second, 1, 8)[0];
  EXPECT_EQ(w_.table->Close("t", {first, second}), 2u);
  ASSERT_TRUE(w_.Append(third, 13, {6}).ok());
  EXPECT_TRUE(w_.Holds(third, 8, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(w_.store.store->Status().pins, 2u);
}

TEST_F(SequenceForkTest, ForksAreAllOrNone) {
  const SequenceId parent = w_.Open(prompt_, {.reserve_tokens = 4});
  ASSERT_TRUE(w_.Append(parent, 8, {1, 2}).ok());
  const DecodeNumbers before = w_.table->Numbers();
  const auto refused = w_.table->Fork("t", parent, 4, 100);  // 26 pages each, of 80.
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  const DecodeNumbers after = w_.table->Numbers();
  EXPECT_EQ(after.running, 1u);
  EXPECT_EQ(after.bytes_reserved, before.bytes_reserved);
  EXPECT_EQ(after.book_bytes, before.book_bytes);
  EXPECT_EQ(after.refused, 1u);
  EXPECT_TRUE(w_.Append(parent, 10, {3}).ok());
}

TEST_F(SequenceForkTest, AForkWithoutAReservationIsReadOnly) {
  const SequenceId parent = w_.Open(prompt_, {.reserve_tokens = 4});
  ASSERT_TRUE(w_.Append(parent, 8, {1, 2}).ok());
  const SequenceId fork = Fork(parent, 1, 0)[0];
  EXPECT_EQ(w_.Append(fork, 10, {3}).code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(w_.Append(parent, 10, {3}).ok());
  EXPECT_TRUE(w_.Holds(fork, 8, {1, 2}));
  EXPECT_TRUE(w_.Holds(parent, 8, {1, 2, 3}));
}

TEST_F(SequenceForkTest, ATruncationGoesOverBlockEdgesAndBack) {
  const SequenceId id = w_.Open(prompt_, {.reserve_tokens = 12});
  ASSERT_TRUE(w_.Append(id, 8, {1, 2, 3, 4, 5, 6, 7, 8, 9}).ok());
  EXPECT_EQ(Used(), 3u);
  Truncate(id, 11);
  EXPECT_EQ(Used(), 1u);
  EXPECT_EQ(Reserved(), 2u);
  EXPECT_TRUE(w_.Holds(id, 8, {1, 2, 3}));
  ASSERT_TRUE(w_.Append(id, 11, {11, 12, 13, 14, 15, 16, 17, 18, 19}).ok());
  EXPECT_TRUE(w_.Holds(id, 8, {1, 2, 3, 11, 12, 13, 14, 15, 16, 17, 18, 19}));
  Truncate(id, 8);
  EXPECT_EQ(Used(), 0u);
  EXPECT_TRUE(w_.Append(id, 8, {5}).ok());
  EXPECT_TRUE(w_.Holds(id, 8, {5}));
}

TEST_F(SequenceForkTest, ATruncationBeyondWhatIsThereChangesNothing) {
  const SequenceId id = w_.Open(prompt_);
  ASSERT_TRUE(w_.Append(id, 8, {1, 2}).ok());
  EXPECT_EQ(*w_.table->Truncate("t", id, 100), 10u);
  EXPECT_TRUE(w_.Holds(id, 8, {1, 2}));
  const absl::Status refused = w_.table->Truncate("t", id, 7).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("cover 8 tokens"));
}

TEST_F(SequenceForkTest, ATruncationIntoSharedPagesLeavesTheOthersTheirRows) {
  const SequenceId parent = w_.Open(prompt_, {.reserve_tokens = 12});
  ASSERT_TRUE(w_.Append(parent, 8, {1, 2, 3, 4, 5, 6, 7, 8, 9}).ok());
  const SequenceId fork = Fork(parent, 1, 4)[0];
  Truncate(fork, 10);  // Into the first own page, which is full and shared.
  ASSERT_TRUE(w_.Append(fork, 10, {30, 40, 50, 60, 70}).ok());
  Truncate(parent, 13);
  ASSERT_TRUE(w_.Append(parent, 13, {60, 70}).ok());
  EXPECT_TRUE(w_.Holds(fork, 8, {1, 2, 30, 40, 50, 60, 70}));
  EXPECT_TRUE(w_.Holds(parent, 8, {1, 2, 3, 4, 5, 60, 70}));
}

TEST_F(SequenceForkTest, WithoutRoomATruncationIntoSharedPagesLowersTheCapacity) {
  const SequenceId parent = w_.Open(prompt_, {.reserve_tokens = 12});
  ASSERT_TRUE(w_.Append(parent, 8, {1, 2, 3, 4, 5, 6, 7, 8}).ok());
  const SequenceId fork = Fork(parent, 1, 4)[0];  // One page, behind 16.
  TakeAllThatIsFree();
  Truncate(fork, 8);  // It would need three.
  EXPECT_EQ((*w_.table->Find("t", fork))->capacity_tokens(), 12u);
  EXPECT_TRUE(w_.Append(fork, 8, {9, 9, 9, 9}).ok());
  const absl::Status refused = w_.Append(fork, 12, {9});
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("ends at 12"));
  EXPECT_TRUE(w_.Holds(parent, 8, {1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_TRUE(w_.Holds(fork, 8, {9, 9, 9, 9}));
}

TEST_F(SequenceForkTest, AGroupThatLagsWritesCopiesOfSharedPages) {
  const SequenceId parent = w_.Open(prompt_, {.reserve_tokens = 12});
  ASSERT_TRUE(w_.Append(parent, 8, {1, 2, 3, 4, 5}).ok());
  const SequenceId fork = Fork(parent, 1, 4)[0];
  ASSERT_TRUE(w_.TryAppend(parent, {.group = 1}, 8, {1, 2, 3, 4, 5}).ok());
  const auto of_fork = w_.table->Find("t", fork);
  EXPECT_EQ((*of_fork)->Stored(1, 0, 0).tokens, 8u);
  EXPECT_TRUE(w_.SegmentHolds(**w_.table->Find("t", parent), {1, 1, 0}, 8, {1, 2, 3, 4, 5}));
  EXPECT_TRUE(w_.Holds(parent, 8, {1, 2, 3, 4, 5}));
  Audit();
  TakeAllThatIsFree();
  EXPECT_TRUE(w_.Append(fork, 13, {6, 7, 8, 9}).ok());
  EXPECT_TRUE(w_.Holds(fork, 8, {1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_F(SequenceForkTest, AWindowGivesBackPinsAndPages) {
  const SequenceId id = w_.Open(prompt_, {.reserve_tokens = 16});
  std::vector<uint32_t> tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  ASSERT_TRUE(w_.Append(id, 8, tokens).ok());
  EXPECT_EQ(*w_.table->ReleaseWindow("t", id, 15, 4), 2u);  // Blocks 1 and 2 of 0 to 5.
  Audit();
  EXPECT_EQ(w_.store.store->Status().pins, 1u);
  EXPECT_EQ(Used(), 3u);
  const auto sequence = w_.table->Find("t", id);
  EXPECT_EQ((*sequence)->released(), std::make_pair(uint64_t{4}, uint64_t{12}));
  const SlotRun run = (*sequence)->Stored(0, 0, 0);
  EXPECT_NE(run.slots[0], nullptr);
  EXPECT_EQ(run.slots[1], nullptr);
  EXPECT_EQ(run.slots[2], nullptr);
  EXPECT_NE(run.slots[3], nullptr);
  EXPECT_EQ(*w_.table->ReleaseWindow("t", id, 15, 4), 0u);  // Again: nothing more.
  EXPECT_EQ(*w_.table->ReleaseWindow("t", id, 17, 4), 1u);
  EXPECT_TRUE(w_.Append(id, 21, {14, 15}).ok());
  tokens.insert(tokens.end(), {14, 15});
  EXPECT_TRUE(w_.Holds(id, 8, tokens));
}

TEST_F(SequenceForkTest, AWindowIsRefusedWhatOthersStillNeed) {
  const SequenceId id = w_.Open(prompt_, {.reserve_tokens = 16});
  ASSERT_TRUE(w_.Append(id, 8, {1, 2, 3, 4, 5, 6, 7}).ok());
  ASSERT_TRUE(w_.TryAppend(id, {.layer = 0}, 15, {8}).ok());
  EXPECT_EQ(w_.table->ReleaseWindow("t", id, 16, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(w_.table->ReleaseWindow("t", id, 12, 0).ok());
  EXPECT_EQ(w_.table->Truncate("t", id, 11).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(w_.table->ReleaseWindow("t", id, 15, 8).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(w_.TryAppend(id, {.group = 1}, 8, {1}).code(), absl::StatusCode::kFailedPrecondition);
  Truncate(id, 12);
  EXPECT_TRUE(w_.Append(id, 12, {9}).ok());
}

TEST_F(SequenceForkTest, AForkKeepsWhatItsParentGivesBack) {
  const SequenceId parent = w_.Open(prompt_, {.reserve_tokens = 16});
  ASSERT_TRUE(w_.Append(parent, 8, {1, 2, 3, 4, 5, 6, 7, 8}).ok());
  const SequenceId fork = Fork(parent, 1, 4)[0];
  ASSERT_EQ(*w_.table->ReleaseWindow("t", parent, 16, 0), 4u);
  EXPECT_TRUE(w_.Holds(fork, 8, {1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ((*w_.table->Find("t", fork))->released().second, 0u);
  EXPECT_EQ(w_.store.store->Status().pins, 2u);
  const SequenceId late = Fork(parent, 1, 4)[0];
  EXPECT_EQ((*w_.table->Find("t", late))->released().second, 16u);
  EXPECT_TRUE(w_.Append(late, 16, {9}).ok());
}

}  // namespace
}  // namespace cairn::node
