// Copies over the link, and the kernels that move or read whole segments.
#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/block_copy.h"
#include "kernels/kv_segment.h"
#include "tests/gpu/bench.h"
#include "tests/gpu/gpu_rig.h"

namespace cairn::gpu_check {
namespace {

using kernels::BlockPlace;
using kernels::CopyDirection;
using kernels::DeviceCopy;
using kernels::GpuSegment;

constexpr uint32_t kReplays = 10;

// Host slots in one order to device slots in another, or back.
std::vector<DeviceCopy> SlotCopies(CopyDirection direction, std::byte* host, std::byte* device,
                                   uint64_t slots, uint64_t slot_bytes) {
  std::vector<uint64_t> order(slots);
  std::iota(order.begin(), order.end(), uint64_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(7));
  std::vector<DeviceCopy> copies;
  for (uint64_t i = 0; i < slots; ++i) {
    std::byte* const at_host = host + i * slot_bytes;
    std::byte* const at_device = device + order[i] * slot_bytes;
    copies.push_back(direction == CopyDirection::kHostToDevice
                         ? DeviceCopy{at_device, at_host, slot_bytes}
                         : DeviceCopy{at_host, at_device, slot_bytes});
  }
  return copies;
}

// Host memory registered as the tier's segments are, and as much that the runtime pinned.
struct LinkMemory {
  explicit LinkMemory(Backend* used, uint64_t bytes_wanted)
      : backend(used),
        rig(used->device(), used->kernels(), used->registry()),
        bytes(bytes_wanted),
        device(&rig, bytes),
        segment(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{4096}))) {
    std::fill_n(segment, bytes, std::byte{1});
    rig.Note(backend->device()->RegisterHost(segment, bytes));
    rig.Note(backend->AllocatePinned(bytes, &pinned));
  }
  ~LinkMemory() {
    if (pinned != nullptr) backend->FreePinned(pinned);
    rig.Note(backend->device()->UnregisterHost(segment));
    ::operator delete (segment, std::align_val_t{4096});
  }

  Backend* const backend;
  GpuRig rig;
  const uint64_t bytes;
  DeviceArray<std::byte> device;
  std::byte* const segment;
  std::byte* pinned = nullptr;
};

Problem BenchLink(LinkMemory* memory, CopyDirection direction, uint64_t slot_bytes,
                  const std::string& key, BenchReport* report) {
  Backend* const backend = memory->backend;
  const std::vector<DeviceCopy> copies = SlotCopies(
      direction, memory->segment, memory->device.data(), memory->bytes / slot_bytes, slot_bytes);
  const bool down = direction == CopyDirection::kHostToDevice;
  double floor = 0;
  double seconds = 0;
  Problem problem =
      backend->Time({[&](kernels::Stream stream) {
                      return backend->PlainCopy(
                          direction, down ? memory->device.data() : memory->pinned,
                          down ? memory->pinned : memory->device.data(), memory->bytes, stream);
                    }},
                    kReplays, false, &floor);
  if (problem.empty()) {
    problem = backend->Time({[&](kernels::Stream stream) {
                              return backend->device()->CopyBatch(direction, copies.data(),
                                                                  copies.size(), stream);
                            }},
                            kReplays, false, &seconds);
  }
  if (problem.empty()) {
    report->PutTimes(key, static_cast<double>(memory->bytes) / 1e9, seconds, floor);
  }
  return problem;
}

// Blocks of one layer in an engine's tensor, and as many segments.
struct BlockMemory {
  BlockMemory(Backend* used, uint64_t blocks_wanted)
      : backend(used),
        rig(used->device(), used->kernels(), used->registry()),
        blocks(blocks_wanted),
        segment_bytes(SegmentOf(Shape()).bytes),
        bytes(blocks * segment_bytes),
        engine(&rig, bytes),
        store(&rig, bytes),
        regions(&rig, std::vector<kernels::WritableKvRegion>{{store.data(), bytes}}),
        places(&rig, Places()),
        segments(&rig, Segments()),
        digests(&rig, blocks),
        sink(&rig, std::vector<uint32_t>{0}) {
    rig.Note(backend->Fill(FillKind::kBfloat16, engine.data(), bytes, rig.stream()));
    rig.Note(backend->Fill(FillKind::kBfloat16, store.data(), bytes, rig.stream()));
    rig.Finish();
    call.copy.shape = Shape();
    call.copy.tensor = MakeEngineTensor(kernels::EngineLayout::kBlocksKv, Shape(), blocks,
                                        Shape().kv_heads, 0, engine.data());
    call.copy.regions = regions.data();
    call.copy.region_count = 1;
    call.copy.places = places.data();
    call.copy.place_count = blocks;
  }

  static kernels::KvShape Shape() {
    kernels::KvShape shape;
    shape.kv_heads = 8;
    shape.page_tokens = 16;
    shape.key_dim = 128;
    shape.value_dim = 128;
    return shape;
  }
  std::vector<BlockPlace> Places() const {
    std::vector<BlockPlace> made(blocks);
    for (uint64_t i = 0; i < blocks; ++i) made[i] = {{0, i * segment_bytes}, i};
    std::shuffle(made.begin(), made.end(), std::mt19937_64(9));
    return made;
  }
  std::vector<GpuSegment> Segments() {
    std::vector<GpuSegment> made;
    for (uint64_t i = 0; i < blocks; ++i) {
      made.push_back({store.data() + i * segment_bytes, segment_bytes, i});
    }
    return made;
  }

  Backend* const backend;
  GpuRig rig;
  const uint64_t blocks;
  const uint64_t segment_bytes;
  const uint64_t bytes;
  DeviceArray<std::byte> engine;
  DeviceArray<std::byte> store;
  DeviceArray<kernels::WritableKvRegion> regions;
  DeviceArray<BlockPlace> places;
  DeviceArray<GpuSegment> segments;
  DeviceArray<uint64_t> digests;
  DeviceArray<uint32_t> sink;
  kernels::GpuBlockCopy call;
};

Problem BenchSteps(BlockMemory* memory, BenchReport* report) {
  Backend* const backend = memory->backend;
  const auto time = [&](const Step& step, double* seconds) {
    return backend->Time({step}, kReplays, true, seconds);
  };
  double copy = 0, read = 0, gather = 0, scatter = 0, digest = 0;
  Problem problem = time(
      [&](kernels::Stream stream) {
        return backend->Copy(memory->store.data(), memory->engine.data(), memory->bytes, stream);
      },
      &copy);
  const auto next = [&](const Step& step, double* seconds) {
    if (problem.empty()) problem = time(step, seconds);
  };
  next(
      [&](kernels::Stream stream) {
        return backend->Read(memory->store.data(), memory->bytes, memory->sink.data(), stream);
      },
      &read);
  next([&](kernels::Stream stream) { return backend->kernels()->Gather(memory->call, stream); },
       &gather);
  next([&](kernels::Stream stream) { return backend->kernels()->Scatter(memory->call, stream); },
       &scatter);
  next(
      [&](kernels::Stream stream) {
        return backend->kernels()->DigestSegments(
            {memory->segments.data(), memory->blocks, nullptr, memory->digests.data(), nullptr},
            stream);
      },
      &digest);
  if (!problem.empty()) return problem;
  const double gigabytes = static_cast<double>(memory->bytes) / 1e9;
  report->PutTimes("gpu_gather", gigabytes, gather, copy);
  report->PutTimes("gpu_scatter", gigabytes, scatter, copy);
  report->PutTimes("gpu_digest", gigabytes, digest, read);
  return "";
}

}  // namespace

Problem BenchCopies(Backend* backend, BenchReport* report) {
  const bool tiny = backend->facts().is_emulated;
  // Slots of 2 MiB: sixteen tokens of a large model.
  const uint64_t slot_bytes = tiny ? 4096 : 2 << 20;
  LinkMemory memory(backend, slot_bytes * (tiny ? 4 : 512));
  Problem problem = memory.rig.TakeProblem();
  if (problem.empty()) {
    problem = BenchLink(&memory, CopyDirection::kHostToDevice, slot_bytes, "h2d", report);
  }
  if (problem.empty()) {
    problem = BenchLink(&memory, CopyDirection::kDeviceToHost, slot_bytes, "d2h", report);
  }
  return problem;
}

Problem BenchByteKernels(Backend* backend, BenchReport* report) {
  BlockMemory memory(backend, backend->facts().is_emulated ? 4 : 16384);
  const Problem problem = memory.rig.TakeProblem();
  return problem.empty() ? BenchSteps(&memory, report) : problem;
}

}  // namespace cairn::gpu_check
