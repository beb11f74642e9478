// Pools of sixteen small segments, driven step by step: what all tiers that have slots do alike.
#include <gmock/gmock.h>

#include <set>
#include <vector>

#include "tests/cache_node/tiers/slot_pools.h"

namespace cairn::node {
namespace {

constexpr TenantIndex kAlice = 1;
constexpr TenantIndex kBob = 2;

template <typename Pool>
class SlotPoolTest : public ::testing::Test {
 protected:
  SlotPoolTest() : memory_(&pool_.memory()) {}

  // A class with `slots` slots in a segment.
  SlotClass ClassOf(TenantIndex tenant, uint64_t slots) const {
    return {tenant, memory_->slot_bytes_max() / slots};
  }

  std::vector<SlotRef> AllocateAll(const SlotClass& slot_class) {
    std::vector<SlotRef> slots;
    while (std::optional<SlotRef> slot = memory_->Allocate(slot_class)) slots.push_back(*slot);
    return slots;
  }

  Pool pool_;
  typename Pool::Memory* const memory_;
};
TYPED_TEST_SUITE(SlotPoolTest, SlotPools);

TYPED_TEST(SlotPoolTest, SlotsOfAClassFillThePoolAndDoNotOverlap) {
  const SlotClass slot_class = this->ClassOf(kAlice, 4);
  const std::vector<SlotRef> slots = this->AllocateAll(slot_class);
  EXPECT_EQ(slots.size(), 64u);
  EXPECT_EQ(this->memory_->used_bytes(), this->memory_->pool_bytes());
  std::set<uint8_t*> starts;
  for (SlotRef slot : slots) {
    const absl::Span<uint8_t> bytes = this->pool_.Bytes(slot);
    EXPECT_EQ(bytes.size(), slot_class.slot_bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data()) % 64, 0u);
    starts.insert(bytes.data());
  }
  EXPECT_EQ(starts.size(), slots.size());
  for (auto it = starts.begin(); std::next(it) != starts.end(); ++it) {
    EXPECT_GE(reinterpret_cast<uintptr_t>(*std::next(it)) - reinterpret_cast<uintptr_t>(*it),
              slot_class.slot_bytes);
  }
}

TYPED_TEST(SlotPoolTest, SlotSizeThatDoesNotDivideTheSegmentLeavesTheRest) {
  const SlotClass slot_class{kAlice, this->memory_->slot_bytes_max() / 2 + 64};
  EXPECT_EQ(this->AllocateAll(slot_class).size(), 16u);
  EXPECT_EQ(this->memory_->Info(0).slots, 1u);
  EXPECT_EQ(this->memory_->used_bytes(), 16 * slot_class.slot_bytes);
}

TYPED_TEST(SlotPoolTest, SlotLargerThanASegmentGetsNothing) {
  EXPECT_EQ(this->memory_->Allocate({kAlice, this->memory_->slot_bytes_max() + 64}), std::nullopt);
  EXPECT_EQ(this->memory_->Info(0).slot_class, SlotClass{});
}

TYPED_TEST(SlotPoolTest, TenantsAndSlotSizesNeverShareASegment) {
  const SlotClass classes[] = {this->ClassOf(kAlice, 4), this->ClassOf(kBob, 4),
                               this->ClassOf(kAlice, 8)};
  std::set<uint32_t> segments;
  for (const SlotClass& slot_class : classes) {
    const SlotRef slot = *this->memory_->Allocate(slot_class);
    EXPECT_EQ(this->memory_->Info(slot.segment).slot_class, slot_class);
    segments.insert(slot.segment);
  }
  EXPECT_EQ(segments.size(), 3u);
}

TYPED_TEST(SlotPoolTest, FreedSlotIsGivenAgainWithAHigherGeneration) {
  const SlotClass slot_class = this->ClassOf(kAlice, 4);
  const std::vector<SlotRef> slots = this->AllocateAll(slot_class);
  const uint64_t generation = this->memory_->Generation(slots[9]);
  this->memory_->Free(slots[9]);
  EXPECT_GT(this->memory_->Generation(slots[9]), generation);
  const uint64_t freed_generation = this->memory_->Generation(slots[9]);
  EXPECT_EQ(this->memory_->Allocate(slot_class), slots[9]);
  EXPECT_EQ(this->memory_->Generation(slots[9]), freed_generation);
  EXPECT_EQ(this->memory_->Allocate(slot_class), std::nullopt);
}

template <typename Pool>
using SlotPoolDeathTest = SlotPoolTest<Pool>;
TYPED_TEST_SUITE(SlotPoolDeathTest, SlotPools);

TYPED_TEST(SlotPoolDeathTest, FreeingASlotTwiceIsABug) {
  const SlotRef slot = *this->memory_->Allocate(this->ClassOf(kAlice, 4));
  this->memory_->Free(slot);
  EXPECT_DEATH(this->memory_->Free(slot), "held|holds");
}

TYPED_TEST(SlotPoolDeathTest, ASlotThatWasNeverGivenIsABug) {
  this->memory_->Allocate(this->ClassOf(kAlice, 4));
  EXPECT_DEATH(this->memory_->Free({0, 1}), "held|holds");
  EXPECT_DEATH(this->memory_->Free({16, 0}), "segment");
  EXPECT_DEATH(this->pool_.Bytes({1, 0}), "held|holds");
}

}  // namespace
}  // namespace cairn::node
