// Quantizing rows of float32 into stored codes, and back: by the definitions of float_formats.h,
// bit for bit, on every machine. Value = code * scale.
//
// Thread-safe; plain memory in, plain memory out. int4 puts the even index into the low nibble.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kv_dtype.h"

namespace cairn::kernels {

// The largest code: 448, 127, 7; for wide floats 1, so that their scale is what it is.
float CodeMax(KvDtype dtype);

// The scale with which the largest magnitude of `values` becomes the largest code; 1 where all are
// 0 (a scale of 0 would make everything 0 for good), where one is not finite, or for wide floats.
float ScaleFor(KvDtype dtype, const float* values, uint64_t count);

// `count` is even for int4. REQUIRES: scale is finite and not 0.
void Quantize(KvDtype dtype, const float* values, uint64_t count, float scale, std::byte* codes);
void Dequantize(KvDtype dtype, const std::byte* codes, uint64_t count, float scale, float* values);

}  // namespace cairn::kernels
