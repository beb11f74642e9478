// Units of a row: the elements that a thread loads or stores at once.
//
// Eight of them where addresses allow it, so that 16-bit elements move 16 bytes a thread; else one,
// or two of int4. Wide floats' dtype is chosen at run time: rows are bound by memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gpu/element_formats.h"
#include "kernels/kv_dtype.h"
#include "kernels/simt/simt.h"

CAIRN_SIMT_BEGIN

inline constexpr uint32_t kWideUnit = 8;

template <KvDtype kDtype, bool kWide>
constexpr uint32_t kUnitElements = kWide ? kWideUnit : (kDtype == KvDtype::kInt4 ? 2 : 1);

template <KvDtype kDtype>
CAIRN_SIMT_DEVICE uint64_t BytesOfElements(uint64_t count) {
  return count * kBitsOf<kDtype> / 8;
}

// The codes of a unit as stored, in 32-bit words: kUnit * bits / 32 of them, or part of one.
template <KvDtype kDtype, uint32_t kUnit>
struct CodeWords {
  static constexpr uint32_t kBits = kBitsOf<kDtype>;
  static constexpr uint32_t kBytes = kUnit * kBits / 8;
  static constexpr uint32_t kWords = (kBytes + 3) / 4;
  uint32_t word[kWords];

  CAIRN_SIMT_DEVICE uint32_t Code(uint32_t i) const {
    return word[i * kBits / 32] >> (i * kBits % 32);
  }
  CAIRN_SIMT_DEVICE void Put(uint32_t i, uint32_t code) {
    word[i * kBits / 32] |= code << (i * kBits % 32);
  }
};

// Both are aligned to the unit's bytes, up to 16.
template <KvDtype kDtype, uint32_t kUnit>
CAIRN_SIMT_DEVICE CodeWords<kDtype, kUnit> LoadCodes(const std::byte* from) {
  using Words = CodeWords<kDtype, kUnit>;
  Words words = {};
  if constexpr (Words::kBytes >= 16) {
    CAIRN_SIMT_UNROLL
    for (uint32_t i = 0; i < Words::kBytes / 16; ++i) {
      const simt::Bytes16 part = simt::LoadGlobalStreaming16(from + i * 16);
      CAIRN_SIMT_UNROLL
      for (uint32_t j = 0; j < 4; ++j) words.word[i * 4 + j] = part.word[j];
    }
  } else if constexpr (Words::kBytes == 8) {
    const auto part = simt::LoadGlobal(reinterpret_cast<const simt::Bytes8*>(from));
    words.word[0] = part.word[0];
    words.word[1] = part.word[1];
  } else if constexpr (Words::kBytes == 4) {
    words.word[0] = simt::LoadGlobal(reinterpret_cast<const uint32_t*>(from));
  } else if constexpr (Words::kBytes == 2) {
    words.word[0] = simt::LoadGlobal(reinterpret_cast<const uint16_t*>(from));
  } else {
    words.word[0] = simt::LoadGlobal(reinterpret_cast<const uint8_t*>(from));
  }
  return words;
}

template <KvDtype kDtype, uint32_t kUnit>
CAIRN_SIMT_DEVICE void StoreCodes(std::byte* to, const CodeWords<kDtype, kUnit>& words) {
  using Words = CodeWords<kDtype, kUnit>;
  if constexpr (Words::kBytes >= 16) {
    CAIRN_SIMT_UNROLL
    for (uint32_t i = 0; i < Words::kBytes / 16; ++i) {
      simt::Bytes16 part;
      CAIRN_SIMT_UNROLL
      for (uint32_t j = 0; j < 4; ++j) part.word[j] = words.word[i * 4 + j];
      simt::StoreGlobal(reinterpret_cast<simt::Bytes16*>(to + i * 16), part);
    }
  } else if constexpr (Words::kBytes == 8) {
    const simt::Bytes8 part = {{words.word[0], words.word[1]}};
    simt::StoreGlobal(reinterpret_cast<simt::Bytes8*>(to), part);
  } else if constexpr (Words::kBytes == 4) {
    simt::StoreGlobal(reinterpret_cast<uint32_t*>(to), words.word[0]);
  } else if constexpr (Words::kBytes == 2) {
    simt::StoreGlobal(reinterpret_cast<uint16_t*>(to), static_cast<uint16_t>(words.word[0]));
  } else {
    simt::StoreGlobal(reinterpret_cast<uint8_t*>(to), static_cast<uint8_t>(words.word[0]));
  }
}

// How many elements are one access: all of a wide unit or of a byte of int4, else one.
template <KvDtype kDtype, uint32_t kUnit>
constexpr uint32_t kAccessElements = kUnit == kWideUnit || kDtype == KvDtype::kInt4 ? kUnit : 1;

// Unit `unit` of the row at `row`, as numbers without a scale.
template <KvDtype kDtype, uint32_t kUnit>
CAIRN_SIMT_DEVICE void LoadUnit(const std::byte* row, uint64_t unit, float (&numbers)[kUnit]) {
  constexpr uint32_t kAccess = kAccessElements<kDtype, kUnit>;
  const std::byte* const from = row + BytesOfElements<kDtype>(unit * kUnit);
  CAIRN_SIMT_UNROLL
  for (uint32_t first = 0; first < kUnit; first += kAccess) {
    const auto words = LoadCodes<kDtype, kAccess>(from + BytesOfElements<kDtype>(first));
    CAIRN_SIMT_UNROLL
    for (uint32_t i = 0; i < kAccess; ++i) numbers[first + i] = NumberOf<kDtype>(words.Code(i));
  }
}

template <KvDtype kDtype, uint32_t kUnit>
CAIRN_SIMT_DEVICE void StoreUnit(std::byte* row, uint64_t unit, const float (&numbers)[kUnit]) {
  constexpr uint32_t kAccess = kAccessElements<kDtype, kUnit>;
  std::byte* const to = row + BytesOfElements<kDtype>(unit * kUnit);
  CAIRN_SIMT_UNROLL
  for (uint32_t first = 0; first < kUnit; first += kAccess) {
    CodeWords<kDtype, kAccess> words = {};
    CAIRN_SIMT_UNROLL
    for (uint32_t i = 0; i < kAccess; ++i) words.Put(i, CodeOf<kDtype>(numbers[first + i]));
    StoreCodes<kDtype, kAccess>(to + BytesOfElements<kDtype>(first), words);
  }
}

// Of a wide float.
CAIRN_SIMT_DEVICE uint32_t BytesOfFloat(KvDtype dtype) {
  return dtype == KvDtype::kFloat32 ? 4 : 2;
}

template <uint32_t kUnit>
CAIRN_SIMT_DEVICE void LoadFloatUnit(KvDtype dtype, const std::byte* row, uint64_t unit,
                                     float (&numbers)[kUnit]) {
  if (dtype == KvDtype::kFloat32) return LoadUnit<KvDtype::kFloat32, kUnit>(row, unit, numbers);
  if (dtype == KvDtype::kFloat16) return LoadUnit<KvDtype::kFloat16, kUnit>(row, unit, numbers);
  LoadUnit<KvDtype::kBfloat16, kUnit>(row, unit, numbers);
}

template <uint32_t kUnit>
CAIRN_SIMT_DEVICE void StoreFloatUnit(KvDtype dtype, std::byte* row, uint64_t unit,
                                      const float (&numbers)[kUnit]) {
  if (dtype == KvDtype::kFloat32) return StoreUnit<KvDtype::kFloat32, kUnit>(row, unit, numbers);
  if (dtype == KvDtype::kFloat16) return StoreUnit<KvDtype::kFloat16, kUnit>(row, unit, numbers);
  StoreUnit<KvDtype::kBfloat16, kUnit>(row, unit, numbers);
}

// One row of numbers into codes, by `lanes` neighbouring lanes (a power of two) of which this one
// is `lane`. All lanes of the warp take part, those without a row with `units` 0.
struct RowToEncode {
  KvDtype source_dtype = KvDtype::kFloat32;
  const std::byte* numbers = nullptr;
  std::byte* codes = nullptr;
  uint64_t units = 0;
  bool computes_scale = false;
  float scale = 1;  // If it is not computed.
};

// Returns the scale. A lane's first unit stays in registers between the two passes, others are
// loaded once more.
template <KvDtype kDtype, uint32_t kUnit>
CAIRN_SIMT_DEVICE float EncodeRow(const RowToEncode& row, uint32_t lane, uint32_t lanes) {
  float first[kUnit] = {};
  uint32_t largest = 0;
  for (uint64_t unit = lane; unit < row.units; unit += lanes) {
    float numbers[kUnit];
    LoadFloatUnit<kUnit>(row.source_dtype, row.numbers, unit, numbers);
    CAIRN_SIMT_UNROLL
    for (uint32_t i = 0; i < kUnit; ++i) {
      const uint32_t bits = simt::BitsOf(numbers[i]) & 0x7fffffffu;
      largest = bits > largest ? bits : largest;
      if (unit == lane) first[i] = numbers[i];
    }
    if (!row.computes_scale) break;
  }
  float scale = row.scale;
  if (row.computes_scale) scale = ScaleOfLargest<kDtype>(simt::WarpMax(largest, lanes));
  for (uint64_t unit = lane; unit < row.units; unit += lanes) {
    float numbers[kUnit];
    if (unit != lane) LoadFloatUnit<kUnit>(row.source_dtype, row.numbers, unit, numbers);
    CAIRN_SIMT_UNROLL
    for (uint32_t i = 0; i < kUnit; ++i) {
      numbers[i] = (unit == lane ? first[i] : numbers[i]) / scale;
    }
    StoreUnit<kDtype, kUnit>(row.codes, unit, numbers);
  }
  return scale;
}

// How many lanes share a row of so many units.
inline uint32_t LanesOfRow(uint64_t units) {
  uint32_t lanes = 1;
  while (lanes < simt::kWarpLanes && lanes < units) lanes *= 2;
  return lanes;
}

CAIRN_SIMT_END
