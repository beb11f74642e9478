// Full blocks that are published: which, under what keys, and what becomes of a sequence that
// changes, ends or finds no room meanwhile. Each test is a story on a small store with a fake
// clock.
#include <gmock/gmock.h>

#include <cstring>

#include "common/base/check.h"
#include "common/identity/segment_digest.h"
#include "tests/cache_node/decode/sequence/seal_world.h"

namespace cairn::node {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SequenceSealTest : public SealTest {};

TEST_F(SequenceSealTest, AFullBlockIsPublishedUnderItsTokens) {
  const SequenceId id = w_.Open(prompt_);
  ASSERT_TRUE(w_.Append(id, 8, more_).ok());
  EXPECT_THAT(w_.SealAll(), ElementsAre(SealOutcome::kSealed, SealOutcome::kSealed));
  EXPECT_EQ(w_.Sealed(id), 2u);
  ASSERT_EQ(w_.store.Present(longer_), 4u);
  // It is what was appended, with digests of its own key.
  for (size_t block = 2; block < 4; ++block) {
    const BlockPin pin = w_.store.Pin("t", longer_.keys[block]);
    const std::byte* slot = (*w_.table->Find("t", id))->Stored(0, 0, 0).slots[block];
    for (size_t i = 0; i < w_.map->segment_count(); ++i) {
      if (w_.map->SegmentAt(i).group == 1) {
        EXPECT_FALSE(pin.SegmentPresent(i));
        continue;
      }
      const auto bytes = pin.bytes().subspan(w_.map->SegmentOffset(i), w_.map->SegmentBytesAt(i));
      EXPECT_EQ(std::memcmp(bytes.data(), slot + w_.map->SegmentOffset(i), bytes.size()), 0);
      EXPECT_EQ(SegmentDigest(longer_.keys[block], w_.map->SegmentAt(i), bytes), pin.digests()[i]);
    }
  }
  const BlockRecords records =
      w_.store.store->DescribeBlocks("t", w_.fingerprint, longer_.keys, 100);
  EXPECT_EQ(records.blocks[3].provenance.writer, 77u);
  EXPECT_EQ(records.blocks[3].provenance.written_unix_ms,
            absl::ToUnixMillis(w_.store.clock.WallNow()));
  EXPECT_EQ(records.blocks[3].tokens, More(4, 4));
  // Another one begins behind it, and the first goes on.
  const auto second = w_.TryOpen(longer_, {});
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->covered_tokens, 16u);
  EXPECT_TRUE(w_.Append(id, 16, {3}).ok());
}

TEST_F(SequenceSealTest, ABlockIsFullWhenAllLayersAndSlicesAre) {
  const SequenceId id = w_.Open(prompt_);
  const std::vector<uint32_t> block = More(0, 4);
  ASSERT_TRUE(w_.TryAppend(id, {.layer = 0}, 8, block).ok());
  ASSERT_TRUE(w_.TryAppend(id, {.slices = 1, .layer = 1}, 8, block).ok());
  EXPECT_THAT(w_.table->TakeSeals(8), IsEmpty());
  ASSERT_TRUE(w_.TryAppend(id, {.first_slice = 1, .slices = 1, .layer = 1}, 8, More(0, 3)).ok());
  EXPECT_THAT(w_.table->TakeSeals(8), IsEmpty());
  ASSERT_TRUE(w_.TryAppend(id, {.first_slice = 1, .slices = 1, .layer = 1}, 11, More(3, 1)).ok());
  EXPECT_THAT(w_.SealAll(), ElementsAre(SealOutcome::kSealed));
  EXPECT_EQ(w_.store.Present(longer_), 3u);
}

TEST_F(SequenceSealTest, AGroupThatIsFullInTimeIsPublishedToo) {
  const SequenceId id = w_.Open(prompt_);
  ASSERT_TRUE(w_.TryAppend(id, {.group = 1}, 8, More(0, 4)).ok());
  ASSERT_TRUE(w_.Append(id, 8, More(0, 4)).ok());
  EXPECT_THAT(w_.SealAll(), ElementsAre(SealOutcome::kSealed));
  const BlockPin pin = w_.store.Pin("t", longer_.keys[2]);
  for (size_t i = 0; i < w_.map->segment_count(); ++i) EXPECT_TRUE(pin.SegmentPresent(i)) << i;
}

TEST_F(SequenceSealTest, WithoutTokensNothingIsPublished) {
  const SequenceId id = w_.Open(prompt_);
  for (uint32_t layer = 0; layer < 2; ++layer) {
    const SequenceWorld::Rows made = w_.MakeRows({.layer = layer}, 8, More(0, 4));
    AppendRows rows = made.rows;
    rows.keys = made.keys;
    rows.values = made.values;
    rows.tokens = {};
    ASSERT_TRUE(w_.table->Append(*w_.table->Find("t", id), rows).ok());
  }
  EXPECT_THAT(w_.SealAll(), IsEmpty());
  // Said later, they count.
  ASSERT_TRUE(w_.TryAppend(id, {}, 8, More(0, 4)).ok());
  EXPECT_THAT(w_.SealAll(), ElementsAre(SealOutcome::kSealed));
}

TEST_F(SequenceSealTest, ThePromptsOwnTailIsPublishedWithoutTokensInTheRows) {
  const SequenceId id = w_.Open(longer_, {.reserve_tokens = 8});
  for (uint32_t layer = 0; layer < 2; ++layer) {
    const SequenceWorld::Rows made = w_.MakeRows({.layer = layer}, 8, more_);
    AppendRows rows = made.rows;
    rows.keys = made.keys;
    rows.values = made.values;
    rows.tokens = {};
    ASSERT_TRUE(w_.table->Append(*w_.table->Find("t", id), rows).ok());
  }
  EXPECT_THAT(w_.SealAll(), SizeIs(2));
  EXPECT_EQ(w_.store.Present(longer_), 4u);
}

TEST_F(SequenceSealTest, WhatAnotherHasWrittenCountsAsSealed) {
  ASSERT_EQ(w_.store.Put(longer_), 2u);
  const SequenceId id = w_.Open(prompt_);
  ASSERT_TRUE(w_.Append(id, 8, more_).ok());
  EXPECT_THAT(w_.SealAll(), ElementsAre(SealOutcome::kThere, SealOutcome::kThere));
  EXPECT_EQ(w_.Sealed(id), 2u);
}

TEST_F(SequenceSealTest, WhatAnotherIsWritingIsAskedAgainLater) {
  const auto reserved = w_.store.Reserve(longer_, 2, 1);
  ASSERT_TRUE(reserved.ok());
  const SequenceId id = w_.Open(prompt_);
  ASSERT_TRUE(w_.Append(id, 8, more_).ok());
  EXPECT_THAT(w_.SealAll(), ElementsAre(SealOutcome::kInProgress));
  EXPECT_THAT(w_.SealAll(), IsEmpty());
  EXPECT_TRUE(w_.table->SealsWait());
  ASSERT_TRUE(w_.store.store->Abort("t", *reserved->token).ok());
  w_.store.Advance(absl::Seconds(1));
  EXPECT_THAT(w_.SealAll(), ElementsAre(SealOutcome::kSealed, SealOutcome::kSealed));
}

TEST_F(SequenceSealTest, BehindBlocksThatAreNotHereNothingIsPublished) {
  const TestPrompt elsewhere = w_.store.Prompt("t", 7, 3);  // Never put.
  const SequenceId id = w_.Open(elsewhere, {.first_block = 3});
  ASSERT_TRUE(w_.Append(id, 12, {1, 2, 3, 4, 5, 6, 7, 8}).ok());
  EXPECT_THAT(w_.SealAll(), ElementsAre(SealOutcome::kParentMissing));
  EXPECT_EQ(w_.Sealed(id), 0u);
  EXPECT_FALSE(w_.table->SealsWait());
}

TEST_F(SequenceSealTest, ForksPublishWhatTheyShareOnceAndTheirOwn) {
  const SequenceId parent = w_.Open(prompt_);
  ASSERT_TRUE(w_.Append(parent, 8, more_).ok());
  const SequenceId fork = w_.table->Fork("t", parent, 1, 8)->ids[0];
  EXPECT_THAT(w_.SealAll(),
              ::testing::UnorderedElementsAre(SealOutcome::kSealed, SealOutcome::kSealed,
                                              SealOutcome::kThere, SealOutcome::kThere));
  const SequenceId late = w_.table->Fork("t", parent, 1, 8)->ids[0];
  EXPECT_EQ(w_.Sealed(late), 2u);
  ASSERT_TRUE(w_.Append(fork, 16, {1, 2, 3, 4}).ok());
  ASSERT_TRUE(w_.Append(late, 16, {5, 6, 7, 8}).ok());
  EXPECT_THAT(w_.SealAll(), ElementsAre(SealOutcome::kSealed, SealOutcome::kSealed));
}

TEST_F(SequenceSealTest, AWriteBehindATruncationLeavesThePageThatIsBeingPublished) {
  const SequenceId id = w_.Open(prompt_, {.reserve_tokens = 8});
  ASSERT_TRUE(w_.Append(id, 8, more_).ok());
  const std::vector<SealTask> tasks = w_.table->TakeSeals(8);
  ASSERT_THAT(tasks, SizeIs(1));                // One at a time of a sequence.
  for (const char* tenant : {"u", "v", "t"}) {  // Nothing more is free.
    for (uint64_t wish = 100; wish > 0; --wish) {
      (void)w_.TryOpen(prompt_, {.first_block = 2, .reserve_tokens = wish * 4, .tenant = tenant});
    }
  }
  ASSERT_TRUE(w_.table->Truncate("t", id, 10).ok());
  ASSERT_TRUE(w_.Append(id, 10, {71, 72, 73, 74, 75, 76}).ok());
  EXPECT_TRUE(w_.Audit().ok()) << w_.Audit();
  const SealOutcome outcome = w_.sealer.Seal(tasks[0]);
  EXPECT_EQ(outcome, SealOutcome::kSealed);
  w_.table->FinishSeal(tasks[0].serial, outcome);
  EXPECT_EQ(w_.store.Present(longer_), 3u);
  EXPECT_EQ(w_.Sealed(id), 0u);
  EXPECT_TRUE(w_.Holds(id, 8, {more_[0], more_[1], 71, 72, 73, 74, 75, 76}));
  // What was published is what the tokens say.
  const BlockPin pin = w_.store.Pin("t", longer_.keys[2]);
  const SequenceId reader = w_.Open(prompt_, {.blocks_max = 2, .reserve_tokens = 0});
  (void)reader;
  const SequenceWorld::Rows right = w_.MakeRows({.slices = 1}, 8, More(0, 4));
  float first = 0, stored = 0;  // Head 0 of the last token of the block.
  std::memcpy(&first, right.keys.data() + 3 * 64, 4);
  std::memcpy(&stored, pin.bytes().data() + 3 * 32, 4);
  EXPECT_EQ(stored, first);
  EXPECT_TRUE(w_.Audit().ok()) << w_.Audit();
}

TEST_F(SequenceSealTest, ATruncatedBlockIsPublishedAnewWithItsNewTokens) {
  const SequenceId id = w_.Open(prompt_);
  ASSERT_TRUE(w_.Append(id, 8, {1, 2, 3, 4, 5}).ok());
  EXPECT_THAT(w_.SealAll(), SizeIs(1));
  ASSERT_TRUE(w_.table->Truncate("t", id, 9).ok());
  EXPECT_EQ(w_.Sealed(id), 0u);
  ASSERT_TRUE(w_.table->Truncate("t", id, 8).ok());
  ASSERT_TRUE(w_.Append(id, 8, more_).ok());
  EXPECT_THAT(w_.SealAll(), ElementsAre(SealOutcome::kSealed, SealOutcome::kSealed));
  EXPECT_EQ(w_.store.Present(longer_), 4u);
}

TEST_F(SequenceSealTest, WhatIsFullAtTheCloseIsStillPublished) {
  const SequenceId id = w_.Open(prompt_);
  ASSERT_TRUE(w_.Append(id, 8, more_).ok());
  ASSERT_TRUE(w_.Append(id, 16, {1}).ok());
  const std::vector<SealTask> tasks = w_.table->TakeSeals(8);
  ASSERT_THAT(tasks, SizeIs(1));
  EXPECT_EQ(w_.table->Close("t", {id}), 1u);
  EXPECT_FALSE(w_.table->Find("t", id).ok());
  EXPECT_EQ(w_.table->Close("t", {id}), 0u);
  // All but the two pages came back.
  const DecodeNumbers numbers = w_.table->Numbers();
  EXPECT_EQ(numbers.running, 0u);
  EXPECT_EQ(numbers.closing, 1u);
  EXPECT_EQ(numbers.bytes_used, 2 * w_.map->block_bytes());
  EXPECT_EQ(numbers.bytes_reserved, 0u);
  EXPECT_EQ(numbers.pinned_bytes, 0u);
  EXPECT_TRUE(w_.Audit().ok()) << w_.Audit();
  w_.table->FinishSeal(tasks[0].serial, w_.sealer.Seal(tasks[0]));
  EXPECT_THAT(w_.SealAll(), ElementsAre(SealOutcome::kSealed));
  EXPECT_EQ(w_.store.Present(longer_), 4u);
  EXPECT_EQ(w_.table->Numbers().closing, 0u);
  EXPECT_EQ(w_.table->Numbers().bytes_used, 0u);
}

TEST_F(SequenceSealTest, AClosedOneIsPublishedForAShortWhileOnly) {
  const SequenceId id = w_.Open(prompt_);
  ASSERT_TRUE(w_.Append(id, 8, more_).ok());
  const std::vector<SealTask> tasks = w_.table->TakeSeals(8);
  w_.table->Close("t", {id});
  w_.store.Advance(absl::Seconds(5));
  w_.table->Tick();
  EXPECT_EQ(w_.table->Numbers().closing, 0u);
  EXPECT_EQ(w_.table->Numbers().bytes_used, w_.map->block_bytes());  // That is being read.
  w_.table->FinishSeal(tasks[0].serial, w_.sealer.Seal(tasks[0]));
  EXPECT_EQ(w_.table->Numbers().bytes_used, 0u);
  EXPECT_EQ(w_.store.Present(longer_), 3u);
}

TEST_F(SequenceSealTest, AClosedOneGivesWayToWhoNeedsItsRoom) {
  const SequenceId id = w_.Open(prompt_, {.reserve_tokens = 8});
  ASSERT_TRUE(w_.Append(id, 8, more_).ok());
  w_.table->Close("t", {id});
  EXPECT_EQ(w_.table->Numbers().closing, 1u);
  // All of the tenant's share, which those two pages are a part of.
  const auto all = w_.TryOpen(prompt_, {.first_block = 2, .reserve_tokens = 4 * 74});
  EXPECT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(w_.table->Numbers().closing, 0u);
  EXPECT_THAT(w_.SealAll(), IsEmpty());
}

TEST_F(SequenceSealTest, BehindAClearNothingOfAClosedOneIsPublished) {
  const SequenceId id = w_.Open(prompt_, {.blocks_max = 0, .reserve_tokens = 16});
  ASSERT_TRUE(w_.Append(id, 0, longer_.tokens).ok());
  const BlockKey scope = w_.store.Plan(prompt_).scope_digest;
  const std::vector<SealTask> tasks = w_.table->TakeSeals(8);
  w_.table->Close("t", {id});
  ASSERT_TRUE(w_.store.store->ClearScope("t", w_.fingerprint, scope).ok());
  const SealOutcome outcome = w_.sealer.Seal(tasks[0]);
  EXPECT_EQ(outcome, SealOutcome::kInProgress);
  w_.table->FinishSeal(tasks[0].serial, outcome);
  EXPECT_THAT(w_.SealAll(), IsEmpty());
  EXPECT_EQ(w_.store.Present(longer_), 0u);
  EXPECT_EQ(w_.table->Numbers().closing, 0u);
}

TEST_F(SequenceSealTest, NothingFromBeforeARetirementIsPublishedBehindIt) {
  const SequenceId id = w_.Open(prompt_, {.first_block = 0, .blocks_max = 0});
  std::vector<uint32_t> tokens = longer_.tokens;
  ASSERT_TRUE(w_.Append(id, 0, tokens).ok());
  const std::vector<SealTask> tasks = w_.table->TakeSeals(8);
  ASSERT_THAT(tasks, SizeIs(1));
  ASSERT_TRUE(w_.store.store->RetireNamespace(w_.fingerprint).ok());
  w_.store.Register(w_.fields);
  const SealOutcome outcome = w_.sealer.Seal(tasks[0]);
  EXPECT_EQ(outcome, SealOutcome::kRefused);
  w_.table->FinishSeal(tasks[0].serial, outcome);
  EXPECT_EQ(w_.store.Present(longer_), 0u);
  EXPECT_THAT(w_.SealAll(), IsEmpty());
}

TEST_F(SequenceSealTest, WithoutRoomForACopyItWaits) {
  const SequenceId id = w_.Open(prompt_, {.reserve_tokens = 8});
  ASSERT_TRUE(w_.Append(id, 8, more_).ok());
  std::vector<SequenceId> greedy;
  for (const char* tenant : {"u", "v", "t"}) {
    for (uint64_t wish = 100; wish > 0; --wish) {
      const auto opened =
          w_.TryOpen(prompt_, {.first_block = 2, .reserve_tokens = wish * 4, .tenant = tenant});
      if (opened.ok()) w_.table->Find(tenant, opened->id).IgnoreError();
    }
  }
  EXPECT_THAT(w_.SealAll(), IsEmpty());
  EXPECT_EQ(w_.table->Numbers().seals_no_room, 1u);
  w_.store.Advance(absl::Seconds(2));
  EXPECT_THAT(w_.SealAll(), IsEmpty());
  EXPECT_EQ(w_.table->Numbers().seals_no_room, 2u);
  w_.store.Advance(absl::Seconds(30));
  EXPECT_TRUE(w_.table->Find("t", id).ok());
  w_.store.Advance(absl::Seconds(40));  // The others are idle for too long.
  w_.table->Tick();
  EXPECT_EQ(w_.table->Numbers().running, 1u);
  EXPECT_THAT(w_.SealAll(), SizeIs(2));
}

TEST_F(SequenceSealTest, ABlockThatWasGivenBackEndsTheSeals) {
  const SequenceId id = w_.Open(prompt_);
  ASSERT_TRUE(w_.Append(id, 8, more_).ok());
  const std::vector<SealTask> tasks = w_.table->TakeSeals(8);
  ASSERT_THAT(tasks, SizeIs(1));
  ASSERT_EQ(*w_.table->ReleaseWindow("t", id, 16, 0), 4u);
  w_.table->FinishSeal(tasks[0].serial, w_.sealer.Seal(tasks[0]));
  EXPECT_EQ(w_.store.Present(longer_), 3u);
  EXPECT_THAT(w_.SealAll(), IsEmpty());
  EXPECT_TRUE(w_.Append(id, 16, {1, 2, 3, 4}).ok());
  EXPECT_THAT(w_.SealAll(), IsEmpty());
}

}  // namespace
}  // namespace cairn::node
