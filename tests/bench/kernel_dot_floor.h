// Floor of attention that computing bounds: bfloat16 dot products out of registers, as many as the
// processor can do.
#pragma once

#include <cstdint>

#include "kernels/worker_pool.h"

namespace cairn::bench {

// At least `flops` multiplications and additions, shared by the pool's workers. REQUIRES: the path
// kAvx512Bf16 is available.
void DotInRegisters(uint64_t flops, kernels::WorkerPool* pool);

}  // namespace cairn::bench
