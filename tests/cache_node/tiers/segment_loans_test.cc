// A pool of sixteen one-page segments of which some are lent, driven step by step: what a reader
// sees of generations, and what has to happen before lent memory is made anew.

#include "cache_node/tiers/segment_loans.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "cache_node/tiers/host_memory.h"

namespace cairn::node {
namespace {

constexpr TenantIndex kAlice = 1;
constexpr TenantIndex kBob = 2;
constexpr BorrowerId kReader = 7;
constexpr BorrowerId kOther = 8;

class SegmentLoansTest : public ::testing::Test {
 protected:
  SegmentLoansTest() {
    absl::StatusOr<std::unique_ptr<HostMemory>> memory =
        HostMemory::Create(HostMemory::kSegmentsAtLeast * 4 * page_bytes_);
    EXPECT_TRUE(memory.ok()) << memory.status();
    memory_ = *std::move(memory);
    slot_ = *memory_->Allocate(slot_class_);
  }

  uint64_t Id() const { return memory_->Info(slot_.segment).id; }
  HostMemory::Loan Lend(BorrowerId borrower) {
    EXPECT_TRUE(memory_->CanLend(slot_.segment, Id()));
    if (!memory_->HasGenerations(slot_.segment)) {
      auto page = MemorySegment::Make(GenerationPage::BytesFor(4));
      EXPECT_TRUE(page.ok()) << page.status();
      memory_->GiveGenerations(slot_.segment, std::make_unique<GenerationPage>(*std::move(page)));
    }
    return memory_->Lend(slot_.segment, borrower, borrower == kOther ? kBob : kAlice);
  }
  // As a reader in another process maps it.
  static const uint64_t* MapGenerations(const HostMemory::Loan& loan) {
    void* mapping = mmap(nullptr, loan.generations->bytes().size(), PROT_READ, MAP_SHARED,
                         loan.generations->fd(), 0);
    EXPECT_NE(mapping, MAP_FAILED);
    return static_cast<const uint64_t*>(mapping);
  }
  void FreeAndRecall() {
    memory_->Free(slot_);
    memory_->Recall(slot_.segment);
  }

  const uint64_t page_bytes_ = MemorySegment::PageBytes();
  const SlotClass slot_class_{kAlice, MemorySegment::PageBytes()};
  std::unique_ptr<HostMemory> memory_;
  SlotRef slot_;
};

TEST_F(SegmentLoansTest, ReadersSeeTheGenerationOfEachSlotAndHowItRises) {
  const SlotRef second = *memory_->Allocate(slot_class_);
  ASSERT_EQ(second.segment, slot_.segment);
  memory_->Free(second);
  const uint64_t* seen = MapGenerations(Lend(kReader));
  EXPECT_EQ(seen[slot_.slot], memory_->Generation(slot_));
  EXPECT_EQ(seen[second.slot], memory_->Generation(second));
  const uint64_t before = seen[slot_.slot];
  memory_->Revoke(slot_);
  EXPECT_EQ(seen[slot_.slot], before + 1);
  memory_->Free(slot_);
  EXPECT_EQ(seen[slot_.slot], before + 2);
  EXPECT_EQ(*memory_->Allocate(slot_class_), slot_);
  EXPECT_EQ(seen[slot_.slot], before + 2);
}

TEST_F(SegmentLoansTest, WhatIsLentCannotBeWrittenByWhoeverGetsIt) {
  const HostMemory::Loan loan = Lend(kReader);
  for (const MemorySegment* memory : {loan.memory, loan.generations}) {
    const int fd = memory->OpenForReading();
    ASSERT_GE(fd, 0);
    EXPECT_EQ(mmap(nullptr, page_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    EXPECT_EQ(errno, EACCES);
    EXPECT_EQ(pwrite(fd, "x", 1, 0), -1);
    // It is opened anew for writing, as a hostile reader would: the seals keep it.
    const int again = open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDWR);
    if (again >= 0) {
      EXPECT_EQ(mmap(nullptr, page_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0),
                MAP_FAILED);
      EXPECT_EQ(fallocate(again, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
      EXPECT_EQ(pwrite(again, "x", 1, 0), -1);
      close(again);
    }
    close(fd);
  }
}

TEST_F(SegmentLoansTest, StagingMemoryCanBeWrittenAndNotResized) {
  auto staging = MemorySegment::Make(page_bytes_, MemorySegment::Writers::kAnyHolder);
  ASSERT_TRUE(staging.ok()) << staging.status();
  void* mapping =
      mmap(nullptr, page_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, (*staging)->fd(), 0);
  ASSERT_NE(mapping, MAP_FAILED);
  static_cast<uint8_t*>(mapping)[5] = 0x77;
  EXPECT_EQ((*staging)->bytes()[5], 0x77);
  EXPECT_EQ(ftruncate((*staging)->fd(), 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(fcntl((*staging)->fd(), F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  munmap(mapping, page_bytes_);
}

TEST_F(SegmentLoansTest, ASegmentOfSmallSlotsIsNotLent) {
  const SlotRef small = *memory_->Allocate({kAlice, 1024});
  EXPECT_FALSE(memory_->CanLend(small.segment, memory_->Info(small.segment).id));
}

TEST_F(SegmentLoansTest, ARecalledSegmentIsAwayUntilItsLastBorrowerGaveItBack) {
  Lend(kReader);
  Lend(kReader);  // Asked for twice is one loan.
  Lend(kOther);
  const uint64_t id = Id();
  const uint64_t pool_bytes = memory_->pool_bytes();
  FreeAndRecall();
  EXPECT_TRUE(memory_->Info(slot_.segment).away);
  EXPECT_FALSE(memory_->Info(slot_.segment).missing);
  EXPECT_EQ(memory_->pool_bytes(), pool_bytes - 4 * page_bytes_);
  EXPECT_EQ(memory_->loans().counts().recalled_bytes, 4 * page_bytes_);
  EXPECT_EQ(memory_->TakeRecalls().size(), 2u);
  EXPECT_TRUE(memory_->TakeRecalls().empty());

  EXPECT_TRUE(memory_->Return(kReader, {id}).empty());
  EXPECT_TRUE(memory_->Return(kReader, {id}).empty()) << "said twice";
  EXPECT_TRUE(memory_->Info(slot_.segment).away);
  EXPECT_EQ(memory_->Return(kOther, {id, 12345}).size(), 1u);
  EXPECT_TRUE(memory_->Info(slot_.segment).missing);
  EXPECT_EQ(memory_->loans().counts().recalled_bytes, 0u);

  memory_->BeginRemake(slot_.segment);
  auto made = HostMemory::MakeSegment(memory_->SegmentBytes(slot_.segment));
  ASSERT_TRUE(made.ok());
  memory_->FinishRemake(slot_.segment, *std::move(made));
  EXPECT_EQ(memory_->pool_bytes(), pool_bytes);
  EXPECT_GT(memory_->Info(slot_.segment).id, id);
  EXPECT_FALSE(memory_->Info(slot_.segment).lent);
}

TEST_F(SegmentLoansTest, ABorrowerThatIsGoneKeepsItsMemoryAsUnreturned) {
  Lend(kReader);
  Lend(kOther);
  EXPECT_TRUE(memory_->Gone(kReader));
  EXPECT_FALSE(memory_->Gone(99)) << "it never had anything";
  FreeAndRecall();
  const std::vector<SegmentRecall> recalls = memory_->TakeRecalls();
  ASSERT_EQ(recalls.size(), 1u) << "nobody is asked who is gone";
  EXPECT_EQ(recalls[0].borrower, kOther);
  EXPECT_EQ(memory_->loans().recalls(), 1u);
  EXPECT_TRUE(memory_->ReturnAll(kOther).empty());
  EXPECT_EQ(memory_->loans().counts().unreturned_bytes, 4 * page_bytes_);
  EXPECT_EQ(memory_->loans().recalls(), 0u);
  // Its process has ended, or it has spoken.
  EXPECT_EQ(memory_->ReturnAll(kReader).size(), 1u);
  EXPECT_EQ(memory_->loans().counts().unreturned_bytes, 0u);
  EXPECT_TRUE(memory_->Info(slot_.segment).missing);
}

TEST_F(SegmentLoansTest, WhatIsAwayIsKnownByWhoseBorrowersHaveIt) {
  Lend(kReader);
  Lend(kOther);
  EXPECT_EQ(memory_->loans().AwayFor(kAlice), 0u) << "lent, and not wanted back";
  FreeAndRecall();
  EXPECT_EQ(memory_->loans().AwayFor(kAlice), 4 * page_bytes_);
  EXPECT_EQ(memory_->loans().AwayFor(kBob), 4 * page_bytes_);
  memory_->ReturnAll(kOther);
  EXPECT_TRUE(memory_->Gone(kReader));
  EXPECT_EQ(memory_->loans().AwayFor(kAlice), 4 * page_bytes_);
  EXPECT_EQ(memory_->loans().AwayFor(kBob), 0u);
}

TEST_F(SegmentLoansTest, OneThatGoesWhileItIsAskedCountsAsUnreturnedFromThenOn) {
  Lend(kReader);
  FreeAndRecall();
  EXPECT_EQ(memory_->loans().counts().recalled_bytes, 4 * page_bytes_);
  EXPECT_TRUE(memory_->Gone(kReader));
  EXPECT_EQ(memory_->loans().counts().recalled_bytes, 0u);
  EXPECT_EQ(memory_->loans().counts().unreturned_bytes, 4 * page_bytes_);
}

TEST_F(SegmentLoansTest, ALentSegmentGoesOnBeingUsedAndGivenBackWithoutBeingAway) {
  Lend(kReader);
  memory_->Free(slot_);
  EXPECT_EQ(*memory_->Allocate(slot_class_), slot_);
  EXPECT_TRUE(memory_->ReturnAll(kReader).empty());
  EXPECT_FALSE(memory_->Info(slot_.segment).lent);
  EXPECT_EQ(memory_->Info(slot_.segment).slots_used, 1u);
}

}  // namespace
}  // namespace cairn::node
