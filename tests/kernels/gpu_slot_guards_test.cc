// Slots of an emulated device that several streams write and read in random order: with the guards
// each reader sees what was written last before it, in whatever order the streams run; without
// them some do not, so the test can tell.
#include <gmock/gmock.h>

#include <cstring>
#include <random>
#include <vector>

#include "kernels/device/emulated_device.h"
#include "kernels/device/slot_guards.h"

namespace cairn::kernels {
namespace {

using Order = EmulatedDevice::Order;

// Each read goes to a buffer of its own, and is looked at when all is done.
class GuardedSlots {
 public:
  static constexpr uint64_t kRegionBytes = 4096;
  static constexpr uint64_t kSlotBytesMin = 512;
  static constexpr size_t kStreams = 3;
  static constexpr size_t kSteps = 300;

  GuardedSlots(Order order, uint64_t seed, bool guarded)
      : guarded_(guarded),
        random_(seed),
        device_({.order = order, .seed = seed}),
        guards_(&device_),
        host_(2 * kSteps * kRegionBytes),
        slots_(kRegionBytes / kSlotBytesMin, 0) {
    EXPECT_EQ(device_.RegisterHost(host_.data(), host_.size()), "");
    EXPECT_EQ(device_.Allocate(kRegionBytes, &region_), "");
    streams_.resize(kStreams);
    for (Stream& stream : streams_) EXPECT_EQ(device_.MakeStream(&stream), "");
  }

  // Wrong reads.
  size_t Run() {
    size_t wrong = 0;
    for (size_t step = 0; step < kSteps; ++step) {
      // Sizes change as they do when a segment changes its class.
      const uint64_t bytes = kSlotBytesMin << (random_() % 4);
      const uint64_t offset = random_() % (kRegionBytes / bytes) * bytes;
      const Stream stream = streams_[random_() % kStreams];
      if (random_() % 2 == 0) {
        Write(step, offset, bytes, stream);
      } else {
        Read(step, offset, bytes, stream);
      }
    }
    for (const Stream stream : streams_) Await(stream);
    for (const Expected& read : reads_) {
      if (std::memcmp(read.at, read.bytes.data(), read.bytes.size()) != 0) ++wrong;
    }
    return wrong;
  }

 private:
  struct Expected {
    const std::byte* at = nullptr;
    std::vector<std::byte> bytes;
  };

  void Write(size_t step, uint64_t offset, uint64_t bytes, Stream stream) {
    std::byte* from = host_.data() + 2 * step * kRegionBytes;
    const auto pattern = static_cast<uint8_t>(1 + step % 254);
    std::memset(from, pattern, bytes);
    const DeviceRange range{region_ + offset, bytes};
    if (guarded_) {
      EXPECT_EQ(guards_.BeforeWrite(&range, 1, stream), "");
    }
    const DeviceCopy copy{region_ + offset, from, bytes};
    EXPECT_EQ(device_.CopyBatch(CopyDirection::kHostToDevice, &copy, 1, stream), "");
    if (guarded_) {
      EXPECT_EQ(guards_.AfterWrite(&range, 1, stream), "");
    }
    for (uint64_t at = offset; at < offset + bytes; at += kSlotBytesMin) {
      slots_[at / kSlotBytesMin] = pattern;
    }
  }

  void Read(size_t step, uint64_t offset, uint64_t bytes, Stream stream) {
    std::byte* to = host_.data() + (2 * step + 1) * kRegionBytes;
    const DeviceRange range{region_ + offset, bytes};
    if (guarded_) {
      EXPECT_EQ(guards_.BeforeRead(&range, 1, stream), "");
    }
    const DeviceCopy copy{to, region_ + offset, bytes};
    EXPECT_EQ(device_.CopyBatch(CopyDirection::kDeviceToHost, &copy, 1, stream), "");
    if (guarded_) {
      EXPECT_EQ(guards_.AfterRead(&range, 1, stream), "");
    }
    Expected expected{to, std::vector<std::byte>(bytes)};
    for (uint64_t at = 0; at < bytes; at += kSlotBytesMin) {
      const uint8_t pattern = slots_[(offset + at) / kSlotBytesMin];
      // Nothing was written there yet: whatever is there.
      if (pattern == 0) return;
      std::memset(expected.bytes.data() + at, pattern, kSlotBytesMin);
    }
    reads_.push_back(std::move(expected));
  }

  void Await(Stream stream) {
    Event event;
    EXPECT_EQ(device_.MakeEvent(&event), "");
    EXPECT_EQ(device_.Record(event, stream), "");
    EXPECT_EQ(device_.Wait(event), "");
  }

  const bool guarded_;
  std::mt19937_64 random_;
  EmulatedDevice device_;
  SlotGuards guards_;
  std::vector<std::byte> host_;
  std::vector<uint8_t> slots_;  // What is to be in each smallest one; 0: nothing yet.
  std::byte* region_ = nullptr;
  std::vector<Stream> streams_;
  std::vector<Expected> reads_;
};

TEST(SlotGuardsTest, ReadersSeeTheLastWriterInWhateverOrderStreamsRun) {
  for (const Order order : {Order::kLazy, Order::kEager, Order::kRandom}) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      EXPECT_EQ(GuardedSlots(order, seed, true).Run(), 0u) << seed;
    }
  }
}

TEST(SlotGuardsTest, WithoutThemSomeReadersAreWrong) {
  size_t wrong = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed)
    wrong += GuardedSlots(Order::kRandom, seed, false).Run();
  EXPECT_GT(wrong, 100u);
}

TEST(SlotGuardsTest, EventsAreUsedAgain) {
  EmulatedDevice device({});
  SlotGuards guards(&device);
  Stream stream;
  ASSERT_EQ(device.MakeStream(&stream), "");
  std::byte* memory = nullptr;
  ASSERT_EQ(device.Allocate(4096, &memory), "");
  std::vector<DeviceRange> ranges;
  for (size_t i = 0; i < 64; ++i) ranges.push_back({memory + i * 64, 64});
  for (int round = 0; round < 100; ++round) {
    ASSERT_EQ(guards.BeforeWrite(ranges.data(), ranges.size(), stream), "");
    ASSERT_EQ(guards.AfterWrite(ranges.data(), ranges.size(), stream), "");
    ASSERT_EQ(guards.AfterRead(ranges.data(), ranges.size(), stream), "");
  }
  EXPECT_LE(device.events(), 4u);
}

TEST(SlotGuardsTest, DeviceThatFailsIsAProblemAndNoCrash) {
  EmulatedDevice device({});
  SlotGuards guards(&device);
  Stream first;
  Stream second;
  ASSERT_EQ(device.MakeStream(&first), "");
  ASSERT_EQ(device.MakeStream(&second), "");
  std::byte* memory = nullptr;
  ASSERT_EQ(device.Allocate(4096, &memory), "");
  const DeviceRange range{memory, 4096};
  ASSERT_EQ(guards.AfterWrite(&range, 1, first), "");
  device.Fail("fell off the bus");
  EXPECT_EQ(guards.BeforeRead(&range, 1, second), "fell off the bus");
  EXPECT_EQ(guards.AfterWrite(&range, 1, second), "fell off the bus");
}

}  // namespace
}  // namespace cairn::kernels
