// RowState: what a warp knows of its 8 rows so far, and the online softmax over one unit more.
//
// A lane has sums of rows 2 * (lane % 4) and the next. Logits are in base 2. Outputs are relative
// to 2^most and, where values have scales, to `scale`: a power of two that keeps the largest weight
// times scale within a factor of two of one, so that 16-bit weights neither overflow nor vanish
// whatever the scales are.
#pragma once

#include "kernels/gpu/attention_params.h"

CAIRN_SIMT_BEGIN

inline constexpr uint32_t kScaleExponentMin = 27;   // Biased: 2^-100.
inline constexpr uint32_t kScaleExponentMax = 227;  // 2^100.

// The power of two at or below a number, within bounds.
CAIRN_SIMT_DEVICE float PowerOf(float value) {
  const uint32_t exponent = (simt::BitsOf(value) >> 23) & 0xffu;
  return simt::FloatOf(Least(Most(exponent, kScaleExponentMin), kScaleExponentMax) << 23);
}

CAIRN_SIMT_DEVICE float InverseOfPower(float power) {
  return simt::FloatOf((254u << 23) - simt::BitsOf(power));
}

// Over lanes that have the same rows.
CAIRN_SIMT_DEVICE float MaxOverTokens(float value) {
  CAIRN_SIMT_UNROLL
  for (uint32_t mask = 4; mask < simt::kWarpLanes; mask *= 2) {
    value = simt::Max(value, simt::ShuffleXor(value, mask));
  }
  return value;
}

CAIRN_SIMT_DEVICE float SumOverTokens(float value) {
  CAIRN_SIMT_UNROLL
  for (uint32_t mask = 4; mask < simt::kWarpLanes; mask *= 2) {
    value += simt::ShuffleXor(value, mask);
  }
  return value;
}

template <uint32_t kOutputs>
struct RowState {
  float outputs[kOutputs][4];
  float most[2];
  float sum[2];  // Over this lane's tokens only.
  float scale[2];

  CAIRN_SIMT_DEVICE void Clear() {
    CAIRN_SIMT_UNROLL
    for (uint32_t i = 0; i < kOutputs; ++i) {
      CAIRN_SIMT_UNROLL
      for (uint32_t k = 0; k < 4; ++k) outputs[i][k] = 0;
    }
    CAIRN_SIMT_UNROLL
    for (uint32_t r = 0; r < 2; ++r) {
      most[r] = -simt::Infinity();
      sum[r] = 0;
      scale[r] = simt::FloatOf(kScaleExponentMin << 23);
    }
  }

  // Logits become weights, those of unscaled values. `value_scales`: of tokens lane / 4 and 8
  // behind, where `is_scaled`.
  CAIRN_SIMT_DEVICE void Add(float (&logits)[4], bool is_scaled, const float (&value_scales)[2]) {
    float rescale[2];
    CAIRN_SIMT_UNROLL
    for (uint32_t r = 0; r < 2; ++r) {
      const float unit_most = MaxOverTokens(simt::Max(logits[r], logits[r + 2]));
      const float new_most = simt::Max(most[r], unit_most);
      const float shift = new_most == -simt::Infinity() ? 0 : new_most;
      rescale[r] = simt::Exp2(most[r] - shift);
      most[r] = new_most;
      logits[r] = simt::Exp2(logits[r] - shift);
      logits[r + 2] = simt::Exp2(logits[r + 2] - shift);
      sum[r] = sum[r] * rescale[r] + (logits[r] + logits[r + 2]);
    }
    if (is_scaled) ApplyScales(logits, value_scales, rescale);
    if (simt::Ballot(rescale[0] != 1 || rescale[1] != 1) == 0) return;
    CAIRN_SIMT_UNROLL
    for (uint32_t i = 0; i < kOutputs; ++i) {
      CAIRN_SIMT_UNROLL
      for (uint32_t k = 0; k < 4; ++k) outputs[i][k] *= rescale[k % 2];
    }
  }

 private:
  // A weight of zero stays zero: what its token's scale is, nobody sees.
  CAIRN_SIMT_DEVICE void ApplyScales(float (&weights)[4], const float (&value_scales)[2],
                                     float (&rescale)[2]) {
    CAIRN_SIMT_UNROLL
    for (uint32_t i = 0; i < 4; ++i) {
      if (weights[i] != 0) weights[i] *= value_scales[i / 2];
    }
    CAIRN_SIMT_UNROLL
    for (uint32_t r = 0; r < 2; ++r) {
      const float low = simt::Max(weights[r], -weights[r]);
      const float high = simt::Max(weights[r + 2], -weights[r + 2]);
      const float largest = MaxOverTokens(simt::Max(low, high));
      const float old_scale = scale[r];
      scale[r] = PowerOf(simt::Max(old_scale * rescale[r], largest));
      const float inverse = InverseOfPower(scale[r]);
      rescale[r] *= old_scale * inverse;
      weights[r] *= inverse;
      weights[r + 2] *= inverse;
    }
  }
};

CAIRN_SIMT_END
