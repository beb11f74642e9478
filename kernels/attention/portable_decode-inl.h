// Stored codes to float32 with Highway. Included once for each target (hence no `#pragma once`).
#if defined(CAIRN_PORTABLE_DECODE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIRN_PORTABLE_DECODE_INL
#undef CAIRN_PORTABLE_DECODE_INL
#else
#define CAIRN_PORTABLE_DECODE_INL
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "kernels/decode_element.h"
#include "kernels/kv_dtype.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Ints = hn::RebindToSigned<Floats>;
using Uints = hn::RebindToUnsigned<Floats>;
using Vector = hn::Vec<Floats>;

// One vector of elements from element `i` of `codes`.
struct Bfloat16Decoder {
  Vector operator()(const std::byte* codes, uint64_t i) const {
    const hn::Rebind<uint16_t, Floats> narrow;
    const auto halves = hn::LoadU(narrow, reinterpret_cast<const uint16_t*>(codes) + i);
    return hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(Uints(), halves)));
  }
};

struct Float16Decoder {
  Vector operator()(const std::byte* codes, uint64_t i) const {
    const hn::Rebind<hwy::float16_t, Floats> narrow;
    return hn::PromoteTo(Floats(),
                         hn::LoadU(narrow, reinterpret_cast<const hwy::float16_t*>(codes) + i));
  }
};

struct Float32Decoder {
  Vector operator()(const std::byte* codes, uint64_t i) const {
    return hn::LoadU(Floats(), reinterpret_cast<const float*>(codes) + i);
  }
};

struct Int8Decoder {
  Vector operator()(const std::byte* codes, uint64_t i) const {
    const hn::Rebind<int8_t, Floats> narrow;
    const auto bytes = hn::LoadU(narrow, reinterpret_cast<const int8_t*>(codes) + i);
    return hn::ConvertTo(Floats(), hn::PromoteTo(Ints(), bytes));
  }
};

struct Float8Decoder {
  Vector operator()(const std::byte* codes, uint64_t i) const {
    const hn::Rebind<uint8_t, Floats> narrow;
    const Uints d;
    const auto code =
        hn::PromoteTo(d, hn::LoadU(narrow, reinterpret_cast<const uint8_t*>(codes) + i));
    const auto magnitude = hn::And(code, hn::Set(d, 0x7fu));
    const auto sign = hn::ShiftLeft<24>(hn::And(code, hn::Set(d, 0x80u)));
    // 2^120 makes up for the difference of the biases; a subnormal becomes normal.
    const auto scaled = hn::Mul(hn::BitCast(Floats(), hn::ShiftLeft<20>(magnitude)),
                                hn::BitCast(Floats(), hn::Set(d, 0x7b800000u)));
    const auto is_nan = hn::RebindMask(Floats(), hn::Eq(magnitude, hn::Set(d, 0x7fu)));
    const auto nan = hn::BitCast(Floats(), hn::Set(d, 0x7fc00000u));
    return hn::Or(hn::IfThenElse(is_nan, nan, scaled), hn::BitCast(Floats(), sign));
  }
};

// One row of `dim` elements to float32.
template <class Decoder>
void DecodeRowWith(KvDtype dtype, const std::byte* codes, uint64_t dim, float* out) {
  const Decoder decode;
  const uint64_t lanes = hn::Lanes(Floats());
  uint64_t d = 0;
  for (; d + lanes <= dim; d += lanes) hn::StoreU(decode(codes, d), Floats(), out + d);
  for (; d < dim; ++d) out[d] = DecodeElement(dtype, codes, d);
}

inline void DecodeInt4Row(const std::byte* codes, uint64_t dim, float* out) {
  for (uint64_t d = 0; d < dim; d += 2) {
    const int32_t byte = static_cast<int32_t>(codes[d / 2]);
    out[d] = static_cast<float>(((byte & 0xf) ^ 8) - 8);
    out[d + 1] = static_cast<float>((byte >> 4 ^ 8) - 8);
  }
}

inline void DecodeRow(KvDtype dtype, const std::byte* codes, uint64_t dim, float* out) {
  switch (dtype) {
    case KvDtype::kFloat16:
      return DecodeRowWith<Float16Decoder>(dtype, codes, dim, out);
    case KvDtype::kBfloat16:
      return DecodeRowWith<Bfloat16Decoder>(dtype, codes, dim, out);
    case KvDtype::kFloat32:
      return DecodeRowWith<Float32Decoder>(dtype, codes, dim, out);
    case KvDtype::kFloat8E4m3fn:
      return DecodeRowWith<Float8Decoder>(dtype, codes, dim, out);
    case KvDtype::kInt8:
      return DecodeRowWith<Int8Decoder>(dtype, codes, dim, out);
    case KvDtype::kInt4:
      return DecodeInt4Row(codes, dim, out);
  }
}

}  // namespace cairn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CAIRN_PORTABLE_DECODE_INL
