// A pool of sixteen small segments, driven step by step. What it has in common with a device's is
// in slot_pool_test.cc.

#include "cache_node/tiers/host_memory.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <set>

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

constexpr TenantIndex kAlice = 1;
constexpr TenantIndex kBob = 2;

class HostMemoryTest : public ::testing::Test {
 protected:
  HostMemoryTest() : memory_(MakePool(HostMemory::kSegmentsAtLeast * MemorySegment::PageBytes())) {}

  static std::unique_ptr<HostMemory> MakePool(uint64_t bytes) {
    absl::StatusOr<std::unique_ptr<HostMemory>> memory = HostMemory::Create(bytes);
    EXPECT_TRUE(memory.ok()) << memory.status();
    return *std::move(memory);
  }

  // A class with `slots` slots in a segment.
  SlotClass ClassOf(TenantIndex tenant, uint64_t slots) const {
    return {tenant, memory_->slot_bytes_max() / slots};
  }

  std::vector<SlotRef> AllocateAll(const SlotClass& slot_class) {
    std::vector<SlotRef> slots;
    while (std::optional<SlotRef> slot = memory_->Allocate(slot_class)) slots.push_back(*slot);
    return slots;
  }

  void Remake(uint32_t index) {
    memory_->BeginRemake(index).reset();
    auto made = HostMemory::MakeSegment(memory_->SegmentBytes(index));
    ASSERT_TRUE(made.ok()) << made.status();
    memory_->FinishRemake(index, *std::move(made));
  }

  std::unique_ptr<HostMemory> memory_;
};

TEST_F(HostMemoryTest, PoolIsCutIntoAtLeastSixteenEqualSegments) {
  EXPECT_EQ(memory_->segment_count(), 16u);
  EXPECT_EQ(memory_->slot_bytes_max(), MemorySegment::PageBytes());
  EXPECT_EQ(memory_->pool_bytes(), 16 * MemorySegment::PageBytes());
  std::set<uint64_t> ids;
  for (uint32_t i = 0; i < 16; ++i) {
    EXPECT_EQ(memory_->Info(i).index, i);
    EXPECT_EQ(memory_->Info(i).slot_class, SlotClass{});
    ids.insert(memory_->Info(i).id);
  }
  EXPECT_EQ(ids.size(), 16u);
}

TEST_F(HostMemoryTest, OddPoolLeavesNoPageOver) {
  const uint64_t page_bytes = MemorySegment::PageBytes();
  memory_ = MakePool(37 * page_bytes + 100);
  EXPECT_EQ(memory_->segment_count(), 16u);
  EXPECT_EQ(memory_->pool_bytes(), 37 * page_bytes);
  EXPECT_EQ(memory_->slot_bytes_max(), 2 * page_bytes);
  for (uint32_t i = 0; i < 16; ++i) {
    EXPECT_EQ(memory_->SegmentBytes(i), (i < 5 ? 3 : 2) * page_bytes);
  }
  const std::vector<SlotRef> slots = AllocateAll({kAlice, page_bytes});
  EXPECT_EQ(slots.size(), 37u);
  for (SlotRef slot : slots) memory_->Bytes(slot).back() = 1;
}

TEST_F(HostMemoryTest, PoolKeepsItsOddPagesThroughARemakeAndLosesThemWithOneThatFails) {
  const uint64_t page_bytes = MemorySegment::PageBytes();
  memory_ = MakePool(37 * page_bytes);
  Remake(0);
  EXPECT_EQ(memory_->pool_bytes(), 37 * page_bytes);
  memory_->BeginRemake(4).reset();
  memory_->FinishRemake(4, nullptr);
  EXPECT_EQ(memory_->pool_bytes(), 34 * page_bytes);
  EXPECT_EQ(AllocateAll({kAlice, page_bytes}).size(), 34u);
}

TEST_F(HostMemoryTest, PoolBelowSixteenPagesIsRefusedWithTheLeastThatWorks) {
  const uint64_t bytes_min = 16 * MemorySegment::PageBytes();
  const absl::Status status = HostMemory::Create(bytes_min - 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(bytes_min - 1)));
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(bytes_min)));
}

TEST_F(HostMemoryTest, KernelThatRefusesHalfwayIsAnErrorThatSaysHowFarItCame) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit lowered = before;
  lowered.rlim_cur = 30;  // The fixture holds sixteen already.
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &lowered), 0);
  const absl::Status status = HostMemory::Create(memory_->pool_bytes()).status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("of 16"));
}

TEST_F(HostMemoryTest, EmptiedSegmentKeepsItsClassUntilItIsRemade) {
  const SlotClass alice = ClassOf(kAlice, 1);
  const SlotClass bob = ClassOf(kBob, 1);
  for (SlotRef slot : AllocateAll(alice)) memory_->Free(slot);
  EXPECT_EQ(memory_->used_bytes(), 0u);
  EXPECT_EQ(memory_->Allocate(bob), std::nullopt);
  Remake(5);
  EXPECT_EQ(memory_->Allocate(bob), (SlotRef{5, 0}));
}

TEST_F(HostMemoryTest, RemadeSegmentIsZeroUnderANewId) {
  const SlotClass slot_class = ClassOf(kAlice, 1);
  const SlotRef slot = *memory_->Allocate(slot_class);
  for (uint8_t& byte : memory_->Bytes(slot)) byte = 0xcd;
  const uint64_t id = memory_->Info(slot.segment).id;
  const uint64_t generation = memory_->Generation(slot);
  memory_->Free(slot);
  Remake(slot.segment);
  for (uint32_t i = 0; i < 16; ++i) {
    EXPECT_TRUE(i == slot.segment || memory_->Info(i).id != memory_->Info(slot.segment).id);
  }
  EXPECT_NE(memory_->Info(slot.segment).id, id);
  EXPECT_EQ(memory_->Allocate(slot_class), slot);
  EXPECT_GT(memory_->Generation(slot), generation + 1);
  for (uint8_t byte : memory_->Bytes(slot)) ASSERT_EQ(byte, 0);
}

TEST_F(HostMemoryTest, NothingIsAllocatedFromASegmentInRemake) {
  const SlotClass slot_class = ClassOf(kAlice, 1);
  const std::unique_ptr<MemorySegment> taken = memory_->BeginRemake(3);
  EXPECT_NE(taken, nullptr);
  EXPECT_TRUE(memory_->Info(3).in_remake);
  EXPECT_FALSE(memory_->Info(3).missing);
  const std::vector<SlotRef> slots = AllocateAll(slot_class);
  EXPECT_EQ(slots.size(), 15u);
  for (SlotRef slot : slots) EXPECT_NE(slot.segment, 3u);
}

TEST_F(HostMemoryTest, FailedRemakeShrinksThePoolUntilTheNextOne) {
  memory_->BeginRemake(3).reset();
  memory_->FinishRemake(3, nullptr);
  EXPECT_TRUE(memory_->Info(3).missing);
  EXPECT_EQ(memory_->Info(3).slots, 0u);
  EXPECT_EQ(memory_->pool_bytes(), 15 * memory_->slot_bytes_max());
  EXPECT_EQ(AllocateAll(ClassOf(kAlice, 1)).size(), 15u);
  EXPECT_EQ(memory_->BeginRemake(3), nullptr);
  memory_->FinishRemake(3, *HostMemory::MakeSegment(memory_->slot_bytes_max()));
  EXPECT_EQ(memory_->pool_bytes(), 16 * memory_->slot_bytes_max());
  EXPECT_EQ(memory_->Allocate(ClassOf(kBob, 1)), (SlotRef{3, 0}));
}

using HostMemoryDeathTest = HostMemoryTest;

TEST_F(HostMemoryDeathTest, RemakingASegmentInUseIsABug) {
  const SlotRef slot = *memory_->Allocate(ClassOf(kAlice, 4));
  EXPECT_DEATH(memory_->BeginRemake(slot.segment), "slots_used");
}

TEST_F(HostMemoryDeathTest, FreeingASlotOfASegmentInRemakeIsABug) {
  const SlotRef slot = *memory_->Allocate(ClassOf(kAlice, 4));
  memory_->Free(slot);
  memory_->BeginRemake(slot.segment).reset();
  EXPECT_DEATH(memory_->Free(slot), "held");
}

}  // namespace
}  // namespace cairn::node
