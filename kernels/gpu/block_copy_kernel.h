// Whole blocks between segments and an engine's tensor: a block of threads moves one head's keys or
// values of one place, their scales, and for head 0 the padding behind them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/block_copy.h"
#include "kernels/gpu/page_places.h"
#include "kernels/simt/simt.h"

CAIRN_SIMT_BEGIN

// Bytes that a thread moves at once.
template <uint32_t kBytes>
struct MovedUnit;
template <>
struct MovedUnit<16> {
  using Type = simt::Bytes16;
};
template <>
struct MovedUnit<4> {
  using Type = uint32_t;
};
template <>
struct MovedUnit<1> {
  using Type = uint8_t;
};

// Of keys, or of values. Strides and offsets in bytes.
struct MovedPart {
  std::byte* rows = nullptr;  // Of block 0, head 0, token 0.
  uint32_t row_units = 0;
  uint64_t tile = 0;  // Within the segment, as what follows.
  uint64_t tile_end = 0;
  uint64_t padded_end = 0;
  uint64_t stored_scales = 0;
  uint64_t stored_scales_end = 0;
  std::byte* scales = nullptr;  // As rows.
  uint64_t scale_block_stride = 0;
  uint64_t scale_head_stride = 0;
  uint64_t scale_token_stride = 0;
};

template <uint32_t kUnitBytes>
struct BlockCopyKernel {
  struct Params {
    PagePlaces segments;
    const BlockPlace* places = nullptr;
    uint64_t place_count = 0;
    const uint64_t* counted = nullptr;
    uint64_t blocks = 0;
    uint64_t block_stride = 0;
    uint64_t head_stride = 0;
    uint64_t token_stride = 0;
    uint32_t kv_heads = 0;
    uint32_t page_tokens = 0;
    uint32_t head_scales = 0;  // Of one head: 0, 1 or page_tokens.
    bool gathers = false;
    MovedPart part[2];
    uint32_t* refused = nullptr;
  };
  // One head's rows at hand.
  struct Rows {
    std::byte* stored = nullptr;
    std::byte* engine = nullptr;
    uint32_t row_units = 0;
  };
  using Unit = typename MovedUnit<kUnitBytes>::Type;
  static constexpr uint32_t kThreads = 128;
  static constexpr uint32_t kBlocksPerProcessor = 8;
  static constexpr uint32_t kUnitsAtOnce = 4;  // In flight, of a thread.

  static CAIRN_SIMT_DEVICE void Run(const Params& params) {
    const uint64_t index = simt::BlockX();
    if (params.counted != nullptr && index >= simt::LoadGlobal(params.counted)) return;
    const BlockPlace* const place = params.places + index;
    const uint64_t block = simt::LoadGlobal(&place->block);
    std::byte* const segment = params.segments.SegmentAt(simt::LoadGlobal(&place->page.region),
                                                         simt::LoadGlobal(&place->page.offset));
    if (segment == nullptr || block >= params.blocks) {
      if (simt::BlockY() == 0 && simt::Thread() == 0 && params.refused != nullptr) {
        simt::AtomicAdd(params.refused, 1);
      }
      return;
    }
    const uint32_t head = simt::BlockY() % params.kv_heads;
    const MovedPart& part = params.part[simt::BlockY() / params.kv_heads];
    Rows rows;
    rows.row_units = part.row_units;
    rows.stored =
        segment + part.tile + uint64_t{head} * params.page_tokens * part.row_units * kUnitBytes;
    rows.engine = part.rows + block * params.block_stride + head * params.head_stride;
    MoveRows(params, rows);
    MoveScales(params, part, segment, block, head);
    if (params.gathers && head == 0) {
      ZeroBytes(segment, part.tile_end, part.padded_end);
      ZeroBytes(segment, part.stored_scales_end, part.tile);
    }
  }

  // Where unit `unit` of a head's rows is in the engine's tensor.
  static CAIRN_SIMT_DEVICE std::byte* EngineUnit(const Params& params, const Rows& rows,
                                                 uint32_t unit) {
    const uint32_t token = unit / rows.row_units;
    return rows.engine + token * params.token_stride + uint64_t{unit % rows.row_units} * kUnitBytes;
  }

  static CAIRN_SIMT_DEVICE void MoveRows(const Params& params, const Rows& rows) {
    const uint32_t units = params.page_tokens * rows.row_units;
    for (uint32_t first = simt::Thread(); first < units; first += kThreads * kUnitsAtOnce) {
      Unit moved[kUnitsAtOnce];
      CAIRN_SIMT_UNROLL
      for (uint32_t i = 0; i < kUnitsAtOnce; ++i) {
        const uint32_t unit = first + i * kThreads;
        if (unit >= units) break;
        const std::byte* const from = params.gathers ? EngineUnit(params, rows, unit)
                                                     : rows.stored + uint64_t{unit} * kUnitBytes;
        moved[i] = simt::LoadGlobal(reinterpret_cast<const Unit*>(from));
      }
      CAIRN_SIMT_UNROLL
      for (uint32_t i = 0; i < kUnitsAtOnce; ++i) {
        const uint32_t unit = first + i * kThreads;
        if (unit >= units) break;
        std::byte* const to = params.gathers ? rows.stored + uint64_t{unit} * kUnitBytes
                                             : EngineUnit(params, rows, unit);
        simt::StoreGlobal(reinterpret_cast<Unit*>(to), moved[i]);
      }
    }
  }

  static CAIRN_SIMT_DEVICE void MoveScales(const Params& params, const MovedPart& part,
                                           std::byte* segment, uint64_t block, uint32_t head) {
    for (uint32_t t = simt::Thread(); t < params.head_scales; t += kThreads) {
      auto* const stored = reinterpret_cast<float*>(segment + part.stored_scales) +
                           uint64_t{head} * params.head_scales + t;
      auto* const engine =
          reinterpret_cast<float*>(part.scales + block * part.scale_block_stride +
                                   head * part.scale_head_stride + t * part.scale_token_stride);
      if (params.gathers) {
        simt::StoreGlobal(stored, simt::LoadGlobal(engine));
      } else {
        simt::StoreGlobal(engine, simt::LoadGlobal(stored));
      }
    }
  }

  static CAIRN_SIMT_DEVICE void ZeroBytes(std::byte* segment, uint64_t begin, uint64_t end) {
    for (uint64_t at = begin + simt::Thread(); at < end; at += kThreads) {
      simt::StoreGlobal(reinterpret_cast<uint8_t*>(segment + at), uint8_t{0});
    }
  }
};

CAIRN_SIMT_END
