// The end of an item: its rows go out, or into partial results that the last block merges.
//
// Partial results of a sequence's chunks are merged in their order by whichever block finds itself
// to be the last of its (sequence, KV head, row group); it leaves the counter zero.
#pragma once

#include "kernels/gpu/attention_params.h"

CAIRN_SIMT_BEGIN

// Where a row of output and its log-sum-exp go.
struct RowTarget {
  float* output = nullptr;
  float* log_sum_exp = nullptr;
};

CAIRN_SIMT_DEVICE RowTarget ResultOf(const AttentionParams& params, const AttentionWork& work,
                                     uint32_t row) {
  const AttentionRow at = RowOf(params, work, row);
  return {
      reinterpret_cast<float*>(simt::LoadGlobal(&at.query->output)) + at.head * params.value_dim,
      reinterpret_cast<float*>(simt::LoadGlobal(&at.query->log_sum_exp)) + at.head};
}

CAIRN_SIMT_DEVICE RowTarget PartialOf(const AttentionParams& params, const AttentionWork& work,
                                      uint32_t row, uint32_t chunk) {
  const uint64_t index = work.first_partial + uint64_t{row} * work.chunks + chunk;
  float* const at = params.partials + index * (params.value_dim + uint64_t{1});
  return {at, at + params.value_dim};
}

CAIRN_SIMT_DEVICE RowTarget TargetOf(const AttentionParams& params, const AttentionWork& work,
                                     uint32_t row) {
  return work.chunks == 1 ? ResultOf(params, work, row) : PartialOf(params, work, row, work.chunk);
}

// Natural, of sum * 2^most; a sum of 0 is nothing.
CAIRN_SIMT_DEVICE float LogSumExpOf(float most, float sum) {
  return sum == 0 ? -simt::Infinity() : (most + simt::Log2(sum)) * kLn2;
}

inline constexpr uint32_t kMergeColumns = 4;  // Of a lane, a warp apart.
inline constexpr uint32_t kMergeChunks = 8;   // Loaded at once.

// Columns [begin, begin + 128) of a row: the chunks in order. Lane l knows the weight of chunk l of
// each 32.
CAIRN_SIMT_DEVICE void MergeColumns(const AttentionParams& params, const AttentionWork& work,
                                    uint32_t row, uint32_t begin, float shift, float factor) {
  const uint32_t lane = simt::Lane();
  float sums[kMergeColumns] = {0, 0, 0, 0};
  for (uint32_t first = 0; first < work.chunks; first += simt::kWarpLanes) {
    float weight = 0;
    if (first + lane < work.chunks) {
      const float part = simt::LoadGlobal(PartialOf(params, work, row, first + lane).log_sum_exp);
      weight = simt::Exp2((part - shift) * kLog2E) * factor;
    }
    const uint32_t end = Least(first + simt::kWarpLanes, work.chunks);
    for (uint32_t c = first; c < end; c += kMergeChunks) {
      float parts[kMergeChunks][kMergeColumns];
      CAIRN_SIMT_UNROLL
      for (uint32_t i = 0; i < kMergeChunks; ++i) {
        const float* const from = PartialOf(params, work, row, c + i).output;
        CAIRN_SIMT_UNROLL
        for (uint32_t k = 0; k < kMergeColumns; ++k) {
          const uint32_t d = begin + k * simt::kWarpLanes + lane;
          parts[i][k] = c + i < end && d < params.value_dim ? simt::LoadGlobal(from + d) : 0;
        }
      }
      CAIRN_SIMT_UNROLL
      for (uint32_t i = 0; i < kMergeChunks; ++i) {
        const float weight_of_part = simt::ShuffleFrom(weight, c + i);
        CAIRN_SIMT_UNROLL
        for (uint32_t k = 0; k < kMergeColumns; ++k) sums[k] += weight_of_part * parts[i][k];
      }
    }
  }
  const RowTarget target = ResultOf(params, work, row);
  CAIRN_SIMT_UNROLL
  for (uint32_t k = 0; k < kMergeColumns; ++k) {
    const uint32_t d = begin + k * simt::kWarpLanes + lane;
    if (d < params.value_dim) simt::StoreGlobal(target.output + d, sums[k]);
  }
}

// One warp, one row. A part that saw nothing has weight 0, and its output is zeros.
CAIRN_SIMT_DEVICE void MergeRow(const AttentionParams& params, const AttentionWork& work,
                                uint32_t row) {
  float most = -simt::Infinity();
  for (uint32_t c = simt::Lane(); c < work.chunks; c += simt::kWarpLanes) {
    most = simt::Max(most, simt::LoadGlobal(PartialOf(params, work, row, c).log_sum_exp));
  }
  most = simt::WarpMax(most);
  const float shift = most == -simt::Infinity() ? 0 : most;
  float sum = 0;
  for (uint32_t c = simt::Lane(); c < work.chunks; c += simt::kWarpLanes) {
    const float part = simt::LoadGlobal(PartialOf(params, work, row, c).log_sum_exp);
    sum += simt::Exp2((part - shift) * kLog2E);
  }
  sum = simt::WarpSum(sum);
  const float factor = sum == 0 ? 0 : 1 / sum;
  CAIRN_SIMT_NO_UNROLL
  for (uint32_t d = 0; d < params.value_dim; d += kMergeColumns * simt::kWarpLanes) {
    MergeColumns(params, work, row, d, shift, factor);
  }
  if (simt::Lane() != 0) return;
  simt::StoreGlobal(ResultOf(params, work, row).log_sum_exp, LogSumExpOf(shift * kLog2E, sum));
}

// After all threads of the block have written their rows. `flag` is a free word of shared memory.
CAIRN_SIMT_DEVICE void MergeIfLast(const AttentionParams& params, const AttentionWork& work,
                                   uint32_t flag) {
  if (work.chunks == 1) return;
  simt::ThreadFence();
  simt::SyncBlock();
  if (simt::Thread() == 0) {
    const uint32_t before = simt::AtomicAdd(params.counters + work.counter, 1);
    simt::StoreShared(flag, before + 1 == work.chunks ? uint32_t{1} : uint32_t{0});
  }
  simt::SyncBlock();
  if (simt::LoadShared<uint32_t>(flag) == 0) return;
  simt::ThreadFence();
  for (uint32_t row = simt::Warp(); row < work.rows; row += kBlockWarps) {
    MergeRow(params, work, row);
  }
  if (simt::Thread() == 0) simt::StoreGlobal(params.counters + work.counter, uint32_t{0});
}

CAIRN_SIMT_END
