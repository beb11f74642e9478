// Rows of numbers into codes and back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gpu/element_units.h"
#include "kernels/gpu/gpu_kernels.h"
#include "kernels/simt/simt.h"

CAIRN_SIMT_BEGIN

struct RowsParams {
  KvDtype float_dtype = KvDtype::kFloat32;  // Of the numbers.
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  uint64_t rows = 0;
  uint64_t row_elements = 0;
  uint32_t lanes = 0;  // Of a row.
};

// Computing a scale is a step for all lanes of a warp: row.computes_scale is the same for all.
template <KvDtype kDtype, bool kWide>
struct QuantizeKernel {
  struct Params {
    RowsParams rows;
    GpuScales scale_use = GpuScales::kNone;
    float* scales = nullptr;
  };
  static constexpr uint32_t kThreads = 128;
  static constexpr uint32_t kBlocksPerProcessor = 8;
  static constexpr uint32_t kUnit = kUnitElements<kDtype, kWide>;

  static CAIRN_SIMT_DEVICE void Run(const Params& params) {
    const RowsParams& rows = params.rows;
    const uint64_t thread = uint64_t{simt::BlockX()} * kThreads + simt::Thread();
    const uint64_t index = thread / rows.lanes;
    const uint32_t lane = simt::Thread() % rows.lanes;
    const bool has_row = index < rows.rows;
    RowToEncode row;
    row.source_dtype = rows.float_dtype;
    row.computes_scale = params.scale_use == GpuScales::kComputed;
    if (has_row) {
      const uint64_t number_bytes = BytesOfFloat(rows.float_dtype);
      row.numbers = rows.from + index * rows.row_elements * number_bytes;
      row.codes = rows.to + BytesOfElements<kDtype>(index * rows.row_elements);
      row.units = rows.row_elements / kUnit;
      if (params.scale_use == GpuScales::kGiven) {
        row.scale = simt::LoadGlobal(params.scales + index);
      }
    }
    const float scale = EncodeRow<kDtype, kUnit>(row, lane, rows.lanes);
    if (has_row && row.computes_scale && lane == 0) {
      simt::StoreGlobal(params.scales + index, scale);
    }
  }
};

template <KvDtype kDtype, bool kWide>
struct DequantizeKernel {
  struct Params {
    RowsParams rows;
    const float* scales = nullptr;
  };
  static constexpr uint32_t kThreads = 128;
  static constexpr uint32_t kBlocksPerProcessor = 8;
  static constexpr uint32_t kUnit = kUnitElements<kDtype, kWide>;

  static CAIRN_SIMT_DEVICE void Run(const Params& params) {
    const RowsParams& rows = params.rows;
    const uint64_t thread = uint64_t{simt::BlockX()} * kThreads + simt::Thread();
    const uint64_t index = thread / rows.lanes;
    if (index >= rows.rows) return;
    const uint64_t number_bytes = BytesOfFloat(rows.float_dtype);
    const std::byte* const codes = rows.from + BytesOfElements<kDtype>(index * rows.row_elements);
    std::byte* const to = rows.to + index * rows.row_elements * number_bytes;
    const float scale = params.scales != nullptr ? simt::LoadGlobal(params.scales + index) : 1;
    const uint64_t units = rows.row_elements / kUnit;
    for (uint64_t unit = simt::Thread() % rows.lanes; unit < units; unit += rows.lanes) {
      float numbers[kUnit];
      LoadUnit<kDtype, kUnit>(codes, unit, numbers);
      CAIRN_SIMT_UNROLL
      for (uint32_t i = 0; i < kUnit; ++i) {
        // A scale of 1 changes nothing, a NaN's bits included.
        numbers[i] = scale == 1 ? numbers[i] : numbers[i] * scale;
      }
      StoreFloatUnit<kUnit>(rows.float_dtype, to, unit, numbers);
    }
  }
};

CAIRN_SIMT_END
