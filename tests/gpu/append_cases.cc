// Append against AppendTokens: the same rows into the same pages on the host, then every byte of
// both memories compared, gaps and padding included.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "kernels/append.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/numbers.h"
#include "tests/gpu/paged_memory.h"

namespace cairn::gpu_check {
namespace {

using kernels::AppendBatch;
using kernels::KvDtype;
using kernels::KvScales;
using kernels::KvShape;

constexpr uint64_t kSegmentOffset = 128;

struct AppendSetup {
  KvShape shape;
  KvDtype source_dtype = KvDtype::kBfloat16;
  uint64_t row_gap_bytes = 0;  // Behind each row of the source.
  uint64_t pages = 5;
  bool with_special = true;
  bool with_refused = false;  // Slots beyond the table, and a page outside its region.
};

std::string Describe(const AppendSetup& setup) {
  return std::string("append ") + NameOf(setup.source_dtype) + " to " + NameOf(setup.shape.dtype) +
         ", heads " + std::to_string(setup.shape.kv_heads) + ", dims " +
         std::to_string(setup.shape.key_dim) + " and " + std::to_string(setup.shape.value_dim);
}

// Every second slot, shuffled, some of them padding.
std::vector<int64_t> MakeSlots(const AppendSetup& setup, std::mt19937_64* random) {
  std::vector<int64_t> slots;
  for (uint64_t s = 0; s < setup.pages * setup.shape.page_tokens; s += 2) {
    slots.push_back((*random)() % 8 == 0 ? -1 : static_cast<int64_t>(s));
  }
  std::shuffle(slots.begin(), slots.end(), *random);
  return slots;
}

Problem Check(GpuRig& rig, const AppendSetup& setup, uint64_t seed) {
  std::mt19937_64 random(seed);
  const KvShape& shape = setup.shape;
  PagedMemory memory(&rig, SegmentOf(shape).bytes, kSegmentOffset, setup.pages);
  const uint64_t element = BitsOf(setup.source_dtype) / 8;
  std::vector<int64_t> slots = MakeSlots(setup, &random);
  const uint64_t dim = std::max(shape.key_dim, shape.value_dim);
  const uint64_t row = dim * element + setup.row_gap_bytes;
  const std::vector<std::byte> rows =
      MakeNumbers(setup.source_dtype, slots.size() * shape.kv_heads * 2 * row / element,
                  setup.with_special, &random);
  DeviceArray<std::byte> device_rows(&rig, rows);

  AppendBatch batch;
  batch.shape = shape;
  batch.source_dtype = setup.source_dtype;
  batch.region_count = PagedMemory::kRegions;
  batch.segment_offset = kSegmentOffset;
  batch.page_count = memory.pages().size();
  batch.token_count = slots.size();
  // Keys of all heads of a token, then its values.
  batch.keys = {rows.data(), 2 * shape.kv_heads * row, row};
  batch.values = {rows.data() + shape.kv_heads * row, 2 * shape.kv_heads * row, row};
  AppendBatch device = batch;
  batch.regions = memory.regions();
  batch.pages = memory.pages().data();
  batch.slots = slots.data();
  Problem problem = AppendTokens(batch);
  if (!problem.empty()) return Describe(setup) + ", on the host: " + problem;

  std::vector<kernels::KvPage> pages = memory.pages();
  std::vector<int64_t> device_slots = slots;
  uint32_t refused = 0;
  if (setup.with_refused) {
    pages.push_back(PagedMemory::PageOutside());
    pages.push_back(memory.PageBeyondItsRegion());
    const int64_t beyond = static_cast<int64_t>(setup.pages * shape.page_tokens);
    for (int64_t& slot : device_slots) {
      if (slot < 0) slot = beyond + static_cast<int64_t>(refused++ % 3 * shape.page_tokens);
    }
  }
  DeviceArray<kernels::KvPage> page_table(&rig, pages);
  DeviceArray<int64_t> slot_table(&rig, device_slots);
  DeviceArray<uint32_t> refused_word(&rig, std::vector<uint32_t>{0});
  device.regions = memory.device_regions();
  device.pages = page_table.data();
  device.page_count = pages.size();
  device.slots = slot_table.data();
  device.keys.data = device_rows.data();
  device.values.data = device_rows.data() + shape.kv_heads * row;
  rig.Note(rig.kernels()->Append({device, refused_word.data()}, rig.stream()));
  problem = memory.Compare(Describe(setup));
  const std::vector<uint32_t> counted = refused_word.Read();
  rig.Note(problem);
  if (counted[0] != refused) {
    rig.Note(Describe(setup) + ": refused " + std::to_string(counted[0]) + " tokens, not " +
             std::to_string(refused));
  }
  return rig.TakeProblem();
}

KvShape ShapeOf(KvDtype dtype, uint32_t heads, uint32_t key_dim, uint32_t value_dim,
                uint32_t page_tokens) {
  KvShape shape;
  shape.dtype = dtype;
  shape.kv_heads = heads;
  shape.key_dim = key_dim;
  shape.value_dim = value_dim;
  shape.page_tokens = page_tokens;
  const bool is_integer = dtype == KvDtype::kInt8 || dtype == KvDtype::kInt4;
  shape.scales = is_integer ? KvScales::kPerTokenAndHead : KvScales::kNone;
  return shape;
}

Problem EveryDtype(GpuRig& rig) {
  uint64_t seed = 1;
  for (const KvDtype dtype : kAllDtypes) {
    for (const KvDtype source : kWideDtypes) {
      for (const bool with_scales : {false, true}) {
        AppendSetup setup;
        setup.shape = ShapeOf(dtype, 3, 128, 128, 16);
        if (with_scales) setup.shape.scales = KvScales::kPerTokenAndHead;
        setup.source_dtype = source;
        const Problem problem = Check(rig, setup, ++seed);
        if (!problem.empty()) return problem;
      }
    }
  }
  return "";
}

// Rows that 16 bytes do not divide, gaps between them, few tokens a page, latent keys.
Problem OddShapes(GpuRig& rig) {
  uint64_t seed = 100;
  for (const KvDtype dtype : kAllDtypes) {
    for (const KvDtype source : kWideDtypes) {
      for (const KvShape& shape : {ShapeOf(dtype, 2, 66, 34, 5), ShapeOf(dtype, 1, 576, 0, 16),
                                   ShapeOf(dtype, 1, 2, 2, 1), ShapeOf(dtype, 5, 264, 8, 3)}) {
        AppendSetup setup;
        setup.shape = shape;
        setup.source_dtype = source;
        setup.row_gap_bytes = seed % 2 * 12;
        const Problem problem = Check(rig, setup, ++seed);
        if (!problem.empty()) return problem;
      }
    }
  }
  return "";
}

Problem RefusesWhatIsOutside(GpuRig& rig) {
  AppendSetup setup;
  setup.shape = ShapeOf(KvDtype::kInt8, 4, 64, 64, 4);
  setup.pages = 20;
  setup.with_refused = true;
  return Check(rig, setup, 7);
}

}  // namespace

std::vector<GpuCase> AppendCases() {
  return {{"append: every dtype", EveryDtype},
          {"append: odd shapes", OddShapes},
          {"append: slots and pages outside", RefusesWhatIsOutside}};
}

}  // namespace cairn::gpu_check
