// An emulated device whose streams are driven by hand: what may come late comes late, what may come
// early does, and a copy that nobody waited for is seen as wrong bytes.
#include <gmock/gmock.h>

#include <array>
#include <cstring>

#include "kernels/device/cuda_device.h"
#include "kernels/device/emulated_device.h"

namespace cairn::kernels {
namespace {

using ::testing::HasSubstr;
using Order = EmulatedDevice::Order;

class EmulatedDeviceTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kBytes = 4096;

  EmulatedDeviceTest() { Make({}); }

  void Make(const EmulatedDevice::Options& options) {
    device_ = std::make_unique<EmulatedDevice>(options);
    EXPECT_EQ(device_->RegisterHost(host_.data(), host_.size()), "");
    EXPECT_EQ(device_->Allocate(kBytes, &memory_), "");
    EXPECT_EQ(device_->MakeStream(&first_), "");
    EXPECT_EQ(device_->MakeStream(&second_), "");
    EXPECT_EQ(device_->MakeEvent(&event_), "");
  }

  void CopyIn(Stream stream) {
    const DeviceCopy copy{memory_, host_.data(), kBytes};
    EXPECT_EQ(device_->CopyBatch(CopyDirection::kHostToDevice, &copy, 1, stream), "");
  }
  void CopyOut(Stream stream) {
    const DeviceCopy copy{host_.data() + kBytes, memory_, kBytes};
    EXPECT_EQ(device_->CopyBatch(CopyDirection::kDeviceToHost, &copy, 1, stream), "");
  }
  bool IsDone() {
    Device::EventState state{};
    EXPECT_EQ(device_->Poll(event_, &state), "");
    return state == Device::EventState::kDone;
  }
  int DeviceByte() const { return std::to_integer<int>(memory_[0]); }
  int OutByte() const { return std::to_integer<int>(host_[kBytes]); }

  alignas(4096) std::array<std::byte, 2 * kBytes> host_{};
  std::unique_ptr<EmulatedDevice> device_;
  std::byte* memory_ = nullptr;
  Stream first_;
  Stream second_;
  Event event_;
};

TEST_F(EmulatedDeviceTest, NewMemoryIsNoNumber) {
  float number = 0;
  std::memcpy(&number, memory_, sizeof(number));
  EXPECT_NE(number, number);
}

TEST_F(EmulatedDeviceTest, CopyLandsWhenItsEventIsWaitedFor) {
  host_[0] = std::byte{1};
  CopyIn(first_);
  ASSERT_EQ(device_->Record(event_, first_), "");
  EXPECT_EQ(DeviceByte(), 0xff);
  ASSERT_EQ(device_->Wait(event_), "");
  EXPECT_EQ(DeviceByte(), 1);
  EXPECT_EQ(device_->counts().copied_bytes, kBytes);
}

TEST_F(EmulatedDeviceTest, CopyReadsItsSourceWhenItLands) {
  host_[0] = std::byte{1};
  CopyIn(first_);
  host_[0] = std::byte{2};  // Too early: nobody waited.
  ASSERT_EQ(device_->Record(event_, first_), "");
  EXPECT_TRUE(IsDone());
  EXPECT_EQ(DeviceByte(), 2);
}

TEST_F(EmulatedDeviceTest, EventStandsForWhatItsStreamWasGivenBefore) {
  host_[0] = std::byte{1};
  ASSERT_EQ(device_->Record(event_, first_), "");
  CopyIn(first_);
  ASSERT_EQ(device_->Wait(event_), "");
  EXPECT_EQ(DeviceByte(), 0xff);
  EXPECT_EQ(device_->PendingOf(first_), 1u);
}

TEST_F(EmulatedDeviceTest, EventThatWasNeverRecordedIsDone) {
  CopyIn(first_);
  EXPECT_TRUE(IsDone());
  EXPECT_EQ(device_->PendingOf(first_), 1u);
}

TEST_F(EmulatedDeviceTest, StreamsKnowNothingOfEachOtherWithoutAnEvent) {
  host_[0] = std::byte{1};
  CopyIn(first_);
  CopyOut(second_);
  ASSERT_EQ(device_->Record(event_, second_), "");
  ASSERT_EQ(device_->Wait(event_), "");
  EXPECT_EQ(OutByte(), 0xff);
}

TEST_F(EmulatedDeviceTest, StreamThatWaitsForAnEventComesAfterIt) {
  host_[0] = std::byte{1};
  CopyIn(first_);
  ASSERT_EQ(device_->Record(event_, first_), "");
  ASSERT_EQ(device_->StreamWait(second_, event_), "");
  CopyOut(second_);
  EXPECT_FALSE(device_->Step(second_));
  ASSERT_EQ(device_->Record(event_, second_), "");  // The wait is for what it stood for before.
  ASSERT_EQ(device_->Wait(event_), "");
  EXPECT_EQ(OutByte(), 1);
}

TEST_F(EmulatedDeviceTest, EventThatIsRecordedElsewhereStillHoldsWhoWaitedForItBefore) {
  host_[0] = std::byte{1};
  CopyIn(first_);
  ASSERT_EQ(device_->Record(event_, first_), "");
  ASSERT_EQ(device_->StreamWait(second_, event_), "");
  Stream third;
  ASSERT_EQ(device_->MakeStream(&third), "");
  ASSERT_EQ(device_->Record(event_, third), "");
  ASSERT_TRUE(device_->Step(third));
  EXPECT_FALSE(device_->Step(second_));
  CopyOut(second_);
  EXPECT_TRUE(IsDone());
  EXPECT_EQ(OutByte(), 0);
}

TEST_F(EmulatedDeviceTest, TestChoosesTheOrderStepByStep) {
  host_[0] = std::byte{1};
  CopyIn(first_);
  CopyOut(second_);
  EXPECT_TRUE(device_->Step(second_));
  EXPECT_TRUE(device_->Step(first_));
  EXPECT_FALSE(device_->Step(first_));
  EXPECT_EQ(OutByte(), 0xff);
  EXPECT_EQ(DeviceByte(), 1);
}

TEST_F(EmulatedDeviceTest, EagerOneIsDoneAtOnce) {
  Make({.order = Order::kEager});
  CopyIn(first_);
  EXPECT_EQ(DeviceByte(), 0);
}

TEST_F(EmulatedDeviceTest, RandomOneTellsApartWhatHasNoOrder) {
  // Of two streams without an event between them either may be first.
  bool seen_first = false;
  bool seen_second = false;
  for (uint64_t seed = 1; seed <= 64; ++seed) {
    Make({.order = Order::kRandom, .seed = seed});
    host_[0] = std::byte{1};
    CopyIn(first_);
    CopyOut(second_);
    ASSERT_EQ(device_->Record(event_, second_), "");
    while (!IsDone()) continue;
    (OutByte() == 1 ? seen_first : seen_second) = true;
  }
  EXPECT_TRUE(seen_first);
  EXPECT_TRUE(seen_second);
}

TEST_F(EmulatedDeviceTest, EventIsPendingAsOftenAsTheOptionsSay) {
  Make({.pending_polls = 2});
  CopyIn(first_);
  ASSERT_EQ(device_->Record(event_, first_), "");
  EXPECT_FALSE(IsDone());
  EXPECT_FALSE(IsDone());
  EXPECT_EQ(DeviceByte(), 0xff);
  EXPECT_TRUE(IsDone());
}

TEST_F(EmulatedDeviceTest, WorkOfAKernelKeepsItsPlaceInTheStream) {
  host_[0] = std::byte{1};
  int seen = 0;
  CopyIn(first_);
  ASSERT_EQ(device_->Enqueue(first_,
                             [&] {
                               seen = DeviceByte();
                               return Problem{};
                             }),
            "");
  EXPECT_EQ(seen, 0);
  ASSERT_EQ(device_->Record(event_, first_), "");
  ASSERT_EQ(device_->Wait(event_), "");
  EXPECT_EQ(seen, 1);
}

TEST_F(EmulatedDeviceTest, KernelThatFailsFailsTheDevice) {
  ASSERT_EQ(device_->Enqueue(first_, [] { return Problem{"an address outside"}; }), "");
  CopyIn(first_);
  ASSERT_EQ(device_->Record(event_, first_), "");
  EXPECT_EQ(device_->Wait(event_), "an address outside");
  EXPECT_EQ(device_->Record(event_, first_), "an address outside");
  EXPECT_EQ(DeviceByte(), 0xff);
}

TEST_F(EmulatedDeviceTest, HostMemoryThatIsNotPinnedIsRefused) {
  std::array<std::byte, 64> other{};
  const DeviceCopy in{memory_, other.data(), other.size()};
  EXPECT_THAT(device_->CopyBatch(CopyDirection::kHostToDevice, &in, 1, first_),
              HasSubstr("not registered"));
  ASSERT_EQ(device_->UnregisterHost(host_.data()), "");
  const DeviceCopy out{host_.data(), memory_, kBytes};
  EXPECT_THAT(device_->CopyBatch(CopyDirection::kDeviceToHost, &out, 1, first_),
              HasSubstr("not registered"));
  EXPECT_EQ(device_->PendingOf(first_), 0u);
}

TEST_F(EmulatedDeviceTest, RegisteringTwiceIsRefused) {
  EXPECT_THAT(device_->RegisterHost(host_.data() + kBytes, kBytes), HasSubstr("already"));
}

TEST_F(EmulatedDeviceTest, CopyBeyondAnAllocationIsRefusedWhole) {
  const DeviceCopy copies[] = {{memory_, host_.data(), 64},
                               {memory_ + kBytes - 32, host_.data(), 64}};
  EXPECT_THAT(device_->CopyBatch(CopyDirection::kHostToDevice, copies, 2, first_),
              HasSubstr("did not allocate"));
  EXPECT_EQ(device_->PendingOf(first_), 0u);
}

TEST_F(EmulatedDeviceTest, MemoryIsBounded) {
  Make({.memory_bytes = 2 * kBytes});
  std::byte* more = nullptr;
  EXPECT_THAT(device_->Allocate(kBytes + 1, &more), HasSubstr("4096 bytes free"));
  EXPECT_EQ(device_->Allocate(kBytes, &more), "");
  device_->Free(memory_);
  EXPECT_EQ(device_->Allocate(kBytes, &more), "");
}

TEST_F(EmulatedDeviceTest, KernelsAreToldWhatTheyMayTouch) {
  simt::emulated::MemoryRegistry registry;
  Make({.registry = &registry});
  EXPECT_TRUE(registry.Holds(memory_, kBytes));
  EXPECT_FALSE(registry.Holds(memory_, kBytes + 1));
  device_->Free(memory_);
  EXPECT_FALSE(registry.Holds(memory_, 1));
  ASSERT_EQ(device_->Allocate(64, &memory_), "");
  device_ = nullptr;
  EXPECT_TRUE(registry.Ranges().empty());
}

TEST_F(EmulatedDeviceTest, FreeComesAfterAllThatWasGiven) {
  host_[0] = std::byte{1};
  CopyIn(first_);
  CopyOut(first_);
  device_->Free(memory_);
  EXPECT_EQ(OutByte(), 1);
}

TEST(CudaDeviceTest, WithoutADeviceItSaysWhy) {
  std::unique_ptr<Device> device;
  const Problem problem = MakeCudaDevice(1000, &device);
  EXPECT_THAT(problem, HasSubstr("cuda:1000: "));
  EXPECT_EQ(device, nullptr);
}

}  // namespace
}  // namespace cairn::kernels
