// XXH3-64's arithmetic on the device, and its default secret. What it computes is the published
// algorithm, bit for bit; the long form's order of work is digest_kernel.h's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simt/simt.h"

CAIRN_SIMT_BEGIN

inline constexpr uint64_t kPrime32First = 0x9E3779B1u;
inline constexpr uint64_t kPrime32Second = 0x85EBCA77u;
inline constexpr uint64_t kPrime32Third = 0xC2B2AE3Du;
inline constexpr uint64_t kPrime64First = 0x9E3779B185EBCA87u;
inline constexpr uint64_t kPrime64Second = 0xC2B2AE3D27D4EB4Fu;
inline constexpr uint64_t kPrime64Third = 0x165667B19E3779F9u;
inline constexpr uint64_t kPrime64Fourth = 0x85EBCA77C2B2AE63u;
inline constexpr uint64_t kPrime64Fifth = 0x27D4EB2F165667C5u;

// 192 bytes, as little-endian words; travels with a launch's parameters.
struct HashSecret {
  static constexpr uint32_t kWords = 24;
  uint64_t word[kWords] = {
      0xbe4ba423396cfeb8u, 0x1cad21f72c81017cu, 0xdb979083e96dd4deu, 0x1f67b3b7a4a44072u,
      0x78e5c0cc4ee679cbu, 0x2172ffcc7dd05a82u, 0x8e2443f7744608b8u, 0x4c263a81e69035e0u,
      0xcb00c391bb52283cu, 0xa32e531b8b65d088u, 0x4ef90da297486471u, 0xd8acdea946ef1938u,
      0x3f349ce33f76faa8u, 0x1d4f0bc7c7bbdcf9u, 0x3159b4cd4be0518au, 0x647378d9c97e9fc8u,
      0xc3ebd33483acc5eau, 0xeb6313faffa081c5u, 0x49daf0b751dd0d17u, 0x9e68d429265516d3u,
      0xfca1477d58be162bu, 0xce31d07ad1b8f88fu, 0x280416958f3acb45u, 0x7e404bbbcafbd7afu};

  // Eight bytes from any offset.
  CAIRN_SIMT_DEVICE uint64_t At(uint32_t offset) const {
    const uint32_t shift = offset % 8 * 8;
    const uint64_t low = word[offset / 8];
    return shift == 0 ? low : low >> shift | word[offset / 8 + 1] << (64 - shift);
  }
};

// The secret that the long form derives from a seed: added to even words, taken from odd ones.
struct SeededSecret {
  const HashSecret* secret;
  uint64_t seed;

  CAIRN_SIMT_DEVICE uint64_t Word(uint32_t i) const {
    return i % 2 == 0 ? secret->word[i] + seed : secret->word[i] - seed;
  }
  CAIRN_SIMT_DEVICE uint64_t At(uint32_t offset) const {
    const uint32_t shift = offset % 8 * 8;
    const uint64_t low = Word(offset / 8);
    return shift == 0 ? low : low >> shift | Word(offset / 8 + 1) << (64 - shift);
  }
};

CAIRN_SIMT_DEVICE uint64_t FoldedProduct(uint64_t a, uint64_t b) {
  return a * b ^ simt::HighProduct(a, b);
}

CAIRN_SIMT_DEVICE uint64_t Avalanche(uint64_t hash) {
  hash ^= hash >> 37;
  hash *= 0x165667919E3779F9u;
  return hash ^ hash >> 32;
}

// XXH64's, which the shortest inputs end with.
CAIRN_SIMT_DEVICE uint64_t Avalanche64(uint64_t hash) {
  hash ^= hash >> 33;
  hash *= kPrime64Second;
  hash ^= hash >> 29;
  hash *= kPrime64Third;
  return hash ^ hash >> 32;
}

CAIRN_SIMT_DEVICE uint64_t RotateLeft(uint64_t value, uint32_t bits) {
  return value << bits | value >> (64 - bits);
}

CAIRN_SIMT_DEVICE uint64_t SwapBytes(uint64_t value) {
  uint64_t swapped = 0;
  for (uint32_t i = 0; i < 8; ++i) swapped |= (value >> (8 * i) & 0xffu) << (56 - 8 * i);
  return swapped;
}

// `bytes` (8 at most) little-endian bytes from any address.
CAIRN_SIMT_DEVICE uint64_t LoadBytes(const std::byte* from, uint32_t bytes) {
  if (bytes == 8 && reinterpret_cast<uintptr_t>(from) % 8 == 0) {
    return simt::LoadGlobal(reinterpret_cast<const uint64_t*>(from));
  }
  uint64_t value = 0;
  for (uint32_t i = 0; i < bytes; ++i) {
    value |= uint64_t{simt::LoadGlobal(reinterpret_cast<const uint8_t*>(from + i))} << (8 * i);
  }
  return value;
}

CAIRN_SIMT_END
