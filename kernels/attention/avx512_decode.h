// Stored codes to bfloat16 with AVX-512 VBMI: float8, int8 and int4 have at most eight significant
// bits, so all of them are bfloat16 numbers, NaNs included. Included by avx512_tile.cc only.
//
// Two look-ups of bytes give the high and the low half of each number, unpacking joins them. Qwords
// are permuted first, so that unpacking, which works within 128 bits, leaves elements in order.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/attention/avx512_target.h"
#include "kernels/float_formats.h"
#include "kernels/kv_dtype.h"

namespace cairn::kernels {

// The halves of bfloat16 numbers, by code.
template <int kCodes>
struct HalvesTable {
  alignas(64) uint8_t low[kCodes];
  alignas(64) uint8_t high[kCodes];
};

template <int kCodes>
void SetHalves(HalvesTable<kCodes>* table, int index, float value) {
  const uint16_t bits = Bfloat16OfFloat(value);
  table->low[index] = static_cast<uint8_t>(bits & 0xff);
  table->high[index] = static_cast<uint8_t>(bits >> 8);
}

struct DecodeTables {
  HalvesTable<128> float8;  // Codes 0 to 127: the sign is added apart.
  HalvesTable<128> int8;    // Magnitudes; that of -128 is not among them and is set apart.
  HalvesTable<64> int4;     // Four times over: look-ups are within 128 bits.

  DecodeTables() {
    for (int i = 0; i < 128; ++i) {
      SetHalves(&float8, i, FloatOfFloat8(static_cast<uint8_t>(i)));
      SetHalves(&int8, i, static_cast<float>(i));
    }
    for (int i = 0; i < 64; ++i) {
      SetHalves(&int4, i, static_cast<float>(i % 16 < 8 ? i % 16 : i % 16 - 16));
    }
  }
};

inline const DecodeTables& Tables() {
  static const DecodeTables tables;
  return tables;
}

}  // namespace cairn::kernels

CAIRN_AVX512_BEGIN
namespace cairn::kernels::avx512 {

inline constexpr int kLineBytes = 64;

// Volatile, because compilers move prefetches together, and the processor drops those of a burst:
// a tenth of the memory's speed.
__attribute__((always_inline)) inline void Prefetch(const std::byte* line) {
  asm volatile("prefetcht0 %0" : : "m"(*line));
}

// Joins 64 low and high halves and stores 64 numbers.
inline void StoreJoined(__m512i low, __m512i high, std::byte* out) {
  _mm512_store_si512(out, _mm512_unpacklo_epi8(low, high));
  _mm512_store_si512(out + kLineBytes, _mm512_unpackhi_epi8(low, high));
}

// `codes` to `count` (a multiple of 64) numbers at `out` (aligned).
template <bool kIsInt8>
void DecodeBytes(const HalvesTable<128>& table, const std::byte* codes, uint64_t count,
                 std::byte* out) {
  const __m512i low0 = _mm512_load_si512(table.low), low1 = _mm512_load_si512(table.low + 64);
  const __m512i high0 = _mm512_load_si512(table.high), high1 = _mm512_load_si512(table.high + 64);
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80));
  const __m512i minus_128 = _mm512_set1_epi8(static_cast<char>(0xc3));
  for (uint64_t i = 0; i < count; i += kLineBytes) {
    const __m512i code = _mm512_permutexvar_epi64(order, _mm512_loadu_si512(codes + i));
    const __m512i index = kIsInt8 ? _mm512_abs_epi8(code) : code;
    const __m512i low = _mm512_permutex2var_epi8(low0, index, low1);
    __m512i high = _mm512_permutex2var_epi8(high0, index, high1);
    high = _mm512_ternarylogic_epi32(high, code, sign, 0xf8);  // high | (code & sign)
    if (kIsInt8) high = _mm512_mask_mov_epi8(high, _mm512_cmpeq_epi8_mask(code, sign), minus_128);
    StoreJoined(low, high, out + i * 2);
  }
}

inline void DecodeNibbles(const HalvesTable<64>& table, const std::byte* codes, uint64_t count,
                          std::byte* out) {
  const __m512i lows = _mm512_load_si512(table.low), highs = _mm512_load_si512(table.high);
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  const __m512i nibble = _mm512_set1_epi8(0x0f);
  for (uint64_t i = 0; i < count; i += kLineBytes) {
    const __m256i pairs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + i / 2));
    const __m512i wide = _mm512_cvtepu8_epi16(pairs);
    const __m512i spread =
        _mm512_and_si512(_mm512_or_si512(wide, _mm512_slli_epi16(wide, 4)), nibble);
    const __m512i index = _mm512_permutexvar_epi64(order, spread);
    StoreJoined(_mm512_shuffle_epi8(lows, index), _mm512_shuffle_epi8(highs, index), out + i * 2);
  }
}

}  // namespace cairn::kernels::avx512
CAIRN_AVX512_END
