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

// One warp, one row: the chunks in order. A part that saw nothing has weight 0, and its output is
// zeros.
CAIRN_SIMT_DEVICE void MergeRow(const AttentionParams& params, const AttentionWork& work,
                                uint32_t row) {
  float most = -simt::Infinity();
  for (uint32_t c = 0; c < work.chunks; ++c) {
    most = simt::Max(most, simt::LoadGlobal(PartialOf(params, work, row, c).log_sum_exp));
  }
  const float shift = most == -simt::Infinity() ? 0 : most;
  float sum = 0;
  for (uint32_t c = 0; c < work.chunks; ++c) {
    const float part = simt::LoadGlobal(PartialOf(params, work, row, c).log_sum_exp);
    sum += simt::Exp2((part - shift) * kLog2E);
  }
  const float factor = sum == 0 ? 0 : 1 / sum;
  const RowTarget target = ResultOf(params, work, row);
  for (uint32_t d = simt::Lane(); d < params.value_dim; d += simt::kWarpLanes) {
    float output = 0;
    for (uint32_t c = 0; c < work.chunks; ++c) {
      const RowTarget from = PartialOf(params, work, row, c);
      const float weight = simt::Exp2((simt::LoadGlobal(from.log_sum_exp) - shift) * kLog2E);
      output += weight * factor * simt::LoadGlobal(from.output + d);
    }
    simt::StoreGlobal(target.output + d, output);
  }
  if (simt::Lane() != 0) return;
  simt::StoreGlobal(target.log_sum_exp, LogSumExpOf(shift * kLog2E, sum));
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
