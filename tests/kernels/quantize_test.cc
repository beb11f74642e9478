// Conversions over all codes: against tables written out from the formats' definitions, against the
// nearest code found by search, and vectors against scalars.
#include "kernels/quantize.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/decode_element.h"

namespace cairn::kernels {
namespace {

constexpr KvDtype kDtypes[] = {KvDtype::kFloat16,      KvDtype::kBfloat16, KvDtype::kFloat32,
                               KvDtype::kFloat8E4m3fn, KvDtype::kInt8,     KvDtype::kInt4};

// By the definition: sign, four bits of exponent with bias 7, three of mantissa, no infinity.
double Float8Value(int code) {
  const int exponent = (code >> 3) & 15, mantissa = code & 7;
  const double size =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return code & 0x80 ? -size : size;
}

double Float16Value(int code) {
  const int exponent = (code >> 10) & 31, mantissa = code & 1023;
  const double size =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return code & 0x8000 ? -size : size;
}

TEST(FormatsTest, EveryFloat8CodeHasItsValueAndComesBack) {
  for (int code = 0; code < 256; ++code) {
    const float value = FloatOfFloat8(static_cast<uint8_t>(code));
    if ((code & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_EQ(Float8OfFloat(value) & 0x7f, 0x7f);
      continue;
    }
    EXPECT_EQ(value, Float8Value(code)) << code;
    EXPECT_EQ(Float8OfFloat(value), code) << code;
  }
}

TEST(FormatsTest, EveryFloat16AndBfloat16CodeHasItsValueAndComesBack) {
  for (int code = 0; code < 65536; ++code) {
    const uint16_t half = static_cast<uint16_t>(code);
    const float value = FloatOfFloat16(half);
    if ((code & 0x7c00) != 0x7c00) {
      ASSERT_EQ(value, Float16Value(code)) << code;
      ASSERT_EQ(Float16OfFloat(value), half) << code;
    } else if ((code & 0x3ff) == 0) {
      ASSERT_TRUE(std::isinf(value));
      ASSERT_EQ(Float16OfFloat(value), half);
    } else {
      ASSERT_TRUE(std::isnan(value));
    }
    const float wide = FloatOfBfloat16(half);
    if (std::isnan(wide)) {
      ASSERT_TRUE(std::isnan(FloatOfBfloat16(Bfloat16OfFloat(wide))));
    } else {
      ASSERT_EQ(Bfloat16OfFloat(wide), half) << code;
    }
  }
}

// Halfway between neighbours goes to the even code, a hair off it to the nearer one.
template <class Decode, class Encode>
void ExpectNearest(int codes, const Decode& decode, const Encode& encode) {
  for (int code = 0; code + 1 < codes; ++code) {
    const float low = decode(code), high = decode(code + 1);
    const float middle = low + (high - low) / 2;
    EXPECT_EQ(encode(middle), code % 2 == 0 ? code : code + 1) << code;
    EXPECT_EQ(encode(std::nextafter(middle, low)), code) << code;
    EXPECT_EQ(encode(std::nextafter(middle, high)), code + 1) << code;
  }
}

TEST(FormatsTest, RoundingIsToNearestEven) {
  ExpectNearest(
      0x7f, [](int code) { return FloatOfFloat8(static_cast<uint8_t>(code)); },
      [](float value) { return static_cast<int>(Float8OfFloat(value)); });
  ExpectNearest(
      0x7c00, [](int code) { return FloatOfFloat16(static_cast<uint16_t>(code)); },
      [](float value) { return static_cast<int>(Float16OfFloat(value)); });
  ExpectNearest(
      0x7f80, [](int code) { return FloatOfBfloat16(static_cast<uint16_t>(code)); },
      [](float value) { return static_cast<int>(Bfloat16OfFloat(value)); });
  ExpectNearest(
      128, [](int code) { return static_cast<float>(code); },
      [](float value) { return IntegerOfFloat(value, 127); });
}

TEST(FormatsTest, WhatIsTooLargeSaturatesAndNansStay) {
  EXPECT_EQ(FloatOfFloat8(Float8OfFloat(1e9f)), 448);
  EXPECT_EQ(FloatOfFloat8(Float8OfFloat(-INFINITY)), -448);
  EXPECT_EQ(FloatOfFloat8(Float8OfFloat(464.1f)), 448);
  EXPECT_EQ(Float16OfFloat(65520), 0x7c00);
  EXPECT_EQ(Float16OfFloat(65519), 0x7bff);
  EXPECT_TRUE(std::isnan(FloatOfBfloat16(Bfloat16OfFloat(FloatOfBits(0x7f800001)))));
  EXPECT_EQ(IntegerOfFloat(300, 127), 127);
  EXPECT_EQ(IntegerOfFloat(-300, 7), -7);
  EXPECT_EQ(IntegerOfFloat(NAN, 127), 0);
}

TEST(QuantizeTest, VectorsDecodeEveryCodeAsScalarsDo) {
  for (KvDtype dtype : kDtypes) {
    // All 16-bit patterns, which hold all codes of all dtypes, and an odd tail.
    std::vector<std::byte> codes(65536 * 2 + 2);
    for (int i = 0; i <= 65536; ++i) {
      const uint16_t code = static_cast<uint16_t>(i);
      std::memcpy(&codes[static_cast<size_t>(i) * 2], &code, 2);
    }
    const uint64_t count = codes.size() * 8 / BitsOf(dtype);
    std::vector<float> values(count);
    Dequantize(dtype, codes.data(), count, 1, values.data());
    for (uint64_t i = 0; i < count; ++i) {
      const float expected = DecodeElement(dtype, codes.data(), i);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(values[i])) << NameOf(dtype) << " " << i;
      } else {
        ASSERT_EQ(BitsOfFloat(values[i]), BitsOfFloat(expected)) << NameOf(dtype) << " " << i;
      }
    }
  }
}

TEST(QuantizeTest, ThereAndBackIsWithinHalfAStep) {
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal(0, 5);
  std::vector<float> values(256), back(256);
  for (float& value : values) value = normal(random);
  for (KvDtype dtype : kDtypes) {
    std::vector<std::byte> codes(values.size() * 4);
    const float scale = ScaleFor(dtype, values.data(), values.size());
    Quantize(dtype, values.data(), values.size(), scale, codes.data());
    Dequantize(dtype, codes.data(), values.size(), scale, back.data());
    for (size_t i = 0; i < values.size(); ++i) {
      const float size = std::fabs(values[i]);
      const bool is_integer = dtype == KvDtype::kInt8 || dtype == KvDtype::kInt4;
      const float step =
          is_integer ? scale
                     : (dtype == KvDtype::kFloat8E4m3fn ? size / 8 + scale / 512 : size / 128);
      EXPECT_NEAR(back[i], values[i], step / 2 * 1.0001f) << NameOf(dtype);
    }
  }
}

TEST(QuantizeTest, ScalesAreNeverZeroNorInfinite) {
  const float zeros[4] = {};
  const float odd[4] = {1, INFINITY, 2, 3};
  const float tiny[2] = {1e-45f, 0};
  for (KvDtype dtype : kDtypes) {
    EXPECT_EQ(ScaleFor(dtype, zeros, 4), 1);
    EXPECT_EQ(ScaleFor(dtype, odd, 4), 1);
    EXPECT_GT(ScaleFor(dtype, tiny, 2), 0);
  }
  const float values[2] = {-254, 12};
  EXPECT_EQ(ScaleFor(KvDtype::kInt8, values, 2), 2);
}

TEST(QuantizeTest, Int4PutsTheEvenIndexIntoTheLowNibble) {
  const float values[4] = {1, -2, 7, -7};
  std::byte codes[2];
  Quantize(KvDtype::kInt4, values, 4, 1, codes);
  EXPECT_EQ(codes[0], std::byte{0xe1});
  EXPECT_EQ(codes[1], std::byte{0x97});
}

}  // namespace
}  // namespace cairn::kernels
