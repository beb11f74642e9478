#include "tests/bench/kernel_dot_floor.h"

#include "common/base/check.h"
#include "kernels/cpu_path.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/attention/avx512_target.h"

CAIRN_AVX512_BEGIN
namespace cairn::bench {
namespace {

constexpr uint64_t kChains = 16;  // Enough to never wait for a sum.
constexpr uint64_t kFlopsOfInstruction = 64;

volatile float g_sink;  // So that nothing is dropped.

void Dots(uint64_t rounds) {
  const __m512bh ones = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f803f80));
  __m512 sums[kChains];
#pragma GCC unroll 16
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  for (uint64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, ones, ones);
  }
#pragma GCC unroll 16
  for (uint64_t i = 1; i < kChains; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  g_sink = _mm512_cvtss_f32(sums[0]);
}

}  // namespace
}  // namespace cairn::bench
CAIRN_AVX512_END

namespace cairn::bench {

void DotInRegisters(uint64_t flops, kernels::WorkerPool* pool) {
  CAIRN_CHECK(kernels::IsAvailable(kernels::CpuPath::kAvx512Bf16));
  const uint32_t workers = pool->workers();
  uint64_t rounds = flops / (kFlopsOfInstruction * kChains * workers) + 1;
  pool->Run(
      workers, [](void* context, uint32_t) { Dots(*static_cast<uint64_t*>(context)); }, &rounds);
}

}  // namespace cairn::bench

#else

namespace cairn::bench {

void DotInRegisters(uint64_t, kernels::WorkerPool*) { CAIRN_CHECK(false); }

}  // namespace cairn::bench

#endif
