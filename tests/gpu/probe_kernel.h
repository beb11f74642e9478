// The kernel of the probes.
#pragma once

#include <cstdint>

#include "kernels/simt/simt.h"
#include "tests/gpu/probe.h"

CAIRN_SIMT_BEGIN

struct ProbeKernel {
  using Params = gpu_check::ProbeParams;
  using Kind = gpu_check::ProbeKind;
  static constexpr uint32_t kThreads = gpu_check::kProbeThreads;
  static constexpr uint32_t kBlocksPerProcessor = 1;
  static constexpr uint32_t kWords = gpu_check::kProbeWords;
  static constexpr uint32_t kSharedBytes = kThreads * 32;
  using Words = uint32_t[kWords];

  static CAIRN_SIMT_DEVICE void Run(const Params& params) {
    const uint32_t thread = simt::BlockX() * kThreads + simt::Thread();
    Words in;
    Words out = {};
    for (uint32_t i = 0; i < kWords; ++i) in[i] = simt::LoadGlobal(params.in + thread * kWords + i);
    Do(params, in, out);
    for (uint32_t i = 0; i < kWords; ++i) {
      simt::StoreGlobal(params.out + thread * kWords + i, out[i]);
    }
  }

  static CAIRN_SIMT_DEVICE void Do(const Params& params, const Words& in, Words& out) {
    switch (params.kind) {
      case Kind::kPlaces:
        return Places(out);
      case Kind::kShuffles:
        return Shuffles(in, out);
      case Kind::kVotes:
        return Votes(in, out);
      case Kind::kCopies:
        return Copies(params, out);
      case Kind::kLoadMatrix:
      case Kind::kLoadMatrixTransposed:
        return LoadMatrix(params.kind == Kind::kLoadMatrixTransposed, in, out);
      case Kind::kMultiplyBfloat16:
        return Multiply<simt::MatrixFloat::kBfloat16>(in, out);
      case Kind::kMultiplyFloat16:
        return Multiply<simt::MatrixFloat::kFloat16>(in, out);
      case Kind::kDecodeBfloat16:
        return Decode<simt::MatrixFloat::kBfloat16>(in, out);
      case Kind::kDecodeFloat16:
        return Decode<simt::MatrixFloat::kFloat16>(in, out);
      case Kind::kPack:
        return Pack(in, out);
      case Kind::kExactNumbers:
        return ExactNumbers(in, out);
      case Kind::kNearNumbers:
        return NearNumbers(in, out);
      case Kind::kCount:
        return;
    }
  }

  static CAIRN_SIMT_DEVICE void Places(Words& out) {
    out[0] = simt::BlockX();
    out[1] = simt::BlockY();
    out[2] = simt::GridX() << 16 | simt::GridY();
    out[3] = simt::Thread();
    out[4] = simt::Lane();
    out[5] = simt::Warp();
  }

  static CAIRN_SIMT_DEVICE void Shuffles(const Words& in, Words& out) {
    out[0] = simt::ShuffleXor(in[0], 21);
    out[1] = simt::ShuffleFrom(in[1], in[2]);
    const simt::Bytes16 four = {{in[0], in[1], in[2], in[3]}};
    const simt::Bytes16 others = simt::ShuffleXor(four, 4);
    for (uint32_t i = 0; i < 4; ++i) out[2 + i] = others.word[i];
    out[6] = simt::ShuffleFrom(static_cast<uint16_t>(in[0]), 7);
    const uint64_t two = simt::ShuffleXor(uint64_t{in[4]} << 32 | in[5], 16);
    out[7] = static_cast<uint32_t>(two >> 32) ^ static_cast<uint32_t>(two);
  }

  static CAIRN_SIMT_DEVICE void Votes(const Words& in, Words& out) {
    out[0] = simt::Ballot(in[0] % 2 == 0);
    out[1] = simt::WarpMax(in[1]);
    out[2] = simt::WarpSum(in[2], 8);
    // Small integers: sums of floats are exact.
    out[3] = simt::BitsOf(simt::WarpSum(static_cast<float>(in[3] % 1000)));
    out[4] = simt::BitsOf(simt::WarpMax(static_cast<float>(in[4] % 1000), 4));
  }

  // Each thread copies 0 to 16 bytes, a neighbour of its warp and one across the block read them.
  static CAIRN_SIMT_DEVICE void Copies(const Params& params, Words& out) {
    const uint32_t t = simt::Thread();
    const uint32_t* const from = params.in + (simt::BlockX() * kThreads + t) * kWords;
    simt::CopyAsync16(t * 16, from, t % 17);
    simt::CopyAsyncCommit();
    simt::CopyAsync16(kThreads * 16 + t * 16, from + 4, 16 - t % 17, simt::EvictFirst());
    simt::CopyAsyncCommit();
    simt::CopyAsyncWait<1>();
    simt::SyncWarp();
    const auto near = simt::LoadShared<simt::Bytes16>((t ^ 1) * 16);
    simt::CopyAsyncWait<0>();
    simt::SyncBlock();
    const auto far = simt::LoadShared<simt::Bytes16>(kThreads * 16 + (t ^ 96) * 16);
    for (uint32_t i = 0; i < 4; ++i) {
      out[i] = near.word[i];
      out[4 + i] = far.word[i];
    }
  }

  // Rows of a warp's four matrices, from wherever lanes say.
  static CAIRN_SIMT_DEVICE void LoadMatrix(bool transposed, const Words& in, Words& out) {
    const uint32_t base = simt::Warp() * simt::kWarpLanes * 16;
    simt::StoreShared(base + simt::Lane() * 16, simt::Bytes16{{in[0], in[1], in[2], in[3]}});
    simt::SyncWarp();
    const uint32_t row = base + (in[4] % simt::kWarpLanes) * 16;
    const simt::Fragments4 got =
        transposed ? simt::LoadMatrix4Transposed(row) : simt::LoadMatrix4(row);
    for (uint32_t i = 0; i < 4; ++i) out[i] = got.word[i];
  }

  // Integers up to 7: products and sums are exact.
  template <simt::MatrixFloat kFloat>
  static CAIRN_SIMT_DEVICE uint32_t SmallPair(uint32_t bits) {
    return simt::PackPair<kFloat>(static_cast<float>(bits % 16) - 8.0f,
                                  static_cast<float>(bits / 16 % 16) - 8.0f);
  }

  template <simt::MatrixFloat kFloat>
  static CAIRN_SIMT_DEVICE void Multiply(const Words& in, Words& out) {
    float sum[4];
    uint32_t a[4];
    for (uint32_t i = 0; i < 4; ++i) {
      sum[i] = static_cast<float>(in[7] >> (8 * i) & 0xffu);
      a[i] = SmallPair<kFloat>(in[i]);
    }
    const uint32_t b[2] = {SmallPair<kFloat>(in[4]), SmallPair<kFloat>(in[5])};
    simt::MultiplyAdd16816<kFloat>(sum, a, b);
    for (uint32_t i = 0; i < 4; ++i) out[i] = simt::BitsOf(sum[i]);
  }

  template <simt::MatrixFloat kFloat>
  static CAIRN_SIMT_DEVICE void Decode(const Words& in, Words& out) {
    const simt::TwoPairs float8 = simt::DecodeFloat8<kFloat>(in[0]);
    const simt::TwoPairs int8 = simt::DecodeInt8<kFloat>(in[0]);
    const simt::TwoPairs int4 = simt::DecodeInt4<kFloat>(in[0]);
    out[0] = float8.low;
    out[1] = float8.high;
    out[2] = int8.low;
    out[3] = int8.high;
    out[4] = int4.low;
    out[5] = int4.high;
    out[6] = simt::BitsOf(simt::LowOf<kFloat>(float8.low));
    out[7] = simt::BitsOf(simt::HighOf<kFloat>(float8.high));
  }

  // Any bits of float32 that are no NaN.
  static CAIRN_SIMT_DEVICE void Pack(const Words& in, Words& out) {
    for (uint32_t i = 0; i < kWords; i += 2) {
      const float low = Number(in[i]);
      const float high = Number(in[i + 1]);
      out[i] = simt::PackPair<simt::MatrixFloat::kBfloat16>(low, high);
      out[i + 1] = simt::PackPair<simt::MatrixFloat::kFloat16>(low, high);
    }
  }
  static CAIRN_SIMT_DEVICE float Number(uint32_t bits) {
    return simt::FloatOf((bits & 0x7f800000u) == 0x7f800000u ? bits & 0xff800000u : bits);
  }

  static CAIRN_SIMT_DEVICE void ExactNumbers(const Words& in, Words& out) {
    const uint64_t a = uint64_t{in[0]} << 32 | in[1];
    const uint64_t b = uint64_t{in[2]} << 32 | in[3];
    const uint64_t high = simt::HighProduct(a, b);
    out[0] = static_cast<uint32_t>(high >> 32);
    out[1] = static_cast<uint32_t>(high);
    out[2] = simt::CountOnes(in[4]);
    out[3] = simt::BytePermute(in[0], in[1], in[5] & 0x7777u);
    out[4] = simt::BitsOf(simt::RoundToEven(static_cast<float>(in[6] % 4096) / 8.0f - 200.0f));
    const float nan = simt::FloatOf(0x7fc00000u);
    out[5] = simt::BitsOf(simt::Max(nan, 2.0f)) ^ simt::BitsOf(simt::Min(3.0f, nan));
    // A quotient of what conversions divide: correctly rounded everywhere.
    out[6] = simt::BitsOf(static_cast<float>(in[6] % 65536) / static_cast<float>(in[7] % 999 + 1));
    out[7] = simt::BitsOf(simt::Exp2(-simt::Infinity()));
  }

  static CAIRN_SIMT_DEVICE void NearNumbers(const Words& in, Words& out) {
    const float number = static_cast<float>(in[0] % 20000) / 1000.0f + 0.125f;
    out[0] = simt::BitsOf(simt::Exp2(-number));
    out[1] = simt::BitsOf(simt::Exp2(number));
    out[2] = simt::BitsOf(simt::Log2(number) + 8.0f);
    out[3] = simt::BitsOf(simt::Tanh(number));
  }
};

CAIRN_SIMT_END
