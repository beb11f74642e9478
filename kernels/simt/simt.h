// Device primitives: all that kernels know of the machine they run on.
//
// Kernel source is a header over these names alone, compiled twice: by nvcc (PTX, sm_80 and newer)
// and by the host's compiler (portable C++ on the grid executor of kernels/simt, stricter than
// hardware: see README.md). C++17 and the standard library; no raw assembly, no __shared__ statics,
// no cooperative groups in kernels. What a kernel header defines stands between CAIRN_SIMT_BEGIN
// and CAIRN_SIMT_END, so that both compilations can be linked into one program:
//
//   CAIRN_SIMT_BEGIN
//   template <...>
//   struct SomeKernel {
//     struct Params { ... };                               // Plain values, copied to the device.
//     static constexpr uint32_t kThreads = 128;            // A multiple of 32, 1024 at most.
//     static constexpr uint32_t kBlocksPerProcessor = 1;   // At least so many shall fit.
//     static CAIRN_SIMT_DEVICE void Run(const Params& params);
//   };
//   CAIRN_SIMT_END
//
//   simt::Launch<SomeKernel<...>>(target, {blocks_x, blocks_y, shared_bytes}, params)
//
// Locals of kernels are trivially destructible. Rules that the emulation holds kernels to: all 32
// lanes take part in each operation of a warp, and all threads of the block in SyncBlock, at the
// same place of the source. Shared memory is read after it was written, and what another thread
// wrote after SyncWarp (within the warp) or SyncBlock; shuffles, ballots and matrix operations
// order no memory. Bytes of an asynchronous copy are there once the thread that asked for it has
// waited for it, for others once they have synchronised with that thread after that; nobody touches
// them before. Global memory lies in what the MemoryRegistry knows. T of loads and stores is
// trivially copyable, of 1, 2, 4, 8 or 16 bytes, aligned to its size.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define CAIRN_SIMT_CUDA 1
#define CAIRN_SIMT_DEVICE __device__ __forceinline__
#define CAIRN_SIMT_BOTH __host__ __device__ __forceinline__
#define CAIRN_SIMT_UNROLL _Pragma("unroll")
#define CAIRN_SIMT_NO_UNROLL _Pragma("unroll 1")
#define CAIRN_SIMT_BACKEND on_cuda
#else
#define CAIRN_SIMT_DEVICE inline
#define CAIRN_SIMT_BOTH inline
#define CAIRN_SIMT_UNROLL
#define CAIRN_SIMT_NO_UNROLL
#define CAIRN_SIMT_BACKEND on_emulated
#endif

#define CAIRN_SIMT_BEGIN     \
  namespace cairn::kernels { \
  inline namespace CAIRN_SIMT_BACKEND {
#define CAIRN_SIMT_END \
  }                    \
  }

#include "kernels/simt/site.h"

namespace cairn::simt {
inline namespace CAIRN_SIMT_BACKEND {

inline constexpr uint32_t kWarpLanes = 32;

struct alignas(8) Bytes8 {
  uint32_t word[2];
};
struct alignas(16) Bytes16 {
  uint32_t word[4];
};

// --- Where a thread is ---
CAIRN_SIMT_DEVICE uint32_t BlockX();
CAIRN_SIMT_DEVICE uint32_t BlockY();
CAIRN_SIMT_DEVICE uint32_t GridX();
CAIRN_SIMT_DEVICE uint32_t GridY();
CAIRN_SIMT_DEVICE uint32_t Thread();  // Within its block.
CAIRN_SIMT_DEVICE uint32_t Lane();    // Within its warp.
CAIRN_SIMT_DEVICE uint32_t Warp();    // Within its block.

// --- Barriers ---
CAIRN_SIMT_DEVICE void SyncBlock(Site site = Site::Here());
CAIRN_SIMT_DEVICE void SyncWarp(Site site = Site::Here());

// --- Exchange within a warp; T has 1, 2, 4, 8 or 16 bytes ---
template <class T>
CAIRN_SIMT_DEVICE T ShuffleXor(T value, uint32_t lane_mask, Site site = Site::Here());
// `lane` is taken modulo 32; it may differ from lane to lane.
template <class T>
CAIRN_SIMT_DEVICE T ShuffleFrom(T value, uint32_t lane, Site site = Site::Here());
// Bit l: lane l said true.
CAIRN_SIMT_DEVICE uint32_t Ballot(bool value, Site site = Site::Here());
// Over lanes that agree in all bits but those below `lanes` (a power of two): 32 is the whole warp.
// Always added in the same order. T: float or uint32_t. A NaN is left out of the maximum.
template <class T>
CAIRN_SIMT_DEVICE T WarpSum(T value, uint32_t lanes = kWarpLanes, Site site = Site::Here());
template <class T>
CAIRN_SIMT_DEVICE T WarpMax(T value, uint32_t lanes = kWarpLanes, Site site = Site::Here());

// --- Global memory ---
template <class T>
CAIRN_SIMT_DEVICE T LoadGlobal(const T* from, Site site = Site::Here());
template <class T>
CAIRN_SIMT_DEVICE void StoreGlobal(T* to, T value, Site site = Site::Here());
// Bytes that nothing in this launch writes and nobody reads soon again: past the first-level cache.
CAIRN_SIMT_DEVICE Bytes16 LoadGlobalStreaming16(const void* from, Site site = Site::Here());
// Returns what was there. Releases what this thread wrote, and what it saw written before by way of
// a barrier; acquires what others released so at the same word. Device scope.
CAIRN_SIMT_DEVICE uint32_t AtomicAdd(uint32_t* at, uint32_t value, Site site = Site::Here());
// Orders this thread's accesses for the whole device, both ways.
CAIRN_SIMT_DEVICE void ThreadFence(Site site = Site::Here());

// --- Shared memory: byte offsets into the launch's shared_bytes ---
// A part of it, for whoever lays it out.
struct SharedSpan {
  uint32_t begin = 0;
  uint32_t bytes = 0;

  CAIRN_SIMT_BOTH constexpr uint32_t End() const { return begin + bytes; }
  CAIRN_SIMT_BOTH constexpr uint32_t At(uint32_t offset) const { return begin + offset; }
};

template <class T>
CAIRN_SIMT_DEVICE T LoadShared(uint32_t from, Site site = Site::Here());
template <class T>
CAIRN_SIMT_DEVICE void StoreShared(uint32_t to, T value, Site site = Site::Here());

// --- Asynchronous copies from global to shared memory ---
// Keeps what is copied out of the way of what shall stay in the second-level cache.
struct CachePolicy {
  uint64_t bits = 0;
};
CAIRN_SIMT_DEVICE CachePolicy EvictFirst();

// 16 bytes at `to`: the first `valid_bytes` (16 at most) from global memory, zeros behind them.
// Both addresses are multiples of 16. With 0 nothing is read at `from`, which may be anything.
CAIRN_SIMT_DEVICE void CopyAsync16(uint32_t to, const void* from, uint32_t valid_bytes,
                                   Site site = Site::Here());
CAIRN_SIMT_DEVICE void CopyAsync16(uint32_t to, const void* from, uint32_t valid_bytes,
                                   CachePolicy policy, Site site = Site::Here());
// The copies that this thread asked for since the last commit are one group.
CAIRN_SIMT_DEVICE void CopyAsyncCommit(Site site = Site::Here());
// Until at most kGroupsLeft of this thread's youngest groups are under way. No thread ends with
// copies that it did not wait for.
template <uint32_t kGroupsLeft>
CAIRN_SIMT_DEVICE void CopyAsyncWait(Site site = Site::Here());

// --- Matrices: fragments as PTX defines them for m16n8k16 ---
enum class MatrixFloat : uint32_t { kBfloat16, kFloat16 };

struct Fragments4 {
  uint32_t word[4];
};
// Four 8x8 matrices of 16-bit elements: lane l gives the offset (a multiple of 16) of row l % 8 of
// matrix l / 8; word m of lane l holds elements 2 * (l % 4) and the next of row l / 4 of matrix m.
// Transposed: of the transposed matrices.
CAIRN_SIMT_DEVICE Fragments4 LoadMatrix4(uint32_t row, Site site = Site::Here());
CAIRN_SIMT_DEVICE Fragments4 LoadMatrix4Transposed(uint32_t row, Site site = Site::Here());

// sum += A * B: A 16x16 by rows, B 16x8 by columns, sum 16x8 in float32.
//   a[0] A[l/4][2(l%4)..+1]  a[1] A[l/4+8][same]  a[2] A[l/4][same+8]  a[3] A[l/4+8][same+8]
//   b[0] B[2(l%4)..+1][l/4]  b[1] B[2(l%4)+8..+9][l/4]
//   sum[0..1] S[l/4][2(l%4)..+1]  sum[2..3] S[l/4+8][same]
// Products are exact; the order and rounding of sums are the machine's own.
template <MatrixFloat kFloat>
CAIRN_SIMT_DEVICE void MultiplyAdd16816(float (&sum)[4], const uint32_t (&a)[4],
                                        const uint32_t (&b)[2], Site site = Site::Here());

// --- Conversions; of a pair the first is in the low half ---
// To nearest, ties to even.
template <MatrixFloat kFloat>
CAIRN_SIMT_DEVICE uint32_t PackPair(float low, float high);
template <MatrixFloat kFloat>
CAIRN_SIMT_DEVICE float LowOf(uint32_t pair);
template <MatrixFloat kFloat>
CAIRN_SIMT_DEVICE float HighOf(uint32_t pair);

struct TwoPairs {
  uint32_t low;   // Elements 0 and 1.
  uint32_t high;  // Elements 2 and 3.
};
// Four codes, element 0 in the lowest bits, to 16-bit floats, exactly.
template <MatrixFloat kFloat>
CAIRN_SIMT_DEVICE TwoPairs DecodeFloat8(uint32_t codes);  // e4m3fn; a NaN stays one.
template <MatrixFloat kFloat>
CAIRN_SIMT_DEVICE TwoPairs DecodeInt8(uint32_t codes);
template <MatrixFloat kFloat>
CAIRN_SIMT_DEVICE TwoPairs DecodeInt4(uint32_t codes);  // In the low 16 bits; others are ignored.

// --- Numbers ---
CAIRN_SIMT_DEVICE float Exp2(float value);  // Within 2^-21 or so; 0 for -inf; flushes subnormals.
CAIRN_SIMT_DEVICE float Log2(float value);  // Likewise, of positive numbers.
CAIRN_SIMT_DEVICE float Tanh(float value);  // To a few units in the last place.
CAIRN_SIMT_DEVICE float Max(float a, float b);  // The other one where one is a NaN.
CAIRN_SIMT_DEVICE float Min(float a, float b);
CAIRN_SIMT_DEVICE float Infinity();
CAIRN_SIMT_DEVICE float RoundToEven(float value);  // To an integer.
CAIRN_SIMT_DEVICE uint32_t BitsOf(float value);
CAIRN_SIMT_DEVICE float FloatOf(uint32_t bits);
CAIRN_SIMT_DEVICE uint64_t HighProduct(uint64_t a, uint64_t b);  // Bits 64 to 127.
CAIRN_SIMT_DEVICE uint32_t CountOnes(uint32_t bits);
// Byte i of the result is byte (selector >> 4 * i) & 7 of the eight bytes of low, then high.
CAIRN_SIMT_DEVICE uint32_t BytePermute(uint32_t low, uint32_t high, uint32_t selector);

// What a grid is: blocks_x * blocks_y blocks, each with shared_bytes of shared memory.
struct LaunchShape {
  uint32_t blocks_x = 1;
  uint32_t blocks_y = 1;  // 65535 at most.
  uint32_t shared_bytes = 0;
};

}  // namespace CAIRN_SIMT_BACKEND
}  // namespace cairn::simt

// Each brings LaunchTarget (where a launch goes) and
//   template <class Kernel>
//   kernels::Problem Launch(const LaunchTarget&, const LaunchShape&, const Kernel::Params&);
// which gives the grid to a stream and does not wait. No block: nothing is launched.
#if defined(CAIRN_SIMT_CUDA)
#include "kernels/simt/cuda_primitives.h"
#else
#include "kernels/simt/emulated_primitives.h"
#endif
