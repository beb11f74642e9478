// A tier on an emulated device, with host memory that it has pinned: copies are checked byte for
// byte, and a device that fails is out and says why.
#include "cache_node/tiers/device/device_tier.h"

#include <gmock/gmock.h>

#include <cstring>
#include <thread>

#include "cache_node/tiers/host_memory.h"
#include "kernels/device/emulated_device.h"

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

class DeviceTierTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kPoolBytes = 1 << 20;
  static constexpr SlotClass kClass{1, 4096};

  DeviceTierTest() { Open({}); }

  void Open(const kernels::EmulatedDevice::Options& options) {
    host_ = nullptr;
    auto device = std::make_unique<kernels::EmulatedDevice>(options);
    device_ = device.get();
    absl::StatusOr<std::unique_ptr<DeviceTier>> tier =
        DeviceTier::Open(std::move(device), kPoolBytes);
    ASSERT_TRUE(tier.ok()) << tier.status();
    tier_ = *std::move(tier);
    host_ = *HostMemory::Create(kPoolBytes, tier_.get());
  }

  // A host slot full of the byte.
  absl::Span<uint8_t> HostSlot(uint8_t byte) {
    const absl::Span<uint8_t> bytes = host_->Bytes(*host_->Allocate(kClass));
    std::memset(bytes.data(), byte, bytes.size());
    return bytes;
  }

  kernels::EmulatedDevice* device_ = nullptr;
  std::unique_ptr<DeviceTier> tier_;
  std::unique_ptr<HostMemory> host_;  // Unpins before the tier goes.
};

TEST_F(DeviceTierTest, BatchesGoInAndComeBack) {
  std::vector<DeviceTransfer> in;
  std::vector<DeviceTransfer> out;
  for (uint8_t i = 1; i <= 20; ++i) {
    std::byte* slot = tier_->memory().Address(*tier_->memory().Allocate(kClass));
    in.push_back({slot, HostSlot(i)});
    out.push_back({slot, HostSlot(0)});
  }
  ASSERT_TRUE(tier_->CopyIn(in).ok());
  ASSERT_TRUE(tier_->CopyOut(out).ok());
  for (size_t i = 0; i < out.size(); ++i) {
    EXPECT_THAT(out[i].host, ::testing::Each(static_cast<uint8_t>(i + 1)));
  }
  EXPECT_EQ(tier_->GetStats().copied_in_bytes, 20 * kClass.slot_bytes);
  EXPECT_EQ(tier_->GetStats().copied_out_bytes, 20 * kClass.slot_bytes);
}

TEST_F(DeviceTierTest, SlotThatAKernelStillReadsIsNotOverwritten) {
  // The kernel was given its work and nobody waits for it; its slot was freed and is another's.
  const SlotRef slot = *tier_->memory().Allocate(kClass);
  std::byte* address = tier_->memory().Address(slot);
  ASSERT_TRUE(tier_->CopyIn({{address, HostSlot(1)}}).ok());
  kernels::Stream kernel;
  ASSERT_EQ(device_->MakeStream(&kernel), "");
  const kernels::DeviceRange range{address, kClass.slot_bytes};
  ASSERT_EQ(tier_->guards().BeforeRead(&range, 1, kernel), "");
  int seen = 0;
  ASSERT_EQ(device_->Enqueue(kernel,
                             [&] {
                               seen = std::to_integer<int>(address[0]);
                               return kernels::Problem{};
                             }),
            "");
  ASSERT_EQ(tier_->guards().AfterRead(&range, 1, kernel), "");
  tier_->memory().Free(slot);
  ASSERT_EQ(tier_->memory().Allocate(kClass), slot);
  ASSERT_TRUE(tier_->CopyIn({{address, HostSlot(2)}}).ok());
  EXPECT_EQ(seen, 1);
}

TEST_F(DeviceTierTest, MemoryThatIsMadeAnewIsPinned) {
  std::byte* address = tier_->memory().Address(*tier_->memory().Allocate(kClass));
  host_->BeginRemake(3).reset();
  host_->FinishRemake(3, *HostMemory::MakeSegment(host_->SegmentBytes(3), host_->pinner()));
  const SlotRef remade = *host_->Allocate({2, kClass.slot_bytes});
  ASSERT_EQ(remade.segment, 3u);
  EXPECT_TRUE(tier_->CopyIn({{address, host_->Bytes(remade)}}).ok());
}

TEST_F(DeviceTierTest, MemoryThatIsNotPinnedTakesTheDeviceOut) {
  std::byte* address = tier_->memory().Address(*tier_->memory().Allocate(kClass));
  std::vector<uint8_t> elsewhere(kClass.slot_bytes);
  EXPECT_EQ(tier_->CopyIn({{address, absl::MakeSpan(elsewhere)}}).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_THAT(tier_->problem(), HasSubstr("not registered"));
}

TEST_F(DeviceTierTest, DeviceThatFailedIsOutAndSaysWhy) {
  std::byte* address = tier_->memory().Address(*tier_->memory().Allocate(kClass));
  ASSERT_TRUE(tier_->CopyIn({{address, HostSlot(1)}}).ok());
  device_->Fail("fell off the bus");
  const absl::Status status = tier_->CopyOut({{address, HostSlot(0)}});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("fell off the bus"));
  EXPECT_TRUE(tier_->GetStats().failed);
  EXPECT_EQ(tier_->problem(), "fell off the bus");
}

TEST_F(DeviceTierTest, DeviceWithoutTheMemoryIsRefused) {
  const auto small = DeviceTier::Open(std::make_unique<kernels::EmulatedDevice>(
                                          kernels::EmulatedDevice::Options{.memory_bytes = 1024}),
                                      kPoolBytes);
  EXPECT_EQ(small.status().code(), absl::StatusCode::kResourceExhausted);
  const auto none = DeviceTier::Open(
      std::make_unique<kernels::EmulatedDevice>(kernels::EmulatedDevice::Options{}), 4096);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(DeviceTierTest, CopiesBothWaysAtTheSameTimeInRandomOrderAreRight) {
  Open({.order = kernels::EmulatedDevice::Order::kRandom, .seed = 7});
  const auto work = [this](uint8_t first, SlotRef slot, absl::Span<uint8_t> from,
                           absl::Span<uint8_t> to) {
    for (uint8_t round = 0; round < 100; ++round) {
      std::memset(from.data(), first + round, from.size());
      ASSERT_TRUE(tier_->CopyIn({{tier_->memory().Address(slot), from}}).ok());
      ASSERT_TRUE(tier_->CopyOut({{tier_->memory().Address(slot), to}}).ok());
      ASSERT_EQ(std::memcmp(from.data(), to.data(), to.size()), 0);
    }
  };
  const SlotRef first = *tier_->memory().Allocate(kClass);
  const SlotRef second = *tier_->memory().Allocate(kClass);
  std::thread other(work, uint8_t{100}, second, HostSlot(0), HostSlot(0));
  work(0, first, HostSlot(0), HostSlot(0));
  other.join();
}

}  // namespace
}  // namespace cairn::node
