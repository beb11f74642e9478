// TileOps with AVX-512: bf16 dot products over bfloat16, float8, int8 and int4 KV.
//
// For head sizes that are multiples of 64; others, and float16 and float32, are the portable ops'.
#pragma once

#include "kernels/attention/tile_ops.h"

namespace cairn::kernels {

// Null where the build or this processor has no AVX-512 with bf16 and VBMI.
const TileOps* Avx512TileOps();

}  // namespace cairn::kernels
