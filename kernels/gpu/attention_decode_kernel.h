// DecodeKernel: attention over KV of 16 bits or less, by products of 16-bit matrices.
//
// A block works on items. Its four warps share rows, 8 each, where there are more than 8, and share
// tokens otherwise, so that each warp owns its units and nothing but the end of an item needs the
// block's barrier; each has a softmax of its own. Queries wider than the matrices' floats are a
// high and a low part, so that nothing is lost of them.
#pragma once

#include "kernels/gpu/attention_finish.h"
#include "kernels/gpu/attention_softmax.h"
#include "kernels/gpu/attention_stages.h"

CAIRN_SIMT_BEGIN

// Other architectures have heads of 128 and latent ones, for the compiler's time.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 900
inline constexpr bool kHasAllHeadSizes = false;
#else
inline constexpr bool kHasAllHeadSizes = true;
#endif

// What a row of queries is known by while its block works: 16 bytes of shared memory.
struct alignas(16) SharedRow {
  GpuSeen seen;
  float factor;  // Of sums of products, to natural logits.
};

template <KvDtype kDtype, uint32_t kKeyDim, uint32_t kValueDim, bool kIsLatent>
struct DecodeKernel {
  using Params = AttentionParams;
  using Tile = AttentionTile<kDtype, kKeyDim, kValueDim>;
  using Stages = KvStages<Tile, kKeyDim, kValueDim, kIsLatent>;
  using State = RowState<Tile::kOutputs>;

  static constexpr uint32_t kThreads = kBlockWarps * simt::kWarpLanes;
  static constexpr uint32_t kUnitDims = kIsLatent ? kKeyDim : kKeyDim + kValueDim;
  static constexpr uint32_t kBlocksPerProcessor = kUnitDims > 256 ? 1 : 2;
  // What is on its way while a stage is worked on: 64 KiB and more a processor.
  static constexpr uint32_t kStages = Stages::kUnitBytes > 18000 ? 2 : 3;

  // --- Shared memory ---
  static constexpr uint32_t kFlag = 0;
  static constexpr uint32_t kRows = 16;
  static constexpr uint32_t kQueries =
      (kRows + kRowGroupRows * static_cast<uint32_t>(sizeof(SharedRow)) + 127) / 128 * 128;
  static constexpr uint32_t kQueryBytes = kRowGroupRows * Tile::kQueryPitch;
  static constexpr uint32_t kOutputPitch = (kValueDim + 4) * sizeof(float);
  static constexpr uint32_t kStats = kBlockWarps * kWarpRows * kOutputPitch;  // Behind outputs.
  static constexpr uint32_t kMergeBytes = kStats + kBlockWarps * kWarpRows * 16;

  static bool HasLow(KvDtype query_dtype) {
    if (query_dtype == KvDtype::kFloat32) return true;
    return kDtype == KvDtype::kBfloat16 && query_dtype != KvDtype::kBfloat16;
  }

  CAIRN_SIMT_BOTH static constexpr uint32_t StagesOffset(bool has_low) {
    return kQueries + (has_low ? 2 : 1) * kQueryBytes;
  }

  static uint32_t SharedBytes(const Params& params) {
    const uint32_t stages = kStages * params.stage_units * Stages::kUnitBytes;
    return StagesOffset(params.has_low_queries) + (stages > kMergeBytes ? stages : kMergeBytes);
  }

  CAIRN_SIMT_DEVICE static void Run(const Params& params) {
    if constexpr (kHasAllHeadSizes || kKeyDim <= 128 || kIsLatent) RunItems(params);
  }

 private:
  CAIRN_SIMT_DEVICE static void RunItems(const Params& params) {
    const auto* header = reinterpret_cast<const GpuPlanHeader*>(params.plan);
    const uint32_t items = simt::LoadGlobal(&header->item_count);
    for (uint32_t item = simt::BlockX(); item < items; item += simt::GridX()) {
      const AttentionWork work = LoadWork(params, item);
      Attend(params, work);
      simt::SyncBlock();
    }
  }

  CAIRN_SIMT_DEVICE static void Attend(const Params& params, const AttentionWork& work) {
    Stages stages;
    stages.Start(params, work, StagesOffset(params.has_low_queries));
    CAIRN_SIMT_NO_UNROLL
    for (uint32_t s = 0; s + 1 < kStages; ++s) stages.Bring(params, work, s, s);
    for (uint32_t row = simt::Warp(); row < work.row_warps * kWarpRows; row += kBlockWarps) {
      PrepareRow(params, work, row);
    }
    simt::SyncBlock();
    State state;
    state.Clear();
    const uint32_t loads = (work.units.units + params.stage_units - 1) / params.stage_units;
    uint32_t stage = 0;
    CAIRN_SIMT_NO_UNROLL
    for (uint32_t load = 0; load < loads; ++load) {
      simt::CopyAsyncWait<kStages - 2>();
      if (work.row_warps == 1) {
        simt::SyncWarp();
      } else {
        simt::SyncBlock();
      }
      // The stage that was worked on before this one, by all who have come here.
      const uint32_t free_stage = stage == 0 ? kStages - 1 : stage - 1;
      stages.Bring(params, work, load + kStages - 1, free_stage);
      CAIRN_SIMT_NO_UNROLL
      for (uint32_t unit = work.TeamOf(simt::Warp()); unit < params.stage_units;
           unit += work.Teams()) {
        const uint32_t i = load * params.stage_units + unit;
        if (i >= work.units.units) break;
        AddUnit(params, work, stages.UnitAt(params, stage, unit), work.units.At(i) * kUnitTokens,
                &state);
      }
      stage = stage + 1 == kStages ? 0 : stage + 1;
    }
    simt::CopyAsyncWait<0>();
    simt::SyncBlock();
    Finish(params, work, stages.memory, state);
  }

  // Row `row` of the item into shared memory, one warp; zeros for one that there is not.
  CAIRN_SIMT_DEVICE static void PrepareRow(const Params& params, const AttentionWork& work,
                                           uint32_t row) {
    SharedRow shared{{0, 0, 0}, 0};
    uint64_t query = 0;
    uint64_t head = 0;
    if (row < work.rows) {
      const AttentionRow at = RowOf(params, work, row);
      shared.seen = LoadSeen(&at.query->seen);
      query = simt::LoadGlobal(&at.query->query);
      head = at.head;
    }
    const uint32_t dims = row < work.rows ? params.key_dim : 0;
    float inverse = 1;
    float power = 1;
    if constexpr (Tile::kFloat == simt::MatrixFloat::kFloat16) {
      // By a power of two to where float16 has its numbers.
      float largest = 0;
      for (uint32_t d = simt::Lane(); d < dims; d += simt::kWarpLanes) {
        const float element = QueryElement(params, query, head, d);
        largest = simt::Max(largest, simt::Max(element, -element));
      }
      power = PowerOf(simt::WarpMax(largest)) * (1.0f / 256);
      inverse = InverseOfPower(power);
    }
    shared.factor = params.softmax_scale * power;
    if (simt::Lane() == 0) {
      simt::StoreShared(kRows + row * static_cast<uint32_t>(sizeof(SharedRow)), shared);
    }
    const uint32_t block = kQueries + row / kWarpRows * kWarpRows * Tile::kQueryPitch;
    for (uint32_t d = simt::Lane(); d < kKeyDim; d += simt::kWarpLanes) {
      const float element = d < dims ? QueryElement(params, query, head, d) * inverse : 0;
      const uint32_t place = Tile::QueryPlace(d);
      const uint32_t at =
          block + SwizzledOffset(row % kWarpRows, place / 8, Tile::kQueryPitch) + place % 8 * 2;
      const uint32_t high = simt::PackPair<Tile::kFloat>(element, 0);
      simt::StoreShared(at, static_cast<uint16_t>(high));
      if (params.has_low_queries) {
        const float rest = element - simt::LowOf<Tile::kFloat>(high);
        simt::StoreShared(at + kQueryBytes,
                          static_cast<uint16_t>(simt::PackPair<Tile::kFloat>(rest, 0)));
      }
    }
  }

  CAIRN_SIMT_DEVICE static void AddUnit(const Params& params, const AttentionWork& work,
                                        uint32_t unit, uint32_t token, State* state) {
    const uint32_t lane = simt::Lane();
    const uint32_t block = work.RowBlockOf(simt::Warp());
    float logits[4] = {0, 0, 0, 0};
    uint32_t queries = kQueries + block * kWarpRows * Tile::kQueryPitch;
    CAIRN_SIMT_NO_UNROLL
    for (uint32_t part = 0; part < (params.has_low_queries ? 2u : 1u); ++part) {
      Tile::MultiplyKeys(unit, queries, params.key_dim, logits);
      queries += kQueryBytes;
    }
    const bool is_scaled = params.scales != KvScales::kNone;
    float value_scales[2] = {1, 1};
    if (is_scaled) LoadScales(params, work, unit, logits, value_scales);
    const uint32_t end = token + kUnitTokens;
    const bool all_seen =
        end <= work.all.sink_end || (token >= work.all.begin && end <= work.all.end);
    CAIRN_SIMT_UNROLL
    for (uint32_t r = 0; r < 2; ++r) {
      const uint32_t row = block * kWarpRows + lane % 4 * 2 + r;
      const SharedRow shared =
          simt::LoadShared<SharedRow>(kRows + row * static_cast<uint32_t>(sizeof(SharedRow)));
      CAIRN_SIMT_UNROLL
      for (uint32_t half = 0; half < 2; ++half) {
        float& logit = logits[half * 2 + r];
        logit = LogitOf(params, logit * shared.factor);
        if (!all_seen && !Sees(shared.seen, token + lane / 4 + half * 8)) {
          logit = -simt::Infinity();
        }
      }
    }
    state->Add(logits, is_scaled, value_scales);
    uint32_t weights[2];
    Tile::TransposeWeights(logits, weights);
    Tile::MultiplyValues(unit + (kIsLatent ? 0 : Stages::kValueTile),
                         kIsLatent ? Stages::kKeyPitch : Stages::kValuePitch, params.value_dim,
                         weights, state->outputs);
  }

  // Scales of this lane's two tokens: those of keys to the products, those of values as they are.
  CAIRN_SIMT_DEVICE static void LoadScales(const Params& params, const AttentionWork& work,
                                           uint32_t unit, float (&products)[4],
                                           float (&value_scales)[2]) {
    const bool by_head =
        params.scales == KvScales::kPerHead && params.page_tokens % kUnitTokens == 0;
    CAIRN_SIMT_UNROLL
    for (uint32_t half = 0; half < 2; ++half) {
      const uint32_t at = (by_head ? work.kv_head % 4 : simt::Lane() / 4 + half * 8) * 4;
      const float key = simt::LoadShared<float>(unit + Stages::kKeyScales + at);
      products[half * 2] *= key;
      products[half * 2 + 1] *= key;
      value_scales[half] =
          kIsLatent ? key : simt::LoadShared<float>(unit + Stages::kValueScales + at);
    }
  }

  CAIRN_SIMT_DEVICE static void Finish(const Params& params, const AttentionWork& work,
                                       uint32_t memory, const State& state) {
    StoreState(memory, state);
    simt::SyncBlock();
    for (uint32_t row = simt::Warp(); row < work.rows; row += kBlockWarps) {
      FinishRow(params, work, memory, row);
    }
    MergeIfLast(params, work, kFlag);
  }

  CAIRN_SIMT_DEVICE static void StoreState(uint32_t memory, const State& state) {
    const uint32_t lane = simt::Lane();
    CAIRN_SIMT_UNROLL
    for (uint32_t r = 0; r < 2; ++r) {
      const uint32_t row = simt::Warp() * kWarpRows + lane % 4 * 2 + r;
      CAIRN_SIMT_UNROLL
      for (uint32_t i = 0; i < Tile::kOutputs; ++i) {
        CAIRN_SIMT_UNROLL
        for (uint32_t second = 0; second < 2; ++second) {
          simt::StoreShared(memory + row * kOutputPitch + Tile::DimOf(i, second) * 4,
                            state.outputs[i][second * 2 + r]);
        }
      }
      const float sum = SumOverTokens(state.sum[r]);
      if (lane / 4 == 0) {
        const uint32_t at = memory + kStats + row * 16;
        simt::StoreShared(at, state.most[r]);
        simt::StoreShared(at + 4, sum);
        simt::StoreShared(at + 8, state.scale[r]);
      }
    }
  }

  // One warp: a row out of the states of the warps that shared its tokens.
  CAIRN_SIMT_DEVICE static void FinishRow(const Params& params, const AttentionWork& work,
                                          uint32_t memory, uint32_t row) {
    const uint32_t teams = work.Teams();
    uint32_t at[kBlockWarps];  // Row of each team's state.
    float most = -simt::Infinity();
    CAIRN_SIMT_UNROLL
    for (uint32_t t = 0; t < kBlockWarps; ++t) {
      at[t] = (t * work.row_warps + row / kWarpRows) * kWarpRows + row % kWarpRows;
      if (t < teams) {
        most = simt::Max(most, simt::LoadShared<float>(memory + kStats + at[t] * 16));
      }
    }
    const float shift = most == -simt::Infinity() ? 0 : most;
    float factors[kBlockWarps] = {0, 0, 0, 0};
    float total = 0;
    CAIRN_SIMT_UNROLL
    for (uint32_t t = 0; t < kBlockWarps; ++t) {
      if (t < teams) {
        const uint32_t stats = memory + kStats + at[t] * 16;
        const float weight = simt::Exp2(simt::LoadShared<float>(stats) - shift);
        total += weight * simt::LoadShared<float>(stats + 4);
        factors[t] = weight;
        if (params.scales != KvScales::kNone) factors[t] *= simt::LoadShared<float>(stats + 8);
      }
    }
    const float inverse = total == 0 ? 0 : 1 / total;
    const RowTarget target = TargetOf(params, work, row);
    for (uint32_t d = simt::Lane(); d < params.value_dim; d += simt::kWarpLanes) {
      float output = 0;
      CAIRN_SIMT_UNROLL
      for (uint32_t t = 0; t < kBlockWarps; ++t) {
        if (t < teams) {
          output += factors[t] * simt::LoadShared<float>(memory + at[t] * kOutputPitch + d * 4);
        }
      }
      simt::StoreGlobal(target.output + d, output * inverse);
    }
    if (simt::Lane() == 0) simt::StoreGlobal(target.log_sum_exp, LogSumExpOf(shift, total));
  }
};

CAIRN_SIMT_END
