// PlainAttentionKernel: attention in float32 for what the matrices do not take: float32 KV, rows
// that are not whole 16 bytes, large heads. Right and slow.
//
// A block has up to 8 rows. 16 tokens at a time are decoded into shared memory; a thread has the
// product of one row and one token, then some columns of every row.
#pragma once

#include "kernels/gpu/attention_finish.h"

CAIRN_SIMT_BEGIN

struct PlainAttentionKernel {
  using Params = AttentionParams;
  static constexpr uint32_t kThreads = kBlockWarps * simt::kWarpLanes;
  static constexpr uint32_t kBlocksPerProcessor = 1;
  static_assert(kThreads == kWarpRows * kUnitTokens, "a thread a product");

  // --- Shared memory, in floats from the first: tiles have a pitch that is odd ---
  struct Layout {
    uint32_t query;  // [row][key_dim]
    uint32_t key;    // [token][key pitch]
    uint32_t value;  // [token][value pitch], or the keys
    uint32_t value_pitch;
    uint32_t output;   // [row][value_dim]
    uint32_t weights;  // [row][token]
    uint32_t rescale;  // [row]
    uint32_t flag;
    uint32_t end;

    CAIRN_SIMT_BOTH explicit Layout(const Params& params)
        : query(0),
          key(kWarpRows * params.key_dim),
          value(key),
          value_pitch(params.key_dim + 1),
          output(key + kUnitTokens * (params.key_dim + 1)) {
      if (params.value_row_bytes != 0) {
        value = output;
        value_pitch = params.value_dim + 1;
        output += kUnitTokens * value_pitch;
      }
      weights = output + kWarpRows * params.value_dim;
      rescale = weights + kWarpRows * kUnitTokens;
      flag = rescale + kWarpRows;
      end = flag + 1;
    }
  };

  static uint32_t SharedBytes(const Params& params) { return Layout(params).end * 4; }

  CAIRN_SIMT_DEVICE static void Run(const Params& params) {
    const auto* header = reinterpret_cast<const GpuPlanHeader*>(params.plan);
    const uint32_t items = simt::LoadGlobal(&header->item_count);
    for (uint32_t item = simt::BlockX(); item < items; item += simt::GridX()) {
      const AttentionWork work = LoadWork(params, item);
      Attend(params, work);
      simt::SyncBlock();
    }
  }

 private:
  CAIRN_SIMT_DEVICE static float Get(uint32_t index) { return simt::LoadShared<float>(index * 4); }
  CAIRN_SIMT_DEVICE static void Put(uint32_t index, float value) {
    simt::StoreShared(index * 4, value);
  }

  CAIRN_SIMT_DEVICE static void Attend(const Params& params, const AttentionWork& work) {
    const Layout layout(params);
    for (uint32_t row = simt::Warp(); row < work.rows; row += kBlockWarps) {
      const AttentionRow at = RowOf(params, work, row);
      const uint64_t query = simt::LoadGlobal(&at.query->query);
      for (uint32_t d = simt::Lane(); d < params.key_dim; d += simt::kWarpLanes) {
        Put(layout.query + row * params.key_dim + d, QueryElement(params, query, at.head, d));
      }
      for (uint32_t d = simt::Lane(); d < params.value_dim; d += simt::kWarpLanes) {
        Put(layout.output + row * params.value_dim + d, 0);
      }
    }
    // This thread's row and token of a unit; what is known of the row, its 16 threads know alike.
    const uint32_t row = simt::Thread() / kUnitTokens;
    const uint32_t token = simt::Thread() % kUnitTokens;
    GpuSeen seen;
    if (row < work.rows) seen = LoadSeen(&RowOf(params, work, row).query->seen);
    float most = -simt::Infinity();
    float sum = 0;
    for (uint32_t i = 0; i < work.units.units; ++i) {
      const uint32_t first = work.units.At(i) * kUnitTokens;
      simt::SyncBlock();
      LoadUnit(params, work, layout, first);
      simt::SyncBlock();
      float logit = -simt::Infinity();
      if (Sees(seen, first + token)) logit = Product(params, layout, row, token);
      const float new_most = simt::Max(most, simt::WarpMax(logit, kUnitTokens));
      const float shift = new_most == -simt::Infinity() ? 0 : new_most;
      const float rescale = simt::Exp2(most - shift);
      const float weight = simt::Exp2(logit - shift);
      sum = sum * rescale + simt::WarpSum(weight, kUnitTokens);
      most = new_most;
      Put(layout.weights + row * kUnitTokens + token, weight);
      if (token == 0) Put(layout.rescale + row, rescale);
      simt::SyncBlock();
      AddValues(params, work, layout);
    }
    simt::SyncBlock();
    Finish(params, work, layout, most, sum);
  }

  // Two elements of a row at once; rows begin at whole bytes.
  CAIRN_SIMT_DEVICE static void LoadPair(KvDtype dtype, uint64_t row, uint32_t dim,
                                         float (&pair)[2]) {
    using simt::MatrixFloat;
    if (dtype == KvDtype::kFloat32) {
      const auto* from = reinterpret_cast<const float*>(row) + dim;
      pair[0] = simt::LoadGlobal(from);
      pair[1] = simt::LoadGlobal(from + 1);
      return;
    }
    uint32_t bits = 0;
    if (dtype == KvDtype::kInt4) {
      bits = simt::LoadGlobal(reinterpret_cast<const uint8_t*>(row) + dim / 2);
    } else if (dtype == KvDtype::kFloat8E4m3fn || dtype == KvDtype::kInt8) {
      bits = simt::LoadGlobal(reinterpret_cast<const uint16_t*>(row) + dim / 2);
    } else {
      bits = simt::LoadGlobal(reinterpret_cast<const uint32_t*>(row) + dim / 2);
    }
    if (dtype == KvDtype::kBfloat16) {
      pair[0] = simt::LowOf<MatrixFloat::kBfloat16>(bits);
      pair[1] = simt::HighOf<MatrixFloat::kBfloat16>(bits);
      return;
    }
    if (dtype == KvDtype::kFloat8E4m3fn) bits = simt::DecodeFloat8<MatrixFloat::kFloat16>(bits).low;
    if (dtype == KvDtype::kInt8) bits = simt::DecodeInt8<MatrixFloat::kFloat16>(bits).low;
    if (dtype == KvDtype::kInt4) bits = simt::DecodeInt4<MatrixFloat::kFloat16>(bits).low;
    pair[0] = simt::LowOf<MatrixFloat::kFloat16>(bits);
    pair[1] = simt::HighOf<MatrixFloat::kFloat16>(bits);
  }

  // Decoded, with scales; zeros for tokens that nobody sees. A warp has a token.
  CAIRN_SIMT_DEVICE static void LoadUnit(const Params& params, const AttentionWork& work,
                                         const Layout& layout, uint32_t first) {
    for (uint32_t t = simt::Warp(); t < kUnitTokens; t += kBlockWarps) {
      const bool is_seen = Sees(work.any, first + t);
      uint64_t segment = 0;
      if (is_seen) {
        segment =
            simt::LoadGlobal(work.pages + (first + t) / params.page_tokens) + params.segment_offset;
      }
      const uint64_t row =
          uint64_t{work.kv_head} * params.page_tokens + (first + t) % params.page_tokens;
      const uint64_t scale =
          (params.scales == KvScales::kPerHead ? work.kv_head : row) * sizeof(float);
      LoadRow(params, segment, segment + params.key_offset + row * params.key_row_bytes,
              segment + params.key_scales_offset + scale, params.key_dim,
              layout.key + t * (params.key_dim + 1));
      if (params.value_row_bytes == 0) continue;
      LoadRow(params, segment, segment + params.value_offset + row * params.value_row_bytes,
              segment + params.value_scales_offset + scale, params.value_dim,
              layout.value + t * layout.value_pitch);
    }
  }

  CAIRN_SIMT_DEVICE static void LoadRow(const Params& params, uint64_t segment, uint64_t row,
                                        uint64_t scale_at, uint32_t dim, uint32_t to) {
    float scale = 1;
    if (segment != 0 && params.scales != KvScales::kNone) {
      scale = simt::LoadGlobal(reinterpret_cast<const float*>(scale_at));
    }
    for (uint32_t d = simt::Lane() * 2; d < dim; d += simt::kWarpLanes * 2) {
      float pair[2] = {0, 0};
      if (segment != 0) LoadPair(params.dtype, row, d, pair);
      Put(to + d, pair[0] * scale);
      Put(to + d + 1, pair[1] * scale);
    }
  }

  CAIRN_SIMT_DEVICE static float Product(const Params& params, const Layout& layout, uint32_t row,
                                         uint32_t token) {
    float sum = 0;
    for (uint32_t d = 0; d < params.key_dim; ++d) {
      sum += Get(layout.query + row * params.key_dim + d) *
             Get(layout.key + token * (params.key_dim + 1) + d);
    }
    return LogitOf(params, sum * params.softmax_scale);
  }

  CAIRN_SIMT_DEVICE static void AddValues(const Params& params, const AttentionWork& work,
                                          const Layout& layout) {
    for (uint32_t d = simt::Thread(); d < params.value_dim; d += kThreads) {
      for (uint32_t row = 0; row < work.rows; ++row) {
        const uint32_t at = layout.output + row * params.value_dim + d;
        float output = Get(at) * Get(layout.rescale + row);
        for (uint32_t t = 0; t < kUnitTokens; ++t) {
          output += Get(layout.weights + row * kUnitTokens + t) *
                    Get(layout.value + t * layout.value_pitch + d);
        }
        Put(at, output);
      }
    }
  }

  CAIRN_SIMT_DEVICE static void Finish(const Params& params, const AttentionWork& work,
                                       const Layout& layout, float most, float sum) {
    const uint32_t row = simt::Thread() / kUnitTokens;
    const uint32_t lane = simt::Thread() % kUnitTokens;
    if (row < work.rows) {
      const RowTarget target = TargetOf(params, work, row);
      const float inverse = sum == 0 ? 0 : 1 / sum;
      for (uint32_t d = lane; d < params.value_dim; d += kUnitTokens) {
        simt::StoreGlobal(target.output + d,
                          Get(layout.output + row * params.value_dim + d) * inverse);
      }
      const float shift = most == -simt::Infinity() ? 0 : most;
      if (lane == 0) simt::StoreGlobal(target.log_sum_exp, LogSumExpOf(shift, sum));
    }
    MergeIfLast(params, work, layout.flag * 4);
  }
};

CAIRN_SIMT_END
