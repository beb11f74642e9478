// The primitives of simt.h on the CPU; included by simt.h only. What they check is in
// block_machine.h, what they convert is float_formats.h's.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/float_formats.h"
#include "kernels/problem.h"
#include "kernels/simt/block_machine.h"
#include "kernels/simt/grid_executor.h"

namespace cairn::simt {
inline namespace on_emulated {

using emulated::BlockMachine;
using emulated::Operation;

template <class T>
constexpr bool kIsAccessible = std::is_trivially_copyable_v<T> &&
                               (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 ||
                                sizeof(T) == 8 || sizeof(T) == 16);

inline uint32_t BlockX() { return BlockMachine::Current().block_x(); }
inline uint32_t BlockY() { return BlockMachine::Current().block_y(); }
inline uint32_t GridX() { return BlockMachine::Current().work().blocks_x; }
inline uint32_t GridY() { return BlockMachine::Current().work().blocks_y; }
inline uint32_t Thread() { return BlockMachine::Current().thread(); }
inline uint32_t Lane() { return Thread() % kWarpLanes; }
inline uint32_t Warp() { return Thread() / kWarpLanes; }

inline void SyncBlock(Site site) { BlockMachine::Current().SyncBlock(site); }
inline void SyncWarp(Site site) { BlockMachine::Current().Meet(Operation::kSyncWarp, site); }

template <class T>
T ShuffleFrom(T value, uint32_t lane, Site site) {
  static_assert(kIsAccessible<T>);
  BlockMachine& machine = BlockMachine::Current();
  emulated::LaneSlot& slot = machine.slot();
  std::memcpy(slot.bytes, &value, sizeof(T));
  slot.argument = lane % kWarpLanes;
  machine.Meet(Operation::kShuffle, site);
  std::memcpy(&value, slot.bytes, sizeof(T));
  return value;
}

template <class T>
T ShuffleXor(T value, uint32_t lane_mask, Site site) {
  return ShuffleFrom(value, Lane() ^ lane_mask, site);
}

inline uint32_t Ballot(bool value, Site site) {
  BlockMachine& machine = BlockMachine::Current();
  emulated::LaneSlot& slot = machine.slot();
  slot.argument = value ? 1 : 0;
  machine.Meet(Operation::kBallot, site);
  return slot.argument;
}

template <class T>
T LoadGlobal(const T* from, Site site) {
  static_assert(kIsAccessible<T>);
  T value;
  BlockMachine::Current().LoadGlobal(&value, from, sizeof(T), site);
  return value;
}

template <class T>
void StoreGlobal(T* to, T value, Site site) {
  static_assert(kIsAccessible<T>);
  BlockMachine::Current().StoreGlobal(to, &value, sizeof(T), site);
}

inline Bytes16 LoadGlobalStreaming16(const void* from, Site site) {
  Bytes16 value;
  BlockMachine::Current().LoadGlobal(&value, from, sizeof(value), site);
  return value;
}

inline uint32_t AtomicAdd(uint32_t* at, uint32_t value, Site site) {
  return BlockMachine::Current().AtomicAdd(at, value, site);
}

// Blocks run one after another, and atomics alone order them in GlobalWrites.
inline void ThreadFence(Site) {}

template <class T>
T LoadShared(uint32_t from, Site site) {
  static_assert(kIsAccessible<T>);
  T value;
  BlockMachine::Current().LoadShared(&value, from, sizeof(T), site);
  return value;
}

template <class T>
void StoreShared(uint32_t to, T value, Site site) {
  static_assert(kIsAccessible<T>);
  BlockMachine::Current().StoreShared(to, &value, sizeof(T), site);
}

inline CachePolicy EvictFirst() { return {}; }

inline void CopyAsync16(uint32_t to, const void* from, uint32_t valid_bytes, Site site) {
  BlockMachine::Current().CopyAsync(to, from, valid_bytes, site);
}

inline void CopyAsync16(uint32_t to, const void* from, uint32_t valid_bytes, CachePolicy,
                        Site site) {
  BlockMachine::Current().CopyAsync(to, from, valid_bytes, site);
}

inline void CopyAsyncCommit(Site site) { BlockMachine::Current().CommitCopies(site); }

template <uint32_t kGroupsLeft>
void CopyAsyncWait(Site site) {
  BlockMachine::Current().WaitForCopies(kGroupsLeft, site);
}

inline Fragments4 LoadMatrixBy(Operation operation, uint32_t row, Site site) {
  BlockMachine& machine = BlockMachine::Current();
  emulated::LaneSlot& slot = machine.slot();
  slot.argument = row;
  machine.Meet(operation, site);
  Fragments4 loaded;
  std::memcpy(&loaded, slot.bytes, sizeof(loaded));
  return loaded;
}

inline Fragments4 LoadMatrix4(uint32_t row, Site site) {
  return LoadMatrixBy(Operation::kLoadMatrix, row, site);
}

inline Fragments4 LoadMatrix4Transposed(uint32_t row, Site site) {
  return LoadMatrixBy(Operation::kLoadMatrixTransposed, row, site);
}

template <MatrixFloat kFloat>
void MultiplyAdd16816(float (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Site site) {
  BlockMachine& machine = BlockMachine::Current();
  unsigned char* const bytes = machine.slot().bytes;
  std::memcpy(bytes, a, sizeof(a));
  std::memcpy(bytes + sizeof(a), b, sizeof(b));
  std::memcpy(bytes + sizeof(a) + sizeof(b), sum, sizeof(sum));
  machine.Meet(
      kFloat == MatrixFloat::kBfloat16 ? Operation::kMultiplyBfloat16 : Operation::kMultiplyFloat16,
      site);
  std::memcpy(sum, bytes + sizeof(a) + sizeof(b), sizeof(sum));
}

inline float Max(float a, float b) { return std::fmax(a, b); }
inline float Min(float a, float b) { return std::fmin(a, b); }
inline float Infinity() { return std::numeric_limits<float>::infinity(); }
inline float RoundToEven(float value) { return std::nearbyint(value); }
inline uint32_t BitsOf(float value) { return kernels::BitsOfFloat(value); }
inline float FloatOf(uint32_t bits) { return kernels::FloatOfBits(bits); }
inline uint64_t HighProduct(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(static_cast<Wide>(a) * b >> 64);
}
inline uint32_t CountOnes(uint32_t bits) { return static_cast<uint32_t>(__builtin_popcount(bits)); }

inline uint32_t BytePermute(uint32_t low, uint32_t high, uint32_t selector) {
  const uint64_t bytes = uint64_t{high} << 32 | low;
  uint32_t permuted = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t from = selector >> (4 * i) & 7;
    permuted |= static_cast<uint32_t>(bytes >> (8 * from) & 0xff) << (8 * i);
  }
  return permuted;
}

// As the hardware's approximations, which take subnormals for zeros of their sign.
inline float Flush(float value) {
  return std::fabs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0f, value) : value;
}
inline float Exp2(float value) { return Flush(std::exp2(Flush(value))); }
inline float Log2(float value) { return std::log2(Flush(value)); }
inline float Tanh(float value) { return std::tanh(value); }

template <MatrixFloat kFloat>
uint32_t PackPair(float low, float high) {
  if constexpr (kFloat == MatrixFloat::kBfloat16) {
    return kernels::Bfloat16OfFloat(low) | uint32_t{kernels::Bfloat16OfFloat(high)} << 16;
  } else {
    return kernels::Float16OfFloat(low) | uint32_t{kernels::Float16OfFloat(high)} << 16;
  }
}

template <MatrixFloat kFloat>
float LowOf(uint32_t pair) {
  const uint16_t code = static_cast<uint16_t>(pair & 0xffffu);
  return kFloat == MatrixFloat::kBfloat16 ? kernels::FloatOfBfloat16(code)
                                          : kernels::FloatOfFloat16(code);
}

template <MatrixFloat kFloat>
float HighOf(uint32_t pair) {
  return LowOf<kFloat>(pair >> 16);
}

template <MatrixFloat kFloat>
TwoPairs DecodeFloat8(uint32_t codes) {
  const auto number = [codes](uint32_t i) {
    return kernels::FloatOfFloat8(static_cast<uint8_t>(codes >> (8 * i) & 0xffu));
  };
  return {PackPair<kFloat>(number(0), number(1)), PackPair<kFloat>(number(2), number(3))};
}

template <MatrixFloat kFloat>
TwoPairs DecodeInt8(uint32_t codes) {
  const auto number = [codes](uint32_t i) {
    return static_cast<float>(static_cast<int8_t>(codes >> (8 * i) & 0xffu));
  };
  return {PackPair<kFloat>(number(0), number(1)), PackPair<kFloat>(number(2), number(3))};
}

template <MatrixFloat kFloat>
TwoPairs DecodeInt4(uint32_t codes) {
  const auto number = [codes](uint32_t i) {
    return static_cast<float>(static_cast<int32_t>((codes >> (4 * i) & 0xfu) ^ 8u) - 8);
  };
  return {PackPair<kFloat>(number(0), number(1)), PackPair<kFloat>(number(2), number(3))};
}

// Work that a stream will do; whoever gave the target runs it, then or at once.
using GiveWork = std::function<kernels::Problem(std::function<kernels::Problem()> work)>;

struct LaunchTarget {
  emulated::GridExecutor* executor = nullptr;  // Outlives the work.
  GiveWork give;                               // Empty: launches run at once.
};

template <class Kernel>
void RunThread(const void* params) {
  Kernel::Run(*static_cast<const typename Kernel::Params*>(params));
}

template <class Kernel>
const char* KernelName() {
  return __PRETTY_FUNCTION__;
}

template <class Kernel>
kernels::Problem Launch(const LaunchTarget& target, const LaunchShape& shape,
                        const typename Kernel::Params& params) {
  static_assert(std::is_trivially_copyable_v<typename Kernel::Params>);
  static_assert(Kernel::kBlocksPerProcessor >= 1);
  if (shape.blocks_x == 0 || shape.blocks_y == 0) return "";
  auto work = [executor = target.executor, shape, params] {
    return executor->Run({KernelName<Kernel>(), Kernel::kThreads, shape.blocks_x, shape.blocks_y,
                          shape.shared_bytes, &RunThread<Kernel>, &params});
  };
  return target.give == nullptr ? work() : target.give(std::move(work));
}

}  // namespace on_emulated
}  // namespace cairn::simt

#include "kernels/simt/warp_reductions.h"
