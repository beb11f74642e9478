// What an engine's loop is told of its transfers, whatever becomes of them.
#include "client/cpp/async/async_transfers.h"

#include <gmock/gmock.h>

#include <utility>

#include "client/cpp/async/layer_steps.h"
#include "tests/client/cpp/async/async_fixture.h"

namespace cairn::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kBlocks = 4;

TEST_F(AsyncTransfersTest, NothingIsToBePolledBeforeAnythingHappened) {
  EXPECT_FALSE(Readable(0));
  EXPECT_THAT(transfers_->Poll(8), IsEmpty());
  EXPECT_EQ(transfers_->open_count(), 0u);
}

TEST_F(AsyncTransfersTest, TheFirstLayerCanBeUsedBeforeTheLastArrived) {
  const Prompt prompt = MakePrompt(kBlocks);
  ASSERT_TRUE(Put(prompt).ok());
  const auto id = transfers_->Submit(Load(prompt.keys(), 1));
  ASSERT_TRUE(id.ok()) << id.status();

  const TransferEvent first = Next();
  EXPECT_EQ(first.steps_done, 1u);
  EXPECT_EQ(first.usable, kBlocks);
  EXPECT_FALSE(first.result.has_value());
  const std::vector<uint8_t> whole = Payload(prompt.keys());
  const ContiguousBlocks got(&handle_->payload_map(), absl::MakeSpan(buffer_));
  for (size_t block = 0; block < kBlocks; ++block) {
    const SegmentId id0{.group = 0, .slice = 0, .layer = 0};
    EXPECT_EQ(std::vector<uint8_t>(got(block, id0).begin(), got(block, id0).end()),
              SyntheticSegment(handle_->payload_map(), prompt.keys()[block], id0));
  }
  EXPECT_NE(buffer_, whole);

  gate_.Notify();
  const LoadResult result = LoadedBy(*id);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.usable_prefix, kBlocks);
  EXPECT_EQ(result.bytes_verified, buffer_.size());
  EXPECT_EQ(buffer_, whole);
  EXPECT_EQ(transfers_->open_count(), 0u);
  EXPECT_FALSE(Readable(0));
}

TEST_F(AsyncTransfersTest, ABlockThatLosesALayerIsNotUsedAndNothingBehindIt) {
  const Prompt prompt = MakePrompt(kBlocks);
  ASSERT_TRUE(Put(prompt).ok());
  ReadLease lease = Lease(prompt);
  node_->BendGet([](FakeNode::Frames* frames) {
    for (v1::GetResponse& frame : *frames) {
      for (const v1::Piece& piece : frame.pieces()) {
        if (piece.block() == 2 && piece.layer() == 1) frame.mutable_payload()->front() ^= 1;
      }
    }
  });
  LoadTransfer load = Load(prompt.keys());
  // The bent byte is the frame's first: so that it is block 2's, that one comes alone.
  load.keys = {prompt.keys()[0], prompt.keys()[1], prompt.keys()[2]};
  load.lease = std::move(lease);
  const auto id = transfers_->Submit(std::move(load));
  ASSERT_TRUE(id.ok()) << id.status();
  const LoadResult result = LoadedBy(*id);
  EXPECT_LT(result.usable_prefix, 3u);
  EXPECT_FALSE(result.mismatches.empty());
  // What the share says is what the engine was told.
  ASSERT_THAT(node_->ended(), SizeIs(1));
  EXPECT_EQ(node_->ended().front().usable_blocks(0), result.usable_prefix);
}

TEST_F(AsyncTransfersTest, OfASlidingGroupOnlyTheWindowIsFetched) {
  Namespace fields = TwoGroups();
  fields.layout.groups[1].kind = GroupKind::kSlidingWindow;
  fields.layout.groups[1].required = 1;
  fields.layout.groups[1].window_tokens = fields.layout.block_tokens;
  transfers_.reset();
  Use(fields);
  Start({.threads = 1, .transfers_max = 16});
  const Prompt prompt = MakePrompt(kBlocks);
  ASSERT_TRUE(Put(prompt).ok());
  LoadTransfer load = Load(prompt.keys());
  load.steps = *LoadStepsByLayer(handle_->payload_map(), {}, 0);
  EXPECT_EQ(LoadedBy(*transfers_->Submit(std::move(load))).usable_prefix, kBlocks);
  const ContiguousBlocks got(&handle_->payload_map(), absl::MakeSpan(buffer_));
  for (size_t block = 0; block < kBlocks; ++block) {
    const SegmentId full{.group = 0, .slice = 0, .layer = 0};
    EXPECT_TRUE(
        IsSyntheticSegment(handle_->payload_map(), prompt.keys()[block], full, got(block, full)));
    const SegmentId sliding{.group = 1, .slice = 0, .layer = 0};
    EXPECT_EQ(got(block, sliding).front() == kSentinel, block + 1 < kBlocks) << block;
  }
}

TEST_F(AsyncTransfersTest, AStoreFollowsTheLayersAsTheyAreComputed) {
  const Prompt prompt = MakePrompt(kBlocks);
  const auto store = transfers_->Submit(Store(prompt, 0));
  ASSERT_TRUE(store.ok()) << store.status();
  // By the time that another transfer is through, the one thread has been past the store.
  const auto lookup = transfers_->Submit(LookupTransfer{*handle_, {prompt}});
  const auto found = std::get<absl::StatusOr<LookupAnswer>>(ResultOf(*lookup));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(node_->Calls("Write"), 0);

  transfers_->SourceReady(*store, 1);
  EXPECT_EQ(Next().steps_done, 1u);
  EXPECT_EQ(node_->blocks_present(), 0u);
  transfers_->SourceReady(*store, static_cast<uint32_t>(Steps().size()));
  const StoreResult result = StoredBy(*store);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.blocks_present, kBlocks);
  EXPECT_EQ(result.bytes_written, stored_.size());
  EXPECT_EQ(Get(prompt.keys()).usable_prefix, kBlocks);
  EXPECT_EQ(buffer_, stored_);
  EXPECT_EQ(node_->Calls("Abort"), 0);
}

TEST_F(AsyncTransfersTest, TwoRanksStoreIntoOneReservation) {
  const Prompt prompt = MakePrompt(kBlocks);
  const auto reserve = transfers_->Submit(ReserveTransfer{*handle_, prompt, 0, kBlocks});
  ASSERT_TRUE(reserve.ok()) << reserve.status();
  auto session = std::get<absl::StatusOr<WriteSession>>(ResultOf(*reserve));
  ASSERT_TRUE(session.ok()) << session.status();
  stored_ = Payload(prompt.keys());
  const ContiguousBlocks source(&handle_->payload_map(), absl::MakeSpan(stored_));
  std::vector<LayerStep> halves[2];
  for (size_t i = 0; i < Steps().size(); ++i) halves[i % 2].push_back(Steps()[i]);

  StoreTransfer second{.session = client_->AttachWrite(*handle_, session->ticket()),
                       .source = source,
                       .steps = halves[1],
                       .steps_ready = UINT32_MAX};
  StoreTransfer first{.session = *std::move(session),
                      .source = source,
                      .steps = halves[0],
                      .steps_ready = UINT32_MAX};
  const StoreResult half = StoredBy(*transfers_->Submit(std::move(first)));
  EXPECT_TRUE(half.status.ok()) << half.status;
  EXPECT_FALSE(half.complete);
  // The rank that reserved is through, and has not taken the token along.
  const StoreResult whole = StoredBy(*transfers_->Submit(std::move(second)));
  EXPECT_TRUE(whole.complete) << whole.status;
  EXPECT_EQ(node_->blocks_present(), kBlocks);
}

TEST_F(AsyncTransfersTest, CancellingAStoreThatWaitsEndsItsToken) {
  const Prompt prompt = MakePrompt(kBlocks);
  const auto id = transfers_->Submit(Store(prompt, 1));
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(Next().steps_done, 1u);
  transfers_->Cancel(*id);
  EXPECT_EQ(StoredBy(*id).status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(node_->Calls("Abort"), 1);
  EXPECT_EQ(node_->blocks_present(), 0u);
  transfers_->Cancel(*id);  // It is over: nothing.
  transfers_->SourceReady(*id, 2);
  EXPECT_FALSE(Readable(0));
}

TEST_F(AsyncTransfersTest, CancellingALoadGivesItsShareBackAndTouchesNoMemoryAfterTheResult) {
  const Prompt prompt = MakePrompt(kBlocks);
  ASSERT_TRUE(Put(prompt).ok());
  LoadTransfer load = Load(prompt.keys(), 1);
  load.lease = Lease(prompt);
  const auto id = transfers_->Submit(std::move(load));
  EXPECT_EQ(Next().steps_done, 1u);
  transfers_->Cancel(*id);
  gate_.Notify();
  const LoadResult result = LoadedBy(*id);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(result.usable_prefix, 0u);
  ASSERT_THAT(node_->ended(), SizeIs(1));
  EXPECT_EQ(node_->ended().front().usable_blocks(0), 0u);
  EXPECT_LT(node_->gets().size(), Steps().size());
}

TEST_F(AsyncTransfersTest, ALoadThatTakesLongKeepsItsShare) {
  const Prompt prompt = MakePrompt(kBlocks);
  ASSERT_TRUE(Put(prompt).ok());
  for (const bool joined : {false, true}) {
    LoadTransfer load = Load(prompt.keys());
    load.lease = Lease(prompt);
    if (joined) {
      load.lease->Release();
      load.lease = client_->JoinLease(load.lease->id(), load.lease->reader(), 1);
    }
    const auto place = load.place;
    load.place = [this, place](size_t block, const SegmentId& id) {
      clock_.Advance(absl::Seconds(1));
      return place(block, id);
    };
    const int before = node_->Calls("RenewLease");
    EXPECT_EQ(LoadedBy(*transfers_->Submit(std::move(load))).usable_prefix, kBlocks);
    EXPECT_GE(node_->Calls("RenewLease"), before + 1) << joined;
  }
  LoadTransfer quick = Load(prompt.keys());
  quick.lease = Lease(prompt);
  const int before = node_->Calls("RenewLease");
  EXPECT_EQ(LoadedBy(*transfers_->Submit(std::move(quick))).usable_prefix, kBlocks);
  EXPECT_EQ(node_->Calls("RenewLease"), before);
}

TEST_F(AsyncTransfersTest, NothingIsLostWhenNothingIsTaken) {
  const Prompt prompt = MakePrompt(1);
  const auto id = transfers_->Submit(LookupTransfer{*handle_, {prompt}});
  ASSERT_TRUE(id.ok());
  EXPECT_TRUE(Readable(60'000));
  EXPECT_THAT(transfers_->Poll(0), IsEmpty());
  EXPECT_TRUE(Readable(0)) << "it is still to be polled";
  transfers_->Cancel(*id);
  EXPECT_THAT(transfers_->Poll(8), SizeIs(1));
  EXPECT_FALSE(Readable(0));
}

TEST_F(AsyncTransfersTest, ALongLoadLetsOthersThroughBetweenItsSteps) {
  const Prompt prompt = MakePrompt(kBlocks);
  ASSERT_TRUE(Put(prompt).ok());
  ASSERT_GE(Steps().size(), 2u);
  // Its first step ends when the lookup is in line, and the second one not before its result is
  // there.
  LoadTransfer held = Load(prompt.keys(), 0);
  absl::Notification looked_up;
  held.place = [place = std::move(held.place), &looked_up](size_t block, const SegmentId& id) {
    if (id.layer == 1) looked_up.WaitForNotification();
    return place(block, id);
  };
  const auto load = transfers_->Submit(std::move(held));
  const auto lookup = transfers_->Submit(LookupTransfer{*handle_, {prompt}});
  ASSERT_TRUE(load.ok() && lookup.ok());
  gate_.Notify();
  ResultOf(*lookup);
  looked_up.Notify();
  EXPECT_TRUE(LoadedBy(*load).status.ok());
}

TEST_F(AsyncTransfersTest, TheBoundIsSaidAndMakesRoomAgainWhenPolled) {
  Start({.threads = 1, .transfers_max = 2});
  const Prompt prompt = MakePrompt(1);
  const auto one = transfers_->Submit(LookupTransfer{*handle_, {prompt}});
  const auto two = transfers_->Submit(LookupTransfer{*handle_, {prompt}});
  ASSERT_TRUE(one.ok() && two.ok());
  const auto three = transfers_->Submit(LookupTransfer{*handle_, {prompt}});
  EXPECT_EQ(three.status().code(), absl::StatusCode::kResourceExhausted);
  ResultOf(*one);
  EXPECT_TRUE(transfers_->Submit(LookupTransfer{*handle_, {prompt}}).ok());
}

TEST_F(AsyncTransfersTest, WhatIsRefusedIsStillTheCallers) {
  Start({.threads = 1, .transfers_max = 1});
  const Prompt prompt = MakePrompt(kBlocks);
  const auto waiting = transfers_->Submit(LookupTransfer{*handle_, {prompt}});
  ASSERT_TRUE(waiting.ok());
  StoreTransfer store = Store(prompt, UINT32_MAX);
  EXPECT_EQ(transfers_->Submit(std::move(store)).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(node_->Calls("Abort"), 0) << "nothing was given up, and nobody was called";
  ResultOf(*waiting);
  EXPECT_TRUE(StoredBy(*transfers_->Submit(std::move(store))).complete);

  LoadTransfer load = Load(prompt.keys());
  load.lease = Lease(prompt);
  std::swap(load.steps.front().parts, load.steps.emplace_back().parts);  // One is empty.
  EXPECT_EQ(transfers_->Submit(std::move(load)).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(node_->ended(), IsEmpty());
  load.steps = Steps();
  EXPECT_EQ(LoadedBy(*transfers_->Submit(std::move(load))).usable_prefix, kBlocks);
}

TEST_F(AsyncTransfersTest, WhatMeansNothingIsRefusedAtOnce) {
  const Prompt prompt = MakePrompt(1);
  LoadTransfer no_steps = Load(prompt.keys());
  no_steps.steps.clear();
  EXPECT_EQ(transfers_->Submit(std::move(no_steps)).status().code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(Put(prompt).ok());
  // All is there, so nothing is reserved.
  EXPECT_EQ(transfers_->Submit(Store(prompt, 1)).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(transfers_->open_count(), 0u);
}

TEST_F(AsyncTransfersTest, ANodeThatIsGoneEndsEveryTransferWithItsStatus) {
  const Prompt prompt = MakePrompt(kBlocks);
  ASSERT_TRUE(Put(prompt).ok());
  StoreTransfer store = Store(MakePrompt(kBlocks, "other"), UINT32_MAX);
  node_->Stop();
  const auto load = transfers_->Submit(Load(prompt.keys()));
  const LoadResult loaded = LoadedBy(*load);
  EXPECT_EQ(loaded.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(loaded.usable_prefix, 0u);
  const StoreResult stored = StoredBy(*transfers_->Submit(std::move(store)));
  EXPECT_EQ(stored.status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(AsyncTransfersTest, DestructionGivesBackWhatIsQueuedAndWhatWaits) {
  const Prompt prompt = MakePrompt(kBlocks);
  ASSERT_TRUE(Put(prompt).ok());
  LoadTransfer held = Load(prompt.keys(), 0);
  held.lease = Lease(prompt);
  LoadTransfer queued = Load(prompt.keys());
  queued.lease = Lease(prompt);
  const Prompt other = MakePrompt(kBlocks, "other");
  const auto waiting = transfers_->Submit(Store(other, 1));
  EXPECT_EQ(Next().steps_done, 1u);
  ASSERT_TRUE(waiting.ok());
  ASSERT_TRUE(transfers_->Submit(std::move(held)).ok());
  ASSERT_TRUE(transfers_->Submit(std::move(queued)).ok());
  gate_.Notify();
  transfers_.reset();
  EXPECT_THAT(node_->ended(), SizeIs(2));
  EXPECT_EQ(node_->Calls("Abort"), 1);
}

TEST_F(AsyncTransfersTest, ManyThreadsDoManyTransfersWhole) {
  Start({.threads = 8, .transfers_max = 64});
  const Prompt prompt = MakePrompt(kBlocks);
  ASSERT_TRUE(Put(prompt).ok());
  const std::vector<uint8_t> whole = Payload(prompt.keys());
  std::vector<std::vector<uint8_t>> buffers(64, std::vector<uint8_t>(whole.size(), kSentinel));
  for (std::vector<uint8_t>& buffer : buffers) {
    LoadTransfer load = Load(prompt.keys());
    load.place = ContiguousBlocks(&handle_->payload_map(), absl::MakeSpan(buffer));
    ASSERT_TRUE(transfers_->Submit(std::move(load)).ok());
  }
  for (size_t ended = 0; ended < buffers.size();) {
    const TransferEvent event = Next();
    if (!event.result.has_value()) continue;
    ++ended;
    EXPECT_EQ(std::get<LoadResult>(*event.result).usable_prefix, kBlocks);
  }
  for (const std::vector<uint8_t>& buffer : buffers) EXPECT_EQ(buffer, whole);
}

}  // namespace
}  // namespace cairn::testing
