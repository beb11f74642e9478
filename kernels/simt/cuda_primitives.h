// The primitives of simt.h by PTX, for sm_80 and newer; included by simt.h only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "kernels/problem.h"

namespace cairn::simt {
inline namespace on_cuda {

inline constexpr uint32_t kAllLanes = 0xffffffffu;
inline constexpr uint32_t kSharedBytesDefault = 48 << 10;  // More must be asked for.

CAIRN_SIMT_DEVICE uint32_t BlockX() { return blockIdx.x; }
CAIRN_SIMT_DEVICE uint32_t BlockY() { return blockIdx.y; }
CAIRN_SIMT_DEVICE uint32_t GridX() { return gridDim.x; }
CAIRN_SIMT_DEVICE uint32_t GridY() { return gridDim.y; }
CAIRN_SIMT_DEVICE uint32_t Thread() { return threadIdx.x; }
CAIRN_SIMT_DEVICE uint32_t Lane() { return threadIdx.x % kWarpLanes; }
CAIRN_SIMT_DEVICE uint32_t Warp() { return threadIdx.x / kWarpLanes; }

CAIRN_SIMT_DEVICE void SyncBlock(Site) { __syncthreads(); }
CAIRN_SIMT_DEVICE void SyncWarp(Site) { __syncwarp(); }

// T as 32-bit words, to be exchanged one by one.
template <class T>
struct ShuffleWords {
  static constexpr uint32_t kWords = (sizeof(T) + 3) / 4;
  uint32_t word[kWords];

  CAIRN_SIMT_DEVICE explicit ShuffleWords(const T& value) : word{} {
    memcpy(word, &value, sizeof(T));
  }
  CAIRN_SIMT_DEVICE T Value() const {
    T value;
    memcpy(&value, word, sizeof(T));
    return value;
  }
};

template <class T>
CAIRN_SIMT_DEVICE T ShuffleXor(T value, uint32_t lane_mask, Site) {
  ShuffleWords<T> words(value);
  CAIRN_SIMT_UNROLL
  for (uint32_t i = 0; i < words.kWords; ++i) {
    words.word[i] = __shfl_xor_sync(kAllLanes, words.word[i], static_cast<int>(lane_mask));
  }
  return words.Value();
}

template <class T>
CAIRN_SIMT_DEVICE T ShuffleFrom(T value, uint32_t lane, Site) {
  ShuffleWords<T> words(value);
  CAIRN_SIMT_UNROLL
  for (uint32_t i = 0; i < words.kWords; ++i) {
    words.word[i] = __shfl_sync(kAllLanes, words.word[i], static_cast<int>(lane));
  }
  return words.Value();
}

CAIRN_SIMT_DEVICE uint32_t Ballot(bool value, Site) { return __ballot_sync(kAllLanes, value); }

template <class T>
CAIRN_SIMT_DEVICE T LoadGlobal(const T* from, Site) {
  __builtin_assume(__isGlobal(from));
  return *from;
}

template <class T>
CAIRN_SIMT_DEVICE void StoreGlobal(T* to, T value, Site) {
  __builtin_assume(__isGlobal(to));
  *to = value;
}

CAIRN_SIMT_DEVICE Bytes16 LoadGlobalStreaming16(const void* from, Site) {
  Bytes16 bytes;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(bytes.word[0]), "=r"(bytes.word[1]), "=r"(bytes.word[2]), "=r"(bytes.word[3])
      : "l"(__cvta_generic_to_global(from)));
  return bytes;
}

CAIRN_SIMT_DEVICE uint32_t AtomicAdd(uint32_t* at, uint32_t value, Site) {
  uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(at)), "r"(value)
               : "memory");
  return before;
}

CAIRN_SIMT_DEVICE void ThreadFence(Site) { __threadfence(); }

CAIRN_SIMT_DEVICE uint8_t* SharedBytes() {
  // Aligned as banks repeat and beyond, so that offsets alone decide about conflicts.
  extern __shared__ __align__(1024) uint8_t cairn_shared_bytes[];
  return cairn_shared_bytes;
}

CAIRN_SIMT_DEVICE uint32_t SharedAddress(uint32_t offset) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(SharedBytes())) + offset;
}

template <class T>
CAIRN_SIMT_DEVICE T LoadShared(uint32_t from, Site) {
  return *reinterpret_cast<const T*>(SharedBytes() + from);
}

template <class T>
CAIRN_SIMT_DEVICE void StoreShared(uint32_t to, T value, Site) {
  *reinterpret_cast<T*>(SharedBytes() + to) = value;
}

CAIRN_SIMT_DEVICE CachePolicy EvictFirst() {
  CachePolicy policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy.bits));
  return policy;
}

CAIRN_SIMT_DEVICE void CopyAsync16(uint32_t to, const void* from, uint32_t valid_bytes, Site) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(SharedAddress(to)),
               "l"(__cvta_generic_to_global(from)), "r"(valid_bytes)
               : "memory");
}

CAIRN_SIMT_DEVICE void CopyAsync16(uint32_t to, const void* from, uint32_t valid_bytes,
                                   CachePolicy policy, Site) {
  asm volatile(
      "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(SharedAddress(to)),
      "l"(__cvta_generic_to_global(from)), "r"(valid_bytes), "l"(policy.bits)
      : "memory");
}

CAIRN_SIMT_DEVICE void CopyAsyncCommit(Site) {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <uint32_t kGroupsLeft>
CAIRN_SIMT_DEVICE void CopyAsyncWait(Site) {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroupsLeft) : "memory");
}

CAIRN_SIMT_DEVICE Fragments4 LoadMatrix4(uint32_t row, Site) {
  Fragments4 loaded;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(loaded.word[0]), "=r"(loaded.word[1]), "=r"(loaded.word[2]),
                 "=r"(loaded.word[3])
               : "r"(SharedAddress(row))
               : "memory");
  return loaded;
}

CAIRN_SIMT_DEVICE Fragments4 LoadMatrix4Transposed(uint32_t row, Site) {
  Fragments4 loaded;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(loaded.word[0]), "=r"(loaded.word[1]), "=r"(loaded.word[2]),
                 "=r"(loaded.word[3])
               : "r"(SharedAddress(row))
               : "memory");
  return loaded;
}

template <MatrixFloat kFloat>
CAIRN_SIMT_DEVICE void MultiplyAdd16816(float (&sum)[4], const uint32_t (&a)[4],
                                        const uint32_t (&b)[2], Site) {
  if constexpr (kFloat == MatrixFloat::kBfloat16) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

CAIRN_SIMT_DEVICE float Exp2(float value) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(value));
  return power;
}

CAIRN_SIMT_DEVICE float Log2(float value) {
  float exponent;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(exponent) : "f"(value));
  return exponent;
}

CAIRN_SIMT_DEVICE float Tanh(float value) { return tanhf(value); }
CAIRN_SIMT_DEVICE float Max(float a, float b) { return fmaxf(a, b); }
CAIRN_SIMT_DEVICE float Min(float a, float b) { return fminf(a, b); }
CAIRN_SIMT_DEVICE float Infinity() { return __int_as_float(0x7f800000); }
CAIRN_SIMT_DEVICE float RoundToEven(float value) { return rintf(value); }
CAIRN_SIMT_DEVICE uint32_t BitsOf(float value) { return __float_as_uint(value); }
CAIRN_SIMT_DEVICE float FloatOf(uint32_t bits) { return __uint_as_float(bits); }
CAIRN_SIMT_DEVICE uint64_t HighProduct(uint64_t a, uint64_t b) { return __umul64hi(a, b); }
CAIRN_SIMT_DEVICE uint32_t CountOnes(uint32_t bits) { return static_cast<uint32_t>(__popc(bits)); }

CAIRN_SIMT_DEVICE uint32_t BytePermute(uint32_t low, uint32_t high, uint32_t selector) {
  return __byte_perm(low, high, selector);
}

struct LaunchTarget {
  cudaStream_t stream = nullptr;
};

template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreads, Kernel::kBlocksPerProcessor)
    RunKernel(const __grid_constant__ typename Kernel::Params params) {
  Kernel::Run(params);
}

template <class Kernel>
kernels::Problem Launch(const LaunchTarget& target, const LaunchShape& shape,
                        const typename Kernel::Params& params) {
  if (shape.blocks_x == 0 || shape.blocks_y == 0) return "";
  cudaError_t error = cudaSuccess;
  if (shape.shared_bytes > kSharedBytesDefault) {
    error = cudaFuncSetAttribute(RunKernel<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shape.shared_bytes));
  }
  if (error == cudaSuccess) {
    RunKernel<Kernel><<<dim3(shape.blocks_x, shape.blocks_y), Kernel::kThreads, shape.shared_bytes,
                        target.stream>>>(params);
    error = cudaGetLastError();
  }
  if (error == cudaSuccess) return "";
  return std::string("a kernel could not be launched: ") + cudaGetErrorString(error);
}

}  // namespace on_cuda
}  // namespace cairn::simt

#include "kernels/simt/cuda_conversions.h"
#include "kernels/simt/warp_reductions.h"
