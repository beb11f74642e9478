// LaunchQuantize and LaunchDequantize, defined. Included by the two files that compile them.
#pragma once

#include <string>
#include <type_traits>

#include "kernels/gpu/byte_launch.h"
#include "kernels/gpu/launch_checks.h"
#include "kernels/gpu/quantize_kernel.h"

CAIRN_SIMT_BEGIN

struct RowsCheck {
  KvDtype float_dtype;
  KvDtype dtype;
  const std::byte* numbers;
  const std::byte* codes;
  uint64_t rows;
  uint64_t row_elements;
};

inline Problem CheckRows(const RowsCheck& check) {
  if (!IsWideFloat(check.float_dtype)) {
    return std::string("numbers of ") + NameOf(check.float_dtype) +
           " are not float16, bfloat16 or float32";
  }
  if (BitsOf(check.dtype) == 0) {
    return "dtype " + std::to_string(static_cast<uint32_t>(check.dtype)) + " is not known";
  }
  if (check.dtype == KvDtype::kInt4 && check.row_elements % 2 != 0) {
    return "row_elements " + std::to_string(check.row_elements) + " is odd, for int4";
  }
  if (check.rows == 0 || check.row_elements == 0) return "";
  if (check.numbers == nullptr || check.codes == nullptr) return "numbers or codes is null";
  if (check.rows > (uint64_t{1} << 56) / check.row_elements) {
    return "rows times row_elements is more than memory has";
  }
  if (!IsMultiple(check.numbers, BitsOf(check.float_dtype) / 8) ||
      !IsMultiple(check.codes, BitsOf(check.dtype) / 8 == 0 ? 1 : BitsOf(check.dtype) / 8)) {
    return "numbers or codes are not aligned to their elements";
  }
  return "";
}

inline bool AreWideRows(const RowsCheck& check) {
  return check.row_elements % kWideUnit == 0 && IsMultiple(check.numbers, 16) &&
         IsMultiple(check.codes, 16);
}

// kKernel<dtype, wide>::Params begin with rows.
template <template <KvDtype, bool> class Kernel, class MakeParams>
Problem LaunchRows(const RowsCheck& check, const simt::LaunchTarget& target,
                   const MakeParams& make_params) {
  return WithDtype(check.dtype, [&](auto dtype) -> Problem {
    const auto launch = [&](auto wide) -> Problem {
      using Chosen = Kernel<decltype(dtype)::value, decltype(wide)::value>;
      typename Chosen::Params params;
      params.rows.float_dtype = check.float_dtype;
      params.rows.rows = check.rows;
      params.rows.row_elements = check.row_elements;
      params.rows.lanes = LanesOfRow(check.row_elements / Chosen::kUnit);
      make_params(&params);
      simt::LaunchShape shape;
      Problem problem =
          BlocksFor(check.rows * params.rows.lanes, Chosen::kThreads, &shape.blocks_x);
      if (!problem.empty()) return problem;
      return simt::Launch<Chosen>(target, shape, params);
    };
    return AreWideRows(check) ? launch(std::true_type()) : launch(std::false_type());
  });
}

Problem LaunchQuantize(const GpuQuantize& quantize, const simt::LaunchTarget& target) {
  const RowsCheck check = {quantize.source_dtype, quantize.dtype, quantize.numbers,
                           quantize.codes,        quantize.rows,  quantize.row_elements};
  Problem problem = CheckRows(check);
  if (!problem.empty()) return problem;
  if (quantize.scale_use != GpuScales::kNone && quantize.rows > 0 &&
      (quantize.scales == nullptr || !IsMultiple(quantize.scales, sizeof(float)))) {
    return "scales are null or not aligned to 4 bytes";
  }
  if (quantize.rows == 0 || quantize.row_elements == 0) return "";
  return LaunchRows<QuantizeKernel>(check, target, [&](auto* params) {
    params->rows.from = quantize.numbers;
    params->rows.to = quantize.codes;
    params->scales = quantize.scales;
    params->scale_use = quantize.scale_use;
  });
}

Problem LaunchDequantize(const GpuDequantize& dequantize, const simt::LaunchTarget& target) {
  const RowsCheck check = {dequantize.target_dtype, dequantize.dtype, dequantize.numbers,
                           dequantize.codes,        dequantize.rows,  dequantize.row_elements};
  Problem problem = CheckRows(check);
  if (!problem.empty()) return problem;
  if (!IsMultiple(dequantize.scales, sizeof(float))) return "scales are not aligned to 4 bytes";
  if (dequantize.rows == 0 || dequantize.row_elements == 0) return "";
  return LaunchRows<DequantizeKernel>(check, target, [&](auto* params) {
    params->rows.from = dequantize.codes;
    params->rows.to = dequantize.numbers;
    params->scales = dequantize.scales;
  });
}

CAIRN_SIMT_END
