// Gather and Scatter against block_copy.h: the same blocks on the host, then every byte of the
// store's memory, or of the engine's tensor and its scales, compared.
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/block_copy.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/numbers.h"
#include "tests/gpu/paged_memory.h"

namespace cairn::gpu_check {
namespace {

using kernels::BlockCopy;
using kernels::BlockPlace;
using kernels::EngineLayout;
using kernels::EngineTensor;
using kernels::KvDtype;
using kernels::KvScales;
using kernels::KvShape;

constexpr uint64_t kSegmentOffset = 64;
constexpr uint64_t kBlocks = 6;
constexpr uint32_t kHeadsBefore = 1;  // Of the engine's, that are not the shape's.

struct CopySetup {
  KvShape shape;
  EngineLayout layout = EngineLayout::kKvBlocks;
  bool with_refused = false;
};

std::string Describe(const CopySetup& setup, const char* what) {
  return std::string(what) + " " + NameOf(setup.shape.dtype) + ", layout " +
         std::to_string(static_cast<uint32_t>(setup.layout)) + ", dims " +
         std::to_string(setup.shape.key_dim) + " and " + std::to_string(setup.shape.value_dim) +
         ", tokens " + std::to_string(setup.shape.page_tokens);
}

std::vector<std::byte> RandomBytes(uint64_t count, std::mt19937_64* random) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>((*random)());
  return bytes;
}

// The engine's tensor and scales on the host and on the device.
struct Engine {
  Engine(GpuRig* rig, const CopySetup& setup, std::mt19937_64* random)
      : tensor(MakeEngineTensor(setup.layout, setup.shape, kBlocks,
                                setup.shape.kv_heads + kHeadsBefore, kHeadsBefore, nullptr)),
        rows(RandomBytes(tensor.bytes, random)),
        device_rows(rig, rows) {
    const KvShape& shape = setup.shape;
    if (shape.scales != KvScales::kNone) {
      const uint64_t tokens = shape.scales == KvScales::kPerHead ? 1 : shape.page_tokens;
      // [blocks][K, V][heads][tokens]
      const uint64_t head_bytes = tokens * sizeof(float);
      tensor.key_scales.head_stride = head_bytes;
      tensor.key_scales.token_stride = sizeof(float);
      tensor.key_scales.block_stride = 2 * shape.kv_heads * head_bytes;
      tensor.key_scales.bytes = kBlocks * tensor.key_scales.block_stride;
      tensor.value_scales = tensor.key_scales;
      tensor.value_scales.bytes -= shape.kv_heads * head_bytes;
    }
    scales = RandomBytes(tensor.key_scales.bytes, random);
    device_scales = std::make_unique<DeviceArray<std::byte>>(rig, scales);
  }

  EngineTensor On(std::byte* rows_at, std::byte* scales_at, const KvShape& shape) const {
    EngineTensor placed = tensor;
    placed.base = rows_at;
    if (shape.scales != KvScales::kNone) {
      placed.key_scales.base = scales_at;
      placed.value_scales.base = scales_at + shape.kv_heads * placed.key_scales.head_stride;
    }
    return placed;
  }

  EngineTensor tensor;
  std::vector<std::byte> rows;
  DeviceArray<std::byte> device_rows;
  std::vector<std::byte> scales;
  std::unique_ptr<DeviceArray<std::byte>> device_scales;
};

// Places on the device: those of the host, and where asked for some that no copy may follow, or
// that lie behind the count.
std::vector<BlockPlace> DevicePlaces(const CopySetup& setup, const PagedMemory& memory,
                                     std::vector<BlockPlace> places) {
  if (!setup.with_refused) return places;
  places.push_back({PagedMemory::PageOutside(), 0});
  places.push_back({memory.PageBeyondItsRegion(), 0});
  places.push_back({memory.pages()[0], kBlocks});
  return places;
}

Problem Check(GpuRig& rig, const CopySetup& setup, bool gathers, uint64_t seed) {
  std::mt19937_64 random(seed);
  const KvShape& shape = setup.shape;
  PagedMemory memory(&rig, SegmentOf(shape).bytes, kSegmentOffset, kBlocks);
  for (uint64_t page = 0; page < kBlocks && !gathers; ++page) {
    const std::vector<std::byte> bytes = RandomBytes(SegmentOf(shape).bytes, &random);
    std::copy(bytes.begin(), bytes.end(), memory.HostSlot(page) + kSegmentOffset);
  }
  memory.Upload();
  Engine engine(&rig, setup, &random);
  // All but one block, in another order.
  std::vector<BlockPlace> places;
  for (uint64_t i = 0; i + 1 < kBlocks; ++i) {
    places.push_back({memory.pages()[i], (i * 5 + 2) % kBlocks});
  }
  const std::vector<BlockPlace> device_places = DevicePlaces(setup, memory, places);
  DeviceArray<BlockPlace> place_table(&rig, device_places);
  // One more than there are is launched.
  DeviceArray<uint64_t> count(&rig, std::vector<uint64_t>{device_places.size()});
  DeviceArray<uint32_t> refused(&rig, std::vector<uint32_t>{0});

  BlockCopy copy;
  copy.shape = shape;
  copy.segment_offset = kSegmentOffset;
  copy.region_count = PagedMemory::kRegions;
  BlockCopy device = copy;
  copy.regions = memory.regions();
  copy.places = places.data();
  copy.place_count = places.size();
  copy.tensor = engine.On(engine.rows.data(), engine.scales.data(), shape);
  device.regions = memory.device_regions();
  device.places = place_table.data();
  device.place_count = device_places.size() + 1;
  device.tensor = engine.On(engine.device_rows.data(), engine.device_scales->data(), shape);
  const kernels::GpuBlockCopy call = {device, count.data(), refused.data()};
  const char* const what = gathers ? "gather" : "scatter";
  rig.Note(gathers ? GatherBlocks(copy) : ScatterBlocks(copy));
  rig.Note(gathers ? rig.kernels()->Gather(call, rig.stream())
                   : rig.kernels()->Scatter(call, rig.stream()));
  rig.Note(memory.Compare(Describe(setup, what)));
  rig.Note(Difference(Describe(setup, what) + ", tensor", engine.device_rows.Read().data(),
                      engine.rows.data(), engine.rows.size()));
  rig.Note(Difference(Describe(setup, what) + ", scales", engine.device_scales->Read().data(),
                      engine.scales.data(), engine.scales.size()));
  const uint32_t expected = setup.with_refused ? 3 : 0;
  if (refused.Read()[0] != expected) rig.Note(Describe(setup, what) + ": refused wrongly");
  return rig.TakeProblem();
}

KvShape ShapeOf(KvDtype dtype, KvScales scales, uint32_t heads, uint32_t key_dim,
                uint32_t value_dim, uint32_t page_tokens) {
  KvShape shape;
  shape.dtype = dtype;
  shape.scales = scales;
  shape.kv_heads = heads;
  shape.key_dim = key_dim;
  shape.value_dim = value_dim;
  shape.page_tokens = page_tokens;
  return shape;
}

Problem CheckBoth(GpuRig& rig, const CopySetup& setup, uint64_t seed) {
  const Problem problem = Check(rig, setup, true, seed);
  return problem.empty() ? Check(rig, setup, false, seed + 1) : problem;
}

Problem EveryLayout(GpuRig& rig) {
  uint64_t seed = 1;
  for (const EngineLayout layout : {EngineLayout::kKvBlocks, EngineLayout::kBlocksKv,
                                    EngineLayout::kBlocksKvHeads, EngineLayout::kPacked}) {
    for (const KvDtype dtype : kAllDtypes) {
      const bool is_integer = dtype == KvDtype::kInt8 || dtype == KvDtype::kInt4;
      for (const KvScales scales :
           {KvScales::kNone, KvScales::kPerHead, KvScales::kPerTokenAndHead}) {
        if (is_integer && scales == KvScales::kNone) continue;
        const Problem problem =
            CheckBoth(rig, {ShapeOf(dtype, scales, 2, 64, 64, 16), layout, false}, seed += 2);
        if (!problem.empty()) return problem;
      }
    }
  }
  return "";
}

// Rows of 4 bytes and of 1, padding of odd sizes, latent keys.
Problem OddShapes(GpuRig& rig) {
  uint64_t seed = 1000;
  for (const KvShape& shape : {ShapeOf(KvDtype::kBfloat16, KvScales::kNone, 3, 66, 66, 5),
                               ShapeOf(KvDtype::kInt4, KvScales::kPerTokenAndHead, 1, 2, 2, 3),
                               ShapeOf(KvDtype::kInt4, KvScales::kPerHead, 3, 6, 6, 7),
                               ShapeOf(KvDtype::kFloat8E4m3fn, KvScales::kNone, 1, 576, 0, 16),
                               ShapeOf(KvDtype::kFloat32, KvScales::kPerHead, 1, 128, 128, 1),
                               ShapeOf(KvDtype::kBfloat16, KvScales::kNone, 1, 576, 0, 64)}) {
    const EngineLayout layout =
        shape.value_dim == 0 ? EngineLayout::kPacked : EngineLayout::kBlocksKvHeads;
    const Problem problem = CheckBoth(rig, {shape, layout, false}, seed += 2);
    if (!problem.empty()) return problem;
  }
  return "";
}

Problem RefusesWhatIsOutside(GpuRig& rig) {
  CopySetup setup;
  setup.shape = ShapeOf(KvDtype::kInt8, KvScales::kPerTokenAndHead, 3, 32, 32, 8);
  setup.with_refused = true;
  return CheckBoth(rig, setup, 5);
}

}  // namespace

std::vector<GpuCase> BlockCopyCases() {
  return {{"block copy: every layout", EveryLayout},
          {"block copy: odd shapes", OddShapes},
          {"block copy: blocks and pages outside", RefusesWhatIsOutside}};
}

}  // namespace cairn::gpu_check
