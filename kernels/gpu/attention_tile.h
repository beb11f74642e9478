// AttentionTile: one unit of 16 tokens in shared memory, multiplied with 8 rows of queries.
//
// Swapped operands of m16n8k16: 16 tokens times 8 rows for the logits, 16 dims times 8 rows for the
// output. Codes of 8 and 4 bits are loaded as if they were 16-bit elements and become fragments in
// an order of their own; queries are stored in the same order, and DimOf says where outputs are.
// Rows of tiles lie kPitch bytes apart, each 16 bytes at their place XOR the row's last three bits,
// so that eight rows of a matrix never share a bank.
#pragma once

#include "kernels/kv_dtype.h"
#include "kernels/simt/simt.h"

CAIRN_SIMT_BEGIN

CAIRN_SIMT_DEVICE uint32_t SwizzledOffset(uint32_t row, uint32_t chunk, uint32_t pitch) {
  return row * pitch + ((chunk ^ (row & 7)) << 4);
}

template <KvDtype kDtype, uint32_t kKeyDim, uint32_t kValueDim>
struct AttentionTile {
  static constexpr uint32_t kBits = BitsOf(kDtype);
  static constexpr simt::MatrixFloat kFloat =
      kDtype == KvDtype::kBfloat16 ? simt::MatrixFloat::kBfloat16 : simt::MatrixFloat::kFloat16;
  static constexpr uint32_t kChunkDims = 128 / kBits;    // Of 16 bytes.
  static constexpr uint32_t kLoadDims = 2 * kChunkDims;  // Of one load of four matrices.
  static constexpr uint32_t kLoadSteps = kLoadDims / 16;
  static constexpr uint32_t kOutputs = kValueDim / 16;  // Fragments of 16 dims times 8 rows.
  static constexpr uint32_t kQueryPitch = kKeyDim * 2;
  static_assert(kKeyDim % 64 == 0 && kValueDim % 64 == 0, "whole loads of the narrowest codes");

  CAIRN_SIMT_BOTH static constexpr uint32_t PitchOf(uint32_t dim) {
    return (dim * kBits / 8 + 127) / 128 * 128;
  }

  // Where element `dim` of a query stands within its row.
  CAIRN_SIMT_DEVICE static uint32_t QueryPlace(uint32_t dim) {
    if (kBits == 16) return dim;
    const uint32_t codes = 32 / kBits;  // Of a word.
    const uint32_t lane = dim / codes % 4;
    const uint32_t step = dim / (4 * codes) * (codes / 4) + dim % codes / 4;
    const uint32_t of_four = dim % 4;
    return step * 16 + lane * 2 + of_four % 2 + of_four / 2 * 8;
  }

  // The dim of output fragment `i` that the lane's first or (`second`) second pair of sums is of.
  CAIRN_SIMT_DEVICE static uint32_t DimOf(uint32_t i, uint32_t second) {
    const uint32_t row = simt::Lane() / 4;
    if (kBits == 16) return i * 16 + row + second * 8;
    if (kBits == 8) return i * 16 + row * 2 + second;
    return i / 2 * 32 + row * 4 + i % 2 * 2 + second;
  }

  // A of `step` (within one load) from the words of its load: tokens times dims.
  CAIRN_SIMT_DEVICE static void KeyFragment(const simt::Fragments4& words, uint32_t step,
                                            uint32_t (&a)[4]) {
    if constexpr (kBits == 16) {
      CAIRN_SIMT_UNROLL
      for (uint32_t i = 0; i < 4; ++i) a[i] = words.word[i];
    } else {
      CAIRN_SIMT_UNROLL
      for (uint32_t half = 0; half < 2; ++half) {
        simt::TwoPairs pairs;
        if constexpr (kBits == 8) {
          const uint32_t word = words.word[step * 2 + half];
          pairs = Decode(word);
        } else {
          const uint32_t word = words.word[step / 2 * 2 + half];
          pairs = simt::DecodeInt4<kFloat>(step % 2 == 0 ? word & 0xffffu : word >> 16);
        }
        a[half] = pairs.low;
        a[half + 2] = pairs.high;
      }
    }
  }

  // A of output fragment `i` within one load: dims times tokens, from transposed words.
  CAIRN_SIMT_DEVICE static void ValueFragment(const simt::Fragments4& words, uint32_t i,
                                              uint32_t (&a)[4]) {
    if constexpr (kBits == 16) {
      CAIRN_SIMT_UNROLL
      for (uint32_t k = 0; k < 4; ++k) a[k] = words.word[k];
    } else {
      CAIRN_SIMT_UNROLL
      for (uint32_t half = 0; half < 2; ++half) {  // Tokens 0 to 7, then 8 to 15.
        simt::TwoPairs pairs;
        if constexpr (kBits == 8) {
          const uint32_t word = words.word[i * 2 + half];
          // Two codes of a token, then of the next one: to pairs of tokens.
          pairs = Decode(simt::BytePermute(word, 0, 0x3120));
        } else {
          const uint32_t word = words.word[i / 2 * 2 + half] >> (i % 2 * 8);
          pairs = simt::DecodeInt4<kFloat>((word & 0xfu) | ((word >> 12) & 0xf0u) |
                                           ((word & 0xf0u) << 4) | ((word >> 8) & 0xf000u));
        }
        a[half * 2] = pairs.low;
        a[half * 2 + 1] = pairs.high;
      }
    }
  }

  // Four matrices of `tile` at chunks 2 * load and the next. For keys of 16 bits and codes of
  // either tile the first two are the 16 tokens of one chunk; for values of 16 bits the two chunks
  // of 8 tokens.
  CAIRN_SIMT_DEVICE static uint32_t MatrixRow(uint32_t tile, uint32_t load, bool chunks_first,
                                              uint32_t pitch) {
    const uint32_t lane = simt::Lane();
    const uint32_t low = lane >> 3 & 1;
    const uint32_t high = lane >> 4;
    const uint32_t token = (lane & 7) + (chunks_first ? high : low) * 8;
    const uint32_t chunk = 2 * load + (chunks_first ? low : high);
    return tile + SwizzledOffset(token, chunk, pitch);
  }

  // sums += keys * queries over dims [0, key_dim); `queries` are 8 rows of kQueryPitch bytes.
  CAIRN_SIMT_DEVICE static void MultiplyKeys(uint32_t tile, uint32_t queries, uint32_t key_dim,
                                             float (&sums)[4]) {
    // Two chains of sums, so that a product does not wait for the one before.
    float odd[4] = {0, 0, 0, 0};
    constexpr uint32_t kQueryLoads = kLoadSteps < 2 ? 1 : kLoadSteps / 2;  // Of two steps each.
    constexpr uint32_t kLoads = kLoadSteps < 2 ? 2 : 1;
    constexpr uint32_t kDims = kLoads * kLoadDims;
    CAIRN_SIMT_UNROLL
    for (uint32_t d = 0; d < kKeyDim; d += kDims) {
      if (d < key_dim) {
        uint32_t b[2 * kQueryLoads][2];
        LoadQueries<kQueryLoads>(queries, d / 32, b);
        CAIRN_SIMT_UNROLL
        for (uint32_t load = 0; load < kLoads; ++load) {
          if (d + load * kLoadDims < key_dim) {
            const simt::Fragments4 words =
                simt::LoadMatrix4(MatrixRow(tile, d / kLoadDims + load, false, PitchOf(kKeyDim)));
            CAIRN_SIMT_UNROLL
            for (uint32_t step = 0; step < kLoadSteps; ++step) {
              uint32_t a[4];
              KeyFragment(words, step, a);
              const uint32_t index = load * kLoadSteps + step;
              simt::MultiplyAdd16816<kFloat>(index % 2 == 0 ? sums : odd, a, b[index]);
            }
          }
        }
      }
    }
    CAIRN_SIMT_UNROLL
    for (uint32_t i = 0; i < 4; ++i) sums[i] += odd[i];
  }

  // outputs += values * weights; b is the fragment of 16 tokens times 8 rows.
  CAIRN_SIMT_DEVICE static void MultiplyValues(uint32_t tile, uint32_t pitch, uint32_t value_dim,
                                               const uint32_t (&b)[2],
                                               float (&outputs)[kOutputs][4]) {
    CAIRN_SIMT_UNROLL
    for (uint32_t d = 0; d < kValueDim; d += kLoadDims) {
      if (d < value_dim) {
        const simt::Fragments4 words =
            simt::LoadMatrix4Transposed(MatrixRow(tile, d / kLoadDims, kBits == 16, pitch));
        CAIRN_SIMT_UNROLL
        for (uint32_t i = 0; i < kLoadSteps; ++i) {
          uint32_t a[4];
          ValueFragment(words, i, a);
          simt::MultiplyAdd16816<kFloat>(outputs[d / 16 + i], a, b);
        }
      }
    }
  }

  // The fragment of 16 tokens times 8 rows out of weights as they come from the logits' product:
  // each lane has rows 2 * (lane % 4) and the next of tokens lane / 4 and 8 behind it.
  CAIRN_SIMT_DEVICE static void TransposeWeights(const float (&weights)[4], uint32_t (&b)[2]) {
    const uint32_t row = simt::Lane() / 4;
    const uint32_t from = simt::Lane() % 4 * 8 + row / 2;
    const uint32_t shift = row % 2 * 16;
    CAIRN_SIMT_UNROLL
    for (uint32_t half = 0; half < 2; ++half) {
      const uint32_t pair = simt::PackPair<kFloat>(weights[half * 2], weights[half * 2 + 1]);
      const uint32_t even = simt::ShuffleFrom(pair, from);
      const uint32_t odd = simt::ShuffleFrom(pair, from + 4);
      b[half] = ((even >> shift) & 0xffffu) | ((odd >> shift) << 16);
    }
  }

 private:
  CAIRN_SIMT_DEVICE static simt::TwoPairs Decode(uint32_t word) {
    if constexpr (kDtype == KvDtype::kInt8) {
      return simt::DecodeInt8<kFloat>(word);
    } else {
      return simt::DecodeFloat8<kFloat>(word);
    }
  }

  // B of steps 2 * load, ...
  template <uint32_t kLoads>
  CAIRN_SIMT_DEVICE static void LoadQueries(uint32_t queries, uint32_t load,
                                            uint32_t (&b)[2 * kLoads][2]) {
    const uint32_t lane = simt::Lane();
    CAIRN_SIMT_UNROLL
    for (uint32_t i = 0; i < kLoads; ++i) {
      const uint32_t chunk = 4 * (load + i) + (lane >> 3);
      const simt::Fragments4 words =
          simt::LoadMatrix4(queries + SwizzledOffset(lane & 7, chunk, kQueryPitch));
      b[2 * i][0] = words.word[0];
      b[2 * i][1] = words.word[1];
      b[2 * i + 1][0] = words.word[2];
      b[2 * i + 1][1] = words.word[3];
    }
  }
};

CAIRN_SIMT_END
