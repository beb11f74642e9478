// A pool of sixteen small segments on an emulated device. What it has in common with the host's is
// tested with it (tests/cache_node/tiers/slot_pool_test.cc).
#include <gmock/gmock.h>

#include "kernels/device/device_pool.h"
#include "kernels/device/emulated_device.h"

namespace cairn::kernels {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kPoolBytes = DevicePool::kSegmentsAtLeast * DevicePool::kSegmentAlignBytes;

TEST(DevicePoolTest, PoolThatIsTooSmallIsRefusedWithTheLeastThatWorks) {
  EmulatedDevice device({});
  std::unique_ptr<DevicePool> pool;
  const Problem problem = DevicePool::Make(&device, kPoolBytes - 1, &pool);
  EXPECT_THAT(problem, HasSubstr(std::to_string(kPoolBytes - 1)));
  EXPECT_THAT(problem, HasSubstr(std::to_string(kPoolBytes)));
}

TEST(DevicePoolTest, DeviceWithoutTheMemorySaysSo) {
  EmulatedDevice device({.memory_bytes = kPoolBytes / 2});
  std::unique_ptr<DevicePool> pool;
  EXPECT_THAT(DevicePool::Make(&device, kPoolBytes, &pool), HasSubstr("bytes free"));
  EXPECT_EQ(pool, nullptr);
}

TEST(DevicePoolTest, SegmentWhoseLastSlotIsFreedServesAnotherClass) {
  EmulatedDevice device({});
  std::unique_ptr<DevicePool> pool;
  ASSERT_EQ(DevicePool::Make(&device, kPoolBytes, &pool), "");
  std::vector<DevicePool::Slot> slots(64);
  for (DevicePool::Slot& slot : slots) ASSERT_TRUE(pool->Allocate({1, 1024}, &slot));
  DevicePool::Slot large;
  EXPECT_FALSE(pool->Allocate({1, 4096}, &large));
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_FALSE(pool->Allocate({1, 4096}, &large));
    pool->Free(slots[i]);
  }
  const uint64_t generation = pool->Generation(slots[0]);
  ASSERT_TRUE(pool->Allocate({1, 4096}, &large));
  EXPECT_EQ(large.segment, slots[0].segment);
  EXPECT_GT(pool->Generation(large), generation);
  EXPECT_EQ(pool->used_bytes(), kPoolBytes);
}

TEST(DevicePoolTest, FullestSegmentIsFilledFirstSoThatOthersEmpty) {
  EmulatedDevice device({});
  std::unique_ptr<DevicePool> pool;
  ASSERT_EQ(DevicePool::Make(&device, kPoolBytes, &pool), "");
  std::vector<DevicePool::Slot> slots(8);
  for (DevicePool::Slot& slot : slots) ASSERT_TRUE(pool->Allocate({1, 1024}, &slot));
  for (size_t i = 0; i < 3; ++i) pool->Free(slots[i]);
  pool->Free(slots[7]);
  DevicePool::Slot next;
  ASSERT_TRUE(pool->Allocate({1, 1024}, &next));
  EXPECT_EQ(next.segment, slots[7].segment);
}

TEST(DevicePoolDeathTest, SlotThatNobodyHoldsEndsTheProcess) {
  EmulatedDevice device({});
  std::unique_ptr<DevicePool> pool;
  ASSERT_EQ(DevicePool::Make(&device, kPoolBytes, &pool), "");
  DevicePool::Slot slot;
  ASSERT_TRUE(pool->Allocate({1, 1024}, &slot));
  pool->Free(slot);
  EXPECT_DEATH(pool->Free(slot), "nobody holds the slot");
}

}  // namespace
}  // namespace cairn::kernels
