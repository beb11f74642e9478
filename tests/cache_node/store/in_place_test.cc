// Shares that are read in place, and memory segments that readers have, on a small store with a
// fake clock: a reader is a borrower's number and the places that it was answered.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "common/base/check.h"
#include "common/identity/segment_digest.h"
#include "tests/cache_node/store/test_store.h"

namespace cairn::node {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kBlockBytes = 4096;  // One a memory segment, 16 in the pool.
constexpr BorrowerId kReader = 5;

TestStoreOptions WholePoolMayBeReserved() {
  TestStoreOptions options;
  options.store.reserved_bytes_max = options.pool_bytes;
  return options;
}

class InPlaceTest : public ::testing::Test {
 protected:
  InPlaceTest() : t_(WholePoolMayBeReserved()) {
    t_.Register(TestStore::Shape(kBlockBytes));
    t_.Register(TestStore::Shape(kBlockBytes), "u");
    prompt_ = t_.Prompt("t", 1, 4);
    CAIRN_CHECK(t_.Put(prompt_) == 4);
  }

  LeaseId Lease(const TestPrompt& prompt, uint32_t readers = 1) {
    const LookupAnswer answer = t_.Lease(prompt, readers);
    CAIRN_CHECK(answer.lease.has_value());
    return *answer.lease;
  }
  absl::StatusOr<InPlaceAnswer> Read(const LeaseId& lease, uint32_t reader = 0, bool hold = true) {
    return t_.store->ReadInPlace("t", lease, reader, prompt_.keys, 1000, hold);
  }
  std::vector<InPlaceBlock> Hold(const LeaseId& lease, uint32_t reader = 0) {
    const absl::StatusOr<InPlaceAnswer> answer = Read(lease, reader);
    CAIRN_CHECK_OK(answer.status());
    return answer->blocks;
  }
  // Maps the block's segment as a reader does; the page of generations first.
  const uint64_t* Map(const InPlaceBlock& block, const uint8_t** bytes) {
    const absl::StatusOr<LentSegment> lent = t_.store->LendSegment("t", block, kReader);
    CAIRN_CHECK_OK(lent.status());
    *bytes = static_cast<const uint8_t*>(
        mmap(nullptr, lent->bytes, PROT_READ, MAP_SHARED, lent->memory_fd, 0));
    return static_cast<const uint64_t*>(mmap(nullptr, lent->slots * sizeof(uint64_t), PROT_READ,
                                             MAP_SHARED, lent->generations_fd, 0));
  }
  // Another tenant's blocks want the whole pool.
  std::vector<ReserveOutcome> OtherTakesThePool(uint32_t seed) {
    const auto answer = t_.Reserve(t_.Prompt("u", seed, 16));
    CAIRN_CHECK_OK(answer.status());
    if (answer->token.has_value()) CAIRN_CHECK_OK(t_.store->Abort("u", *answer->token));
    return answer->outcomes;
  }
  void Audit() { EXPECT_TRUE(t_.store->Audit().ok()) << t_.store->Audit(); }

  TestStore t_;
  TestPrompt prompt_;
};

TEST_F(InPlaceTest, APlaceLeadsToTheBytesOfItsBlock) {
  const std::vector<InPlaceBlock> places = Hold(Lease(prompt_));
  ASSERT_EQ(places.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(places[i].state, BlockState::kHost);
    ASSERT_TRUE(places[i].lendable);
    const uint8_t* bytes = nullptr;
    const uint64_t* generations = Map(places[i], &bytes);
    EXPECT_EQ(generations[places[i].slot], places[i].generation);
    const std::vector<uint8_t> expected = t_.Bytes(prompt_.keys[i], {}, 1);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), bytes + places[i].slot * kBlockBytes));
  }
  Audit();
}

TEST_F(InPlaceTest, AShareReadInPlaceHasNoTimeToLiveAndEndsWithItsReader) {
  const LeaseId lease = Lease(prompt_);
  Hold(lease);
  t_.Advance(absl::Hours(2));
  EXPECT_EQ(t_.store->Status().leases, 1u);
  EXPECT_EQ(t_.store->Status().pinned_bytes, 4 * kBlockBytes);
  t_.store->CloseShare("t", lease, 0);
  EXPECT_EQ(t_.store->Status().pinned_bytes, 0u);
  const auto status = t_.store->GetLease("t", lease);
  ASSERT_TRUE(status.ok());
  EXPECT_TRUE(status->complete);
  EXPECT_THAT(status->usable_blocks, ElementsAre(0u));
  t_.store->CloseShare("t", lease, 0);
  EXPECT_TRUE(t_.Quiet().ok()) << t_.Quiet();
}

TEST_F(InPlaceTest, OfTwoReadersTheOneThatIsGoneCountsZeroAndTheOtherKeepsTheBlocks) {
  const LeaseId lease = Lease(prompt_, 2);
  Hold(lease, 0);
  Hold(lease, 1);
  t_.store->CloseShare("t", lease, 0);
  EXPECT_EQ(t_.store->Status().pinned_bytes, 4 * kBlockBytes);
  const auto ended = t_.store->EndLease("t", lease, 1, {4});
  ASSERT_TRUE(ended.ok());
  EXPECT_TRUE(ended->complete);
  EXPECT_THAT(ended->usable_blocks, ElementsAre(0u));
  t_.AdvancePastEverything();
  EXPECT_TRUE(t_.Quiet().ok()) << t_.Quiet();
}

TEST_F(InPlaceTest, ACopyTakesPlacesAndLeavesTheShareItsTime) {
  const LeaseId lease = Lease(prompt_);
  ASSERT_TRUE(Read(lease, 0, /*hold=*/false).ok());
  t_.Advance(absl::Seconds(11));
  EXPECT_EQ(t_.store->Status().leases, 0u);
  EXPECT_EQ(Read(lease, 0, false).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Read(lease).status().code(), absl::StatusCode::kAborted);
}

TEST_F(InPlaceTest, OnlyTheLeasesTenantAndReadersGetPlaces) {
  const LeaseId lease = Lease(prompt_);
  EXPECT_EQ(t_.store->ReadInPlace("u", lease, 0, prompt_.keys, 1000, true).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(Read(lease, 1).status().code(), absl::StatusCode::kInvalidArgument);
  const TestPrompt other = t_.Prompt("t", 2, 1);
  ASSERT_EQ(t_.Put(other), 1u);
  const auto answer = t_.store->ReadInPlace("t", lease, 0, other.keys, 1000, true);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->blocks[0].state, BlockState::kNotLeased);
}

TEST_F(InPlaceTest, AnAnswerStopsAtItsDigestsButForTheFirstBlock) {
  const LeaseId lease = Lease(prompt_);
  EXPECT_EQ(t_.store->ReadInPlace("t", lease, 0, prompt_.keys, 2, true)->blocks.size(), 2u);
  EXPECT_EQ(t_.store->ReadInPlace("t", lease, 0, prompt_.keys, 0, true)->blocks.size(), 1u);
}

TEST_F(InPlaceTest, WhatIsDeletedUnderAReaderChangesItsGenerationAtOnce) {
  const LeaseId lease = Lease(prompt_);
  // Another pin keeps the slot, so that it is not freed.
  const BlockPin pin = t_.Pin("t", prompt_.keys[3]);
  const std::vector<InPlaceBlock> places = Hold(lease);
  const uint8_t* bytes = nullptr;
  const uint64_t* generations = Map(places[3], &bytes);
  EXPECT_EQ(generations[places[3].slot], places[3].generation);
  ASSERT_TRUE(t_.store->Delete("t", t_.fingerprint(), {prompt_.keys[3]}).ok());
  EXPECT_GT(generations[places[3].slot], places[3].generation);
  Audit();
}

TEST_F(InPlaceTest, EvictionAndReuseChangeTheGenerationBeforeTheNewBytes) {
  const LeaseId lease = Lease(prompt_);
  const std::vector<InPlaceBlock> places = Hold(lease);
  const uint8_t* bytes = nullptr;
  const uint64_t* generations = Map(places[3], &bytes);
  t_.store->CloseShare("t", lease, 0);
  EXPECT_EQ(generations[places[3].slot], places[3].generation) << "nobody took it yet";
  // As many others of the same tenant as the pool holds.
  ASSERT_EQ(t_.Put(t_.Prompt("t", 9, 16)), 16u);
  EXPECT_GT(generations[places[3].slot], places[3].generation);
}

TEST_F(InPlaceTest, AnotherTenantWaitsForTheMemoryThatAReaderHas) {
  const LeaseId lease = Lease(prompt_);
  const std::vector<InPlaceBlock> places = Hold(lease);
  const uint8_t* bytes = nullptr;
  Map(places[0], &bytes);
  EXPECT_EQ(t_.store->Loans().lent_segments, 1u);
  t_.store->CloseShare("t", lease, 0);
  // Fifteen segments are made anew for it at once; the sixteenth is asked for.
  EXPECT_EQ(OtherTakesThePool(1).back(), ReserveOutcome::kNoSpace);
  EXPECT_EQ(t_.store->Loans().recalled_bytes, kBlockBytes);
  const std::vector<SegmentRecall> recalls = t_.store->TakeRecalls();
  ASSERT_EQ(recalls.size(), 1u);
  EXPECT_EQ(recalls[0].borrower, kReader);
  EXPECT_EQ(recalls[0].segment, places[0].segment_id);
  EXPECT_EQ(OtherTakesThePool(2).back(), ReserveOutcome::kNoSpace) << "it waits";
  // What the reader maps is the old memory still.
  const std::vector<uint8_t> expected = t_.Bytes(prompt_.keys[0], {}, 1);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), bytes));

  t_.store->ReturnSegments(kReader, {places[0].segment_id});
  EXPECT_EQ(OtherTakesThePool(3).back(), ReserveOutcome::kReserved);
  EXPECT_EQ(t_.store->Loans().lent_segments, 0u);
  Audit();
}

TEST_F(InPlaceTest, MemoryOfAReaderThatIsGoneIsUnreturnedAndThePoolIsSmallerByIt) {
  const LeaseId lease = Lease(prompt_);
  const std::vector<InPlaceBlock> places = Hold(lease);
  const uint8_t* bytes = nullptr;
  Map(places[0], &bytes);
  const uint64_t pool_bytes = t_.store->Status().host_bytes;
  t_.store->CloseShare("t", lease, 0);
  EXPECT_TRUE(t_.store->BorrowerGone(kReader));
  EXPECT_EQ(OtherTakesThePool(1).back(), ReserveOutcome::kNoSpace);
  EXPECT_TRUE(t_.store->TakeRecalls().empty());
  EXPECT_EQ(t_.store->Loans().unreturned_bytes, kBlockBytes);
  EXPECT_EQ(t_.store->Status().host_bytes, pool_bytes - kBlockBytes);
  t_.store->ReturnAllSegments(kReader);
  EXPECT_EQ(t_.store->Loans().unreturned_bytes, 0u);
  EXPECT_EQ(OtherTakesThePool(2).back(), ReserveOutcome::kReserved);
  EXPECT_EQ(t_.store->Status().host_bytes, pool_bytes);
  Audit();
}

TEST_F(InPlaceTest, MemoryThatChangedHandsIsNotLentUnderItsOldName) {
  const LeaseId lease = Lease(prompt_);
  const std::vector<InPlaceBlock> places = Hold(lease);
  t_.store->CloseShare("t", lease, 0);
  EXPECT_EQ(OtherTakesThePool(1).back(), ReserveOutcome::kReserved);
  EXPECT_EQ(t_.store->LendSegment("t", places[0], kReader).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(InPlaceTest, StagedBytesCountAsTheyLandedAndTheirWriterLearnsTheirDigests) {
  const TestPrompt prompt = t_.Prompt("t", 7, 1);
  const auto reserved = t_.Reserve(prompt);
  ASSERT_TRUE(reserved.ok() && reserved->token.has_value());
  const WritePiece right = t_.Piece(prompt.keys[0], 0, {}, 1);
  WritePiece unhashed = right;
  unhashed.unhashed = true;
  unhashed.run.digests.assign(1, 0);
  const std::vector<uint8_t> bytes = t_.Bytes(prompt.keys[0], {}, 1);
  auto claim = t_.store->BeginWrite("t", *reserved->token, 1, unhashed);
  ASSERT_TRUE(claim.ok());
  const auto landed = t_.store->LandStaged(*std::move(claim), bytes);
  ASSERT_TRUE(landed.ok()) << landed.status();
  EXPECT_THAT(*landed, ElementsAre(right.run.digests[0]));

  // The same again is fine, others are not, with and without digests.
  auto again = t_.store->BeginWrite("t", *reserved->token, 1, unhashed);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->already_in());
  EXPECT_TRUE(t_.store->LandStaged(*std::move(again), bytes).ok());
  std::vector<uint8_t> others = bytes;
  others[9] ^= 1;
  auto other = t_.store->BeginWrite("t", *reserved->token, 1, unhashed);
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(t_.store->LandStaged(*std::move(other), others).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_TRUE(t_.CommitBlock("t", *reserved->token, prompt.keys[0], 0)->complete);
  EXPECT_TRUE(t_.Intact(t_.Pin("t", prompt.keys[0]), prompt.keys[0]));
}

TEST(StagedWriteTest, AWriterThatScribblesMeanwhileGetsTheDigestOfWhatLanded) {
  constexpr uint64_t kLargeBytes = 1 << 20;
  TestStoreOptions options;
  options.pool_bytes = 16 * kLargeBytes;
  TestStore t(std::move(options));
  t.Register(TestStore::Shape(kLargeBytes));
  auto staging = MemorySegment::Make(kLargeBytes, MemorySegment::Writers::kAnyHolder);
  ASSERT_TRUE(staging.ok()) << staging.status();
  // As another process has it: mapped again.
  auto* theirs = static_cast<uint8_t*>(
      mmap(nullptr, kLargeBytes, PROT_READ | PROT_WRITE, MAP_SHARED, (*staging)->fd(), 0));
  std::atomic<uint64_t> passes{0};
  std::atomic<bool> stop{false};
  std::thread scribbler([&] {
    for (uint8_t value = 0; !stop; ++value, ++passes) {
      for (size_t i = 0; i < kLargeBytes; i += kLargeBytes / 8) {
        std::atomic_ref<uint8_t>(theirs[i]).store(value, std::memory_order_relaxed);
      }
    }
  });
  // As long as it takes for the other thread to have been at it all the while.
  for (uint32_t round = 0; round < 50 || passes < 100'000; ++round) {
    const TestPrompt prompt = t.Prompt("t", 10 + round, 1);
    const auto reserved = t.Reserve(prompt);
    ASSERT_TRUE(reserved.ok() && reserved->token.has_value());
    WritePiece piece{.run = {.digests = {0}}, .length = kLargeBytes, .unhashed = true};
    auto claim = t.store->BeginWrite("t", *reserved->token, 1, piece);
    ASSERT_TRUE(claim.ok()) << claim.status();
    const auto landed = t.store->LandStaged(*std::move(claim), (*staging)->bytes());
    ASSERT_TRUE(landed.ok()) << landed.status();
    const SegmentRun run{.digests = {landed->begin(), landed->end()}};
    ASSERT_TRUE(t.store->Commit("t", *reserved->token, {&run, 1})->complete);
    const BlockPin pin = t.Pin("t", prompt.keys[0]);
    EXPECT_EQ(SegmentDigest(prompt.keys[0], {}, pin.bytes()), (*landed)[0]) << "round " << round;
  }
  stop = true;
  scribbler.join();
  munmap(theirs, kLargeBytes);
}

TEST_F(InPlaceTest, StagedBytesWithoutTheWritersDigestLandNothing) {
  const TestPrompt prompt = t_.Prompt("t", 7, 1);
  const auto reserved = t_.Reserve(prompt);
  ASSERT_TRUE(reserved.ok() && reserved->token.has_value());
  const WritePiece piece = t_.Piece(prompt.keys[0], 0, {}, 1);
  std::vector<uint8_t> bytes = t_.Bytes(prompt.keys[0], {}, 1);
  bytes[0] ^= 1;
  auto claim = t_.store->BeginWrite("t", *reserved->token, 1, piece);
  ASSERT_TRUE(claim.ok());
  EXPECT_EQ(t_.store->LandStaged(*std::move(claim), bytes).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(t_.WriteBlock("t", *reserved->token, prompt.keys[0], 0).ok()) << "free to be written";
}

TEST_F(InPlaceTest, StagingMemoryIsChargedToItsTenantWithinItsQuota) {
  TenantQuotas quotas;
  quotas.others.host_bytes_max = 6 * kBlockBytes;
  t_.store->SetQuotas(quotas);
  EXPECT_FALSE(t_.store->ChargeStaging("t", kReader, 3 * kBlockBytes)) << "four blocks are there";
  EXPECT_TRUE(t_.store->ChargeStaging("t", kReader, 2 * kBlockBytes));
  Audit();
  t_.store->EndStaging(kReader);
  Audit();
  EXPECT_TRUE(t_.store->ChargeStaging("t", kReader, kBlockBytes));
  t_.store->EndStaging(kReader);
}

}  // namespace
}  // namespace cairn::node
