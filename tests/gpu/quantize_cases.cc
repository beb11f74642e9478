// Quantize and Dequantize against quantize.h, over all codes of 16 bits and fewer, bit for bit.
#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/decode_element.h"
#include "kernels/quantize.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/numbers.h"

namespace cairn::gpu_check {
namespace {

using kernels::GpuDequantize;
using kernels::GpuQuantize;
using kernels::GpuScales;
using kernels::KvDtype;

struct Rows {
  KvDtype float_dtype = KvDtype::kFloat32;
  KvDtype dtype = KvDtype::kFloat8E4m3fn;
  uint64_t rows = 0;
  uint64_t row_elements = 0;
  uint64_t elements() const { return rows * row_elements; }
};

std::string Describe(const char* what, const Rows& rows) {
  return std::string(what) + " " + NameOf(rows.float_dtype) + " and " + NameOf(rows.dtype) + ", " +
         std::to_string(rows.rows) + " rows of " + std::to_string(rows.row_elements);
}

Problem CheckQuantize(GpuRig& rig, const Rows& rows, const std::vector<std::byte>& numbers,
                      GpuScales use) {
  std::vector<float> values(rows.elements());
  for (uint64_t i = 0; i < values.size(); ++i) {
    values[i] = DecodeElement(rows.float_dtype, numbers.data(), i);
  }
  std::vector<float> scales(rows.rows, 1);
  std::vector<std::byte> expected(rows.elements() * BitsOf(rows.dtype) / 8);
  for (uint64_t r = 0; r < rows.rows; ++r) {
    const float* const row = &values[r * rows.row_elements];
    if (use == GpuScales::kGiven) scales[r] = 0.0371f * static_cast<float>(r % 7 + 1);
    if (use == GpuScales::kComputed) {
      scales[r] = kernels::ScaleFor(rows.dtype, row, rows.row_elements);
    }
    kernels::Quantize(rows.dtype, row, rows.row_elements, scales[r],
                      &expected[r * rows.row_elements * BitsOf(rows.dtype) / 8]);
  }
  DeviceArray<std::byte> from(&rig, numbers);
  DeviceArray<std::byte> to(&rig, expected.size());
  DeviceArray<float> device_scales(&rig, scales.size());
  if (use == GpuScales::kGiven) device_scales.Write(scales);
  GpuQuantize call;
  call.source_dtype = rows.float_dtype;
  call.dtype = rows.dtype;
  call.numbers = from.data();
  call.codes = to.data();
  call.scales = device_scales.data();
  call.scale_use = use;
  call.rows = rows.rows;
  call.row_elements = rows.row_elements;
  rig.Note(rig.kernels()->Quantize(call, rig.stream()));
  const std::vector<std::byte> got = to.Read();
  rig.Note(Difference(Describe("codes of", rows), got.data(), expected.data(), got.size()));
  if (use == GpuScales::kComputed) {
    rig.Note(Difference(Describe("scales of", rows), device_scales.Read().data(), scales.data(),
                        scales.size() * sizeof(float)));
  }
  return rig.TakeProblem();
}

Problem CheckDequantize(GpuRig& rig, const Rows& rows, const std::vector<std::byte>& codes,
                        bool with_scales) {
  std::vector<float> scales(rows.rows, 1);
  std::vector<std::byte> expected(rows.elements() * BitsOf(rows.float_dtype) / 8);
  std::vector<float> values(rows.row_elements);
  for (uint64_t r = 0; r < rows.rows; ++r) {
    if (with_scales) scales[r] = 0.0371f * static_cast<float>(r % 7 + 1);
    kernels::Dequantize(rows.dtype, &codes[r * rows.row_elements * BitsOf(rows.dtype) / 8],
                        rows.row_elements, scales[r], values.data());
    std::byte* const to = &expected[r * rows.row_elements * BitsOf(rows.float_dtype) / 8];
    if (rows.float_dtype == KvDtype::kFloat32) {
      std::memcpy(to, values.data(), rows.row_elements * sizeof(float));
    } else {
      kernels::Quantize(rows.float_dtype, values.data(), rows.row_elements, 1, to);
    }
  }
  DeviceArray<std::byte> from(&rig, codes);
  DeviceArray<std::byte> to(&rig, expected.size());
  DeviceArray<float> device_scales(&rig, scales);
  GpuDequantize call;
  call.dtype = rows.dtype;
  call.target_dtype = rows.float_dtype;
  call.codes = from.data();
  call.numbers = to.data();
  call.scales = with_scales ? device_scales.data() : nullptr;
  call.rows = rows.rows;
  call.row_elements = rows.row_elements;
  rig.Note(rig.kernels()->Dequantize(call, rig.stream()));
  const std::vector<std::byte> got = to.Read();
  rig.Note(Difference(Describe("numbers of", rows), got.data(), expected.data(), got.size()));
  return rig.TakeProblem();
}

// 0, 1, 2, ... as codes of `bits`, enough for `count` of them.
std::vector<std::byte> EveryCode(uint32_t bits, uint64_t count) {
  std::vector<std::byte> bytes(count * bits / 8);
  for (uint64_t i = 0; i < bytes.size(); ++i) {
    if (bits == 16) bytes[i] = static_cast<std::byte>(i % 2 == 0 ? i / 2 : i / 512);
    if (bits < 16) bytes[i] = static_cast<std::byte>(i);
  }
  return bytes;
}

Problem EveryFloat16Code(GpuRig& rig) {
  for (const KvDtype source : {KvDtype::kBfloat16, KvDtype::kFloat16}) {
    for (const KvDtype dtype : kAllDtypes) {
      Rows rows = {source, dtype, 256, 256};
      for (const GpuScales use : {GpuScales::kNone, GpuScales::kGiven, GpuScales::kComputed}) {
        const Problem problem = CheckQuantize(rig, rows, EveryCode(16, rows.elements()), use);
        if (!problem.empty()) return problem;
      }
    }
  }
  return "";
}

Problem Float32Rows(GpuRig& rig) {
  std::mt19937_64 random(3);
  for (const KvDtype dtype : kAllDtypes) {
    // The last are rows of heads of whole pages, more than a warp loads at once.
    for (const uint64_t elements : {2, 14, 64, 128, 250, 576, 2048}) {
      Rows rows = {KvDtype::kFloat32, dtype, 9, elements};
      for (const GpuScales use : {GpuScales::kNone, GpuScales::kGiven, GpuScales::kComputed}) {
        for (const bool with_special : {false, true}) {
          const Problem problem = CheckQuantize(
              rig, rows, MakeNumbers(KvDtype::kFloat32, rows.elements(), with_special, &random),
              use);
          if (!problem.empty()) return problem;
        }
      }
    }
  }
  return "";
}

Problem EveryStoredCode(GpuRig& rig) {
  std::mt19937_64 random(4);
  for (const KvDtype target : kWideDtypes) {
    for (const KvDtype dtype : kAllDtypes) {
      for (const uint64_t elements : {256, 30}) {
        Rows rows = {target, dtype, elements == 256 ? 256u : 11u, elements};
        const std::vector<std::byte> codes =
            dtype == KvDtype::kFloat32 ? MakeNumbers(dtype, rows.elements(), true, &random)
                                       : EveryCode(BitsOf(dtype), rows.elements());
        for (const bool with_scales : {false, true}) {
          const Problem problem = CheckDequantize(rig, rows, codes, with_scales);
          if (!problem.empty()) return problem;
        }
      }
    }
  }
  return "";
}

}  // namespace

std::vector<GpuCase> QuantizeCases() {
  return {{"quantize: every code of 16 bits", EveryFloat16Code, false},
          {"quantize: rows of float32", Float32Rows},
          {"dequantize: every code", EveryStoredCode}};
}

}  // namespace cairn::gpu_check
