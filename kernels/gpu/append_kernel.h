// Rows of new tokens into their slots of pages. A row is one token's keys or values of one head.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/append.h"
#include "kernels/gpu/element_units.h"
#include "kernels/gpu/page_places.h"
#include "kernels/kv_segment.h"
#include "kernels/simt/simt.h"

CAIRN_SIMT_BEGIN

// Of keys, or of values.
struct AppendPart {
  const std::byte* data = nullptr;
  uint64_t token_stride = 0;
  uint64_t head_stride = 0;
  uint64_t tile = 0;  // Offsets within a segment.
  uint64_t scales = 0;
  uint32_t row_bytes = 0;
  uint32_t units = 0;  // Of a row.
};

template <KvDtype kDtype, bool kWide>
struct AppendKernel {
  struct Params {
    PagePlaces places;
    const int64_t* slots = nullptr;
    uint64_t tokens = 0;
    uint32_t kv_heads = 0;
    uint32_t page_tokens = 0;
    uint32_t parts = 0;  // 1 without values.
    uint32_t lanes = 0;  // Of a row.
    KvDtype source_dtype = KvDtype::kFloat32;
    bool copies = false;  // Rows are stored as they are.
    bool has_scales = false;
    AppendPart part[2];
    uint32_t* refused = nullptr;
  };
  static constexpr uint32_t kThreads = 128;
  static constexpr uint32_t kBlocksPerProcessor = 8;
  static constexpr uint32_t kUnit = kUnitElements<kDtype, kWide>;

  static CAIRN_SIMT_DEVICE void Run(const Params& params) {
    const uint64_t thread = uint64_t{simt::BlockX()} * kThreads + simt::Thread();
    const uint64_t index = thread / params.lanes;
    const uint32_t lane = simt::Thread() % params.lanes;
    const uint64_t token_rows = uint64_t{params.kv_heads} * params.parts;
    const uint64_t token = index / token_rows;
    const uint32_t token_row = static_cast<uint32_t>(index % token_rows);
    const AppendPart& part = params.part[token_row % params.parts];
    const uint32_t head = token_row / params.parts;

    RowToEncode row;
    row.source_dtype = params.source_dtype;
    row.computes_scale = params.has_scales;
    std::byte* segment = nullptr;
    uint64_t stored_row = 0;
    if (token < params.tokens) {
      const int64_t slot = simt::LoadGlobal(params.slots + token);
      if (slot >= 0) {
        segment = params.places.SegmentOf(static_cast<uint64_t>(slot) / params.page_tokens);
        if (segment == nullptr && params.refused != nullptr && token_row == 0 && lane == 0) {
          simt::AtomicAdd(params.refused, 1);
        }
        stored_row =
            uint64_t{head} * params.page_tokens + static_cast<uint64_t>(slot) % params.page_tokens;
      }
    }
    if (segment != nullptr) {
      row.numbers = part.data + token * part.token_stride + head * part.head_stride;
      row.codes = segment + part.tile + stored_row * part.row_bytes;
      row.units = part.units;
    }
    if (params.copies) return CopyRow(row, lane, params.lanes);
    const float scale = EncodeRow<kDtype, kUnit>(row, lane, params.lanes);
    if (segment != nullptr && params.has_scales && lane == 0) {
      auto* const scales = reinterpret_cast<float*>(segment + part.scales);
      simt::StoreGlobal(scales + stored_row, scale);
    }
  }

  static CAIRN_SIMT_DEVICE void CopyRow(const RowToEncode& row, uint32_t lane, uint32_t lanes) {
    constexpr uint32_t kBytes = CodeWords<kDtype, kUnit>::kBytes;
    for (uint64_t unit = lane; unit < row.units; unit += lanes) {
      StoreCodes<kDtype, kUnit>(row.codes + unit * kBytes,
                                LoadCodes<kDtype, kUnit>(row.numbers + unit * kBytes));
    }
  }
};

CAIRN_SIMT_END
