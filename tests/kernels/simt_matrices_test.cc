// Matrix operations and conversions against products and numbers that the test makes by itself, in
// every lane order.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/float_formats.h"
#include "kernels/simt/simt.h"
#include "tests/kernels/simt_rig.h"

namespace cairn::kernels {
namespace {

using simt::AllOrders;
using simt::DeviceArray;
using simt::MatrixFloat;
using simt::SimtRig;

// C = A * B of warp 0 by way of ldmatrix, A 16x16 by rows, B kept as 8 rows of its transposed.
template <MatrixFloat kFloat, bool kTransposed>
struct MatrixKernel {
  struct Params {
    const uint16_t* a;  // [16][16]
    const uint16_t* b;  // Transposed: [16][8], else [8][16].
    float* c;           // [16][8]
  };
  static constexpr uint32_t kThreads = 32;
  static constexpr uint32_t kBlocksPerProcessor = 1;
  static constexpr uint32_t kB = 512;

  static void Run(const Params& params) {
    const uint32_t l = simt::Lane();
    simt::CopyAsync16(l * 16, params.a + l * 8, 16);
    simt::CopyAsync16(kB + l * 16, params.b + l % 16 * 8, 16);
    simt::CopyAsyncCommit();
    simt::CopyAsyncWait<0>();
    simt::SyncWarp();
    // Matrices in the order of fragments: rows 0 to 7 and 8 to 15 of the first eight columns, then
    // of the others.
    const simt::Fragments4 a = simt::LoadMatrix4((l % 16 * 2 + l / 16) * 16);
    // B by columns is its transposed by rows: eight rows of two halves, or the other way round.
    const simt::Fragments4 b = kTransposed ? simt::LoadMatrix4Transposed(kB + l % 16 * 16)
                                           : simt::LoadMatrix4(kB + (l % 8 * 2 + l / 8 % 2) * 16);
    float sum[4];
    for (uint32_t i = 0; i < 4; ++i) sum[i] = static_cast<float>(i);
    const uint32_t b_words[2] = {b.word[0], b.word[1]};
    simt::MultiplyAdd16816<kFloat>(sum, a.word, b_words);
    for (uint32_t i = 0; i < 4; ++i) {
      simt::StoreGlobal(params.c + (l / 4 + i / 2 * 8) * 8 + l % 4 * 2 + i % 2, sum[i]);
    }
  }
};

template <MatrixFloat kFloat, bool kTransposed>
void CheckProduct() {
  const auto code = [](float value) {
    return kFloat == MatrixFloat::kBfloat16 ? Bfloat16OfFloat(value) : Float16OfFloat(value);
  };
  std::vector<uint16_t> a(16 * 16), b(16 * 8);
  const auto a_at = [](uint32_t i, uint32_t k) {
    return static_cast<float>((i * 7 + k * 3) % 11) - 5;
  };
  const auto b_at = [](uint32_t k, uint32_t j) { return static_cast<float>((k * 5 + j) % 13) - 6; };
  for (uint32_t i = 0; i < 16; ++i) {
    for (uint32_t k = 0; k < 16; ++k) a[i * 16 + k] = code(a_at(i, k));
  }
  for (uint32_t k = 0; k < 16; ++k) {
    for (uint32_t j = 0; j < 8; ++j) b[kTransposed ? k * 8 + j : j * 16 + k] = code(b_at(k, j));
  }
  for (const auto& order : AllOrders()) {
    SimtRig rig(order);
    DeviceArray<uint16_t> a_memory(rig.registry(), a);
    DeviceArray<uint16_t> b_memory(rig.registry(), b);
    DeviceArray<float> c(rig.registry(), 16 * 8);
    using Kernel = MatrixKernel<kFloat, kTransposed>;
    ASSERT_EQ(rig.Run<Kernel>({1, 1, 1024}, {a_memory.data(), b_memory.data(), c.data()}), "");
    const std::vector<float> got = c.values();
    for (uint32_t i = 0; i < 16; ++i) {
      for (uint32_t j = 0; j < 8; ++j) {
        float expected = static_cast<float>(i / 8 * 2 + j % 2);
        for (uint32_t k = 0; k < 16; ++k) expected += a_at(i, k) * b_at(k, j);
        ASSERT_EQ(got[i * 8 + j], expected) << i << " " << j;
      }
    }
  }
}

TEST(SimtMatrices, MatrixFragmentsMultiplyAsMatrices) {
  CheckProduct<MatrixFloat::kBfloat16, false>();
  CheckProduct<MatrixFloat::kBfloat16, true>();
  CheckProduct<MatrixFloat::kFloat16, false>();
  CheckProduct<MatrixFloat::kFloat16, true>();
}

template <MatrixFloat kFloat>
void CheckConversions() {
  using simt::DecodeFloat8;
  using simt::DecodeInt4;
  using simt::DecodeInt8;
  using simt::HighOf;
  using simt::LowOf;
  const auto all = [](const simt::TwoPairs& pairs) {
    return std::vector<float>{LowOf<kFloat>(pairs.low), HighOf<kFloat>(pairs.low),
                              LowOf<kFloat>(pairs.high), HighOf<kFloat>(pairs.high)};
  };
  for (uint32_t code = 0; code < 256; ++code) {
    const uint32_t codes = code | (255 - code) << 8 | (code ^ 0x55) << 16 | (code ^ 0xaa) << 24;
    const std::vector<float> numbers = all(DecodeFloat8<kFloat>(codes));
    const std::vector<float> integers = all(DecodeInt8<kFloat>(codes));
    const std::vector<float> small = all(DecodeInt4<kFloat>(codes));
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t byte = codes >> (8 * i) & 0xff;
      const float number = FloatOfFloat8(static_cast<uint8_t>(byte));
      EXPECT_TRUE(numbers[i] == number || (std::isnan(number) && std::isnan(numbers[i]))) << byte;
      EXPECT_EQ(integers[i], static_cast<float>(static_cast<int8_t>(byte)));
      const int32_t nibble = static_cast<int32_t>(codes >> (4 * i) & 15);
      EXPECT_EQ(small[i], static_cast<float>(nibble < 8 ? nibble : nibble - 16));
    }
  }
}

TEST(SimtMatrices, CodesBecomeTheirNumbers) {
  CheckConversions<MatrixFloat::kBfloat16>();
  CheckConversions<MatrixFloat::kFloat16>();
}

}  // namespace
}  // namespace cairn::kernels
