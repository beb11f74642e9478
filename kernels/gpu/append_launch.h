// LaunchAppend, defined. Included by the two files that compile it.
#pragma once

#include <algorithm>
#include <string>
#include <type_traits>

#include "kernels/gpu/append_kernel.h"
#include "kernels/gpu/byte_launch.h"
#include "kernels/gpu/launch_checks.h"

CAIRN_SIMT_BEGIN

// Whether rows begin at multiples of `bytes`.
inline bool AreRowsAt(const TokenRows& rows, uint64_t bytes) {
  return IsMultiple(rows.data, bytes) && rows.token_stride % bytes == 0 &&
         rows.head_stride % bytes == 0;
}

inline Problem CheckAppend(const AppendBatch& batch) {
  Problem problem = ValidateShape(batch.shape);
  if (!problem.empty()) return problem;
  if (batch.shape.scales == KvScales::kPerHead) {
    return "scales one a head: unknown while a page fills; append takes none or one a token and "
           "head";
  }
  if (!IsWideFloat(batch.source_dtype)) {
    return std::string("source_dtype ") + NameOf(batch.source_dtype) +
           " is not float16, bfloat16 or float32";
  }
  if (batch.token_count == 0) return "";
  const bool has_values = batch.shape.value_dim != 0;
  if (batch.slots == nullptr || batch.keys.data == nullptr || batch.regions == nullptr ||
      batch.pages == nullptr || (has_values && batch.values.data == nullptr)) {
    return "slots, keys, values, regions or pages is null";
  }
  const uint64_t element_bytes = BitsOf(batch.source_dtype) / 8;
  if (!AreRowsAt(batch.keys, element_bytes) ||
      (has_values && !AreRowsAt(batch.values, element_bytes))) {
    return "rows of keys or values do not begin at multiples of their element";
  }
  if (batch.segment_offset % kTileAlignBytes != 0) {
    return "segment_offset " + std::to_string(batch.segment_offset) + " is no multiple of 64";
  }
  if (batch.token_count > uint64_t{1} << 32) {
    return "token_count " + std::to_string(batch.token_count) + " is above 2^32";
  }
  return "";
}

template <class Kernel>
typename Kernel::Params AppendParams(const GpuAppend& append) {
  const AppendBatch& batch = append.batch;
  const KvShape& shape = batch.shape;
  const KvSegment segment = SegmentOf(shape);
  typename Kernel::Params params;
  params.places = {batch.regions, batch.region_count, batch.segment_offset,
                   segment.bytes, batch.pages,        batch.page_count};
  params.slots = batch.slots;
  params.tokens = batch.token_count;
  params.kv_heads = shape.kv_heads;
  params.page_tokens = shape.page_tokens;
  params.parts = shape.value_dim != 0 ? 2 : 1;
  params.source_dtype = batch.source_dtype;
  params.has_scales = shape.scales == KvScales::kPerTokenAndHead;
  params.copies = shape.dtype == batch.source_dtype && !params.has_scales;
  params.refused = append.refused;
  const auto part = [&](const TokenRows& rows, uint32_t dim, uint64_t tile, uint64_t scales) {
    return AppendPart{rows.data,
                      rows.token_stride,
                      rows.head_stride,
                      tile,
                      scales,
                      static_cast<uint32_t>(RowBytes(shape.dtype, dim)),
                      dim / Kernel::kUnit};
  };
  params.part[0] = part(batch.keys, shape.key_dim, segment.key, segment.key_scales);
  params.part[1] = part(batch.values, shape.value_dim, segment.value, segment.value_scales);
  params.lanes = LanesOfRow(std::max(params.part[0].units, params.part[1].units));
  return params;
}

// Rows of tiles begin at multiples of a wide unit where dims are such.
inline bool AreWideRows(const AppendBatch& batch) {
  const auto is_wide = [](const TokenRows& rows, uint32_t dim) {
    return dim % kWideUnit == 0 && AreRowsAt(rows, 16);
  };
  return is_wide(batch.keys, batch.shape.key_dim) &&
         (batch.shape.value_dim == 0 || is_wide(batch.values, batch.shape.value_dim));
}

Problem LaunchAppend(const GpuAppend& append, const simt::LaunchTarget& target) {
  Problem problem = CheckAppend(append.batch);
  if (!problem.empty() || append.batch.token_count == 0) return problem;
  return WithDtype(append.batch.shape.dtype, [&](auto dtype) -> Problem {
    const auto launch = [&](auto wide) -> Problem {
      using Kernel = AppendKernel<decltype(dtype)::value, decltype(wide)::value>;
      const typename Kernel::Params params = AppendParams<Kernel>(append);
      simt::LaunchShape shape;
      const uint64_t rows = params.tokens * params.kv_heads * params.parts;
      Problem too_many = BlocksFor(rows * params.lanes, Kernel::kThreads, &shape.blocks_x);
      if (!too_many.empty()) return too_many;
      return simt::Launch<Kernel>(target, shape, params);
    };
    return AreWideRows(append.batch) ? launch(std::true_type()) : launch(std::false_type());
  });
}

CAIRN_SIMT_END
