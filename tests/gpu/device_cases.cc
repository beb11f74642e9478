// What the device tier rests on: batches of copies both ways and within the device, and slots of a
// pool that several streams write, read, free and take anew, held against a model. Without guards
// the second differs on the emulated device in most of its orders, and may on hardware.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "kernels/device/device_pool.h"
#include "kernels/device/slot_guards.h"
#include "tests/gpu/cases.h"

namespace cairn::gpu_check {
namespace {

using kernels::CopyDirection;
using kernels::DeviceCopy;
using kernels::DevicePool;
using kernels::DeviceRange;
using kernels::SlotGuards;
using kernels::Stream;

constexpr std::align_val_t kPage{4096};

// Host memory that the device has pinned.
class PinnedMemory {
 public:
  PinnedMemory(GpuRig* rig, uint64_t bytes)
      : rig_(rig), memory_(static_cast<std::byte*>(::operator new(bytes, kPage))) {
    std::memset(memory_, 0, bytes);
    rig_->Note(rig_->device()->RegisterHost(memory_, bytes));
  }
  ~PinnedMemory() {
    rig_->Note(rig_->device()->UnregisterHost(memory_));
    ::operator delete(memory_, kPage);
  }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  std::byte* data() { return memory_; }

 private:
  GpuRig* const rig_;
  std::byte* const memory_;
};

// Pieces of odd sizes go to the device in one order, within it in another, and back in a third.
Problem BatchesKeepTheirBytes(GpuRig& rig) {
  constexpr uint64_t kPieces = 200;
  constexpr uint64_t kPieceBytesMax = 4096;
  constexpr uint64_t kBytes = kPieces * kPieceBytesMax;
  std::mt19937_64 random(11);
  PinnedMemory host(&rig, 2 * kBytes);
  DeviceArray<std::byte> device(&rig, 2 * kBytes);
  for (uint64_t i = 0; i < kBytes; ++i) host.data()[i] = static_cast<std::byte>(random());
  std::vector<DeviceCopy> in;
  std::vector<DeviceCopy> within;
  std::vector<DeviceCopy> out;
  for (uint64_t i = 0; i < kPieces; ++i) {
    const uint64_t at = i * kPieceBytesMax;
    const uint64_t bytes = 1 + random() % kPieceBytesMax;
    in.push_back({device.bytes() + at, host.data() + at, bytes});
    within.push_back({device.bytes() + kBytes + at, device.bytes() + at, bytes});
    out.push_back({host.data() + kBytes + at, device.bytes() + kBytes + at, bytes});
  }
  std::shuffle(in.begin(), in.end(), random);
  std::shuffle(within.begin(), within.end(), random);
  const std::vector<DeviceCopy> expected = out;
  std::shuffle(out.begin(), out.end(), random);
  const auto give = [&](CopyDirection direction, const std::vector<DeviceCopy>& copies) {
    rig.Note(rig.device()->CopyBatch(direction, copies.data(), copies.size(), rig.stream()));
  };
  give(CopyDirection::kHostToDevice, in);
  give(CopyDirection::kDeviceToDevice, within);
  give(CopyDirection::kDeviceToHost, out);
  rig.Finish();
  for (const DeviceCopy& copy : expected) {
    const auto* got = static_cast<const std::byte*>(copy.to);
    rig.Note(Difference("a piece of a batch", got, got - kBytes, copy.bytes));
  }
  return rig.TakeProblem();
}

// Slots that streams fill and read. Each write and each read has host memory of its own, and all is
// compared when all is done, so that no wait of ours hides one that is missing.
class SharedSlots {
 public:
  SharedSlots(GpuRig* rig, uint64_t seed)
      : rig_(rig),
        random_(seed),
        guards_(rig->device()),
        host_(rig, 2 * kSteps * kSlotBytesMax),
        streams_(kStreams) {
    rig_->Note(DevicePool::Make(rig->device(), kPoolBytes, &pool_));
    for (Stream& stream : streams_) rig_->Note(rig_->device()->MakeStream(&stream));
  }
  ~SharedSlots() {
    for (const Stream& stream : streams_) rig_->device()->DestroyStream(stream);
  }

  Problem Run() {
    for (uint64_t step = 0; step < kSteps && pool_ != nullptr; ++step) {
      if (held_.empty() || random_() % 3 == 0) {
        Fill(step);
      } else if (random_() % 3 > 0) {
        Read(step);
      } else {
        Free();
      }
    }
    for (const Stream& stream : streams_) Await(stream);
    for (const Expected& read : reads_) {
      const std::vector<std::byte> bytes(read.bytes, read.pattern);
      rig_->Note(Difference("a slot that was read", read.at, bytes.data(), read.bytes));
    }
    return rig_->TakeProblem();
  }

 private:
  static constexpr uint64_t kSteps = 400;
  static constexpr uint64_t kStreams = 3;
  static constexpr uint64_t kSlotBytesMax = 4096;
  static constexpr uint64_t kPoolBytes = DevicePool::kSegmentsAtLeast * kSlotBytesMax;

  struct Held {
    DevicePool::Slot slot;
    DeviceRange range;
    std::byte pattern{};
  };
  struct Expected {
    const std::byte* at = nullptr;
    uint64_t bytes = 0;
    std::byte pattern{};
  };

  Stream AnyStream() { return streams_[random_() % kStreams]; }

  // A slot of some size, mostly one that was freed just now; none: the pool is full.
  void Fill(uint64_t step) {
    const uint64_t bytes = kSlotBytesMax >> (random_() % 3);
    Held held;
    if (!pool_->Allocate({1, bytes}, &held.slot)) return Free();
    held.range = {pool_->Address(held.slot), bytes};
    held.pattern = static_cast<std::byte>(1 + step % 255);
    std::byte* from = host_.data() + 2 * step * kSlotBytesMax;
    std::memset(from, std::to_integer<int>(held.pattern), bytes);
    const Stream stream = AnyStream();
    const DeviceCopy copy = {pool_->Address(held.slot), from, bytes};
    rig_->Note(guards_.BeforeWrite(&held.range, 1, stream));
    rig_->Note(rig_->device()->CopyBatch(CopyDirection::kHostToDevice, &copy, 1, stream));
    rig_->Note(guards_.AfterWrite(&held.range, 1, stream));
    held_.push_back(held);
  }
  void Read(uint64_t step) {
    const Held& held = held_[random_() % held_.size()];
    std::byte* to = host_.data() + (2 * step + 1) * kSlotBytesMax;
    const Stream stream = AnyStream();
    const DeviceCopy copy = {to, held.range.start, held.range.bytes};
    rig_->Note(guards_.BeforeRead(&held.range, 1, stream));
    rig_->Note(rig_->device()->CopyBatch(CopyDirection::kDeviceToHost, &copy, 1, stream));
    rig_->Note(guards_.AfterRead(&held.range, 1, stream));
    reads_.push_back({to, held.range.bytes, held.pattern});
  }
  // While others may still read it.
  void Free() {
    const auto at = held_.begin() + static_cast<std::ptrdiff_t>(random_() % held_.size());
    pool_->Free(at->slot);
    held_.erase(at);
  }
  void Await(const Stream& stream) {
    kernels::Event event;
    rig_->Note(rig_->device()->MakeEvent(&event));
    rig_->Note(rig_->device()->Record(event, stream));
    rig_->Note(rig_->device()->Wait(event));
    rig_->device()->DestroyEvent(event);
  }

  GpuRig* const rig_;
  std::mt19937_64 random_;
  SlotGuards guards_;
  PinnedMemory host_;
  std::unique_ptr<DevicePool> pool_;
  std::vector<Stream> streams_;
  std::vector<Held> held_;
  std::vector<Expected> reads_;
};

Problem SlotsAreReusedAfterTheirReaders(GpuRig& rig) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Problem problem = SharedSlots(&rig, seed).Run();
    if (!problem.empty()) return "seed " + std::to_string(seed) + ": " + problem;
  }
  return {};
}

Problem PoolWithoutTheMemorySaysSo(GpuRig& rig) {
  std::unique_ptr<DevicePool> pool;
  const Problem problem =
      DevicePool::Make(rig.device(), 2 * rig.device()->facts().memory_bytes, &pool);
  if (problem.empty()) return "a pool of twice the device's memory was made";
  return {};
}

}  // namespace

std::vector<GpuCase> DeviceTierCases() {
  return {{"device tier: batches of copies", BatchesKeepTheirBytes},
          {"device tier: slots that streams share", SlotsAreReusedAfterTheirReaders},
          {"device tier: a pool too large", PoolWithoutTheMemorySaysSo}};
}

}  // namespace cairn::gpu_check
