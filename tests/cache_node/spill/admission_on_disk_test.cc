// A host tier whose policy declines what it has no room for, above a disk in memory.

#include <gmock/gmock.h>

#include "tests/cache_node/spill/disk_world.h"
#include "tests/cache_node/store/keeping_policy.h"

namespace cairn::node {
namespace {

using ::testing::Each;

class AdmissionOnDiskTest : public ::testing::Test {
 protected:
  static constexpr size_t kSlots = 256;

  std::unique_ptr<DiskWorld> World(SpillAdmission admission, size_t queue_blocks_max = 65536) {
    DiskWorldOptions options;
    options.store.reserved_bytes_max = uint64_t{1} << 30;
    options.store.disk.admission = admission;
    options.store.disk.spill_queue_blocks_max = queue_blocks_max;
    options.policies = [this] { return std::make_unique<KeepingPolicyFactory>(&log_); };
    return std::make_unique<DiskWorld>(options);
  }

  KeepingLog log_;
};

TEST_F(AdmissionOnDiskTest, WhatTheDiskTakesIsLetThroughHostMemory) {
  const auto world = World(SpillAdmission::kAlways);
  world->t().Put(world->t().Prompt("t", 1, kSlots));
  world->Spill();
  const TestPrompt prompt = world->t().Prompt("t", 2, 3);
  EXPECT_EQ(world->t().Put(prompt), 3u);
  EXPECT_EQ(log_.declined, 0u);
  world->Spill();
  EXPECT_EQ(world->store().Status().disk_blocks, kSlots + 3);
}

TEST_F(AdmissionOnDiskTest, WhatWouldBeWrittenAtItsNextUseOnlyIsDeclined) {
  const auto world = World(SpillAdmission::kSecondTouch);
  world->t().Put(world->t().Prompt("t", 1, kSlots));
  EXPECT_EQ(world->t().Put(world->t().Prompt("t", 2, 3)), 0u);
  EXPECT_EQ(world->counters().declined_newcomers, 1u);
}

TEST_F(AdmissionOnDiskTest, WhatTheDiskWouldShedIsDeclined) {
  const auto world = World(SpillAdmission::kAlways, /*queue_blocks_max=*/8);
  world->t().Put(world->t().Prompt("t", 1, kSlots));
  EXPECT_EQ(world->t().Put(world->t().Prompt("t", 2, 3)), 0u);
  world->Spill();
  EXPECT_EQ(world->t().Put(world->t().Prompt("t", 2, 3)), 3u);
}

TEST_F(AdmissionOnDiskTest, WhatIsLoadedForARequestComesInUnasked) {
  const auto world = World(SpillAdmission::kAlways);
  const TestPrompt prompt = world->PutOnDisk("t", 1, 3);
  log_ = {};
  world->Promote(prompt);
  world->Load();
  EXPECT_THAT(world->t().States(prompt), Each(BlockState::kHost));
  EXPECT_EQ(log_.declined, 0u);
}

}  // namespace
}  // namespace cairn::node
