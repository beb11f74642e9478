// KvStages: units of K and V on their way from global to shared memory, several stages of them.
//
// A stage has up to kBlockWarps units; warp w brings unit w of each. A unit is its K tile, V tile,
// 16 scales of keys and 16 of values. Tokens that no query sees are zeros and are not read.
#pragma once

#include "kernels/gpu/attention_params.h"
#include "kernels/gpu/attention_tile.h"

CAIRN_SIMT_BEGIN

inline constexpr uint32_t kScaleBytes = kUnitTokens * sizeof(float);

// Bit t: token t of the unit is seen by some query.
CAIRN_SIMT_DEVICE uint32_t SeenTokens(const GpuSeen& seen, uint32_t first_token) {
  const uint32_t end = first_token + kUnitTokens;
  if ((first_token >= seen.begin && end <= seen.end) || end <= seen.sink_end) return 0xffffu;
  uint32_t bits = 0;
  for (uint32_t t = 0; t < kUnitTokens; ++t) {
    if (Sees(seen, first_token + t)) bits |= 1u << t;
  }
  return bits;
}

// Where a unit within one page lies.
struct UnitPlace {
  uint64_t segment;
  uint32_t slot;  // Of its first token.
};

template <class Tile, uint32_t kKeyDim, uint32_t kValueDim, bool kIsLatent>
struct KvStages {
  static constexpr uint32_t kKeyPitch = Tile::PitchOf(kKeyDim);
  static constexpr uint32_t kValuePitch = kIsLatent ? 0 : Tile::PitchOf(kValueDim);
  static constexpr uint32_t kValueTile = kUnitTokens * kKeyPitch;
  static constexpr uint32_t kKeyScales = kValueTile + kUnitTokens * kValuePitch;
  static constexpr uint32_t kValueScales = kKeyScales + kScaleBytes;
  static constexpr uint32_t kUnitBytes = (kValueScales + kScaleBytes + 127) / 128 * 128;

  uint32_t memory;  // Offset of the stages.
  // Of this warp's unit n of a batch of 32, in lane n.
  UnitPlace now;
  UnitPlace next;
  simt::CachePolicy policy;

  CAIRN_SIMT_DEVICE static uint32_t StageBytes(const AttentionParams& params) {
    return params.stage_units * kUnitBytes;
  }

  CAIRN_SIMT_DEVICE uint32_t UnitAt(const AttentionParams& params, uint32_t stage,
                                    uint32_t unit) const {
    return memory + stage * StageBytes(params) + unit * kUnitBytes;
  }

  CAIRN_SIMT_DEVICE void Start(const AttentionParams& params, const AttentionWork& work,
                               uint32_t offset) {
    memory = offset;
    policy = simt::EvictFirst();
    now = {0, 0};
    next = FindUnit(params, work, simt::Lane());
  }

  // Asks for this warp's unit of stage-load `load`, into `stage`; past the end for nothing. Calls
  // come with load 0, 1, 2, ... A group of copies each.
  CAIRN_SIMT_DEVICE void Bring(const AttentionParams& params, const AttentionWork& work,
                               uint32_t load, uint32_t stage) {
    if (load % simt::kWarpLanes == 0) {
      now = next;
      next = FindUnit(params, work, load + simt::kWarpLanes + simt::Lane());
    }
    const uint32_t i = load * params.stage_units + simt::Warp();
    if (simt::Warp() < params.stage_units && i < work.units.units) {
      const uint32_t token = work.units.At(i) * kUnitTokens;
      const uint32_t to = UnitAt(params, stage, simt::Warp());
      if (params.page_tokens % kUnitTokens == 0) {
        const uint64_t segment = simt::ShuffleFrom(now.segment, load);
        BringRun(params, work, token, {segment, simt::ShuffleFrom(now.slot, load)}, to);
      } else {
        BringRows(params, work, token, to);
      }
    }
    simt::CopyAsyncCommit();
  }

 private:
  // The warp's unit of load `load`, where it has one.
  CAIRN_SIMT_DEVICE static UnitPlace FindUnit(const AttentionParams& params,
                                              const AttentionWork& work, uint32_t load) {
    const uint32_t i = load * params.stage_units + simt::Warp();
    if (params.page_tokens % kUnitTokens != 0 || simt::Warp() >= params.stage_units ||
        i >= work.units.units) {
      return {0, 0};
    }
    const uint32_t token = work.units.At(i) * kUnitTokens;
    const uint32_t page = token / params.page_tokens;
    return {simt::LoadGlobal(work.pages + page) + params.segment_offset,
            token - page * params.page_tokens};
  }

  // A unit within one page.
  CAIRN_SIMT_DEVICE void BringRun(const AttentionParams& params, const AttentionWork& work,
                                  uint32_t token, const UnitPlace& place, uint32_t to) const {
    const uint32_t seen = SeenTokens(work.any, token);
    const uint64_t segment = place.segment;
    // Heads times tokens of a page and 16 rows' bytes are within 32 bits.
    const uint32_t row = work.kv_head * params.page_tokens + place.slot;
    const uint64_t keys = segment + params.key_offset + uint64_t{row} * params.key_row_bytes;
    const auto row_of_key = [&](uint32_t r) { return keys + r * params.key_row_bytes; };
    CopyRows<kKeyDim, kKeyPitch>(params.key_row_bytes, seen, to, row_of_key);
    if constexpr (!kIsLatent) {
      const uint64_t values =
          segment + params.value_offset + uint64_t{row} * params.value_row_bytes;
      const auto row_of_value = [&](uint32_t r) { return values + r * params.value_row_bytes; };
      CopyRows<kValueDim, kValuePitch>(params.value_row_bytes, seen, to + kValueTile, row_of_value);
    }
    if (params.scales == KvScales::kNone) return;
    // 16 scales of tokens, or the 16 bytes with the head's.
    const bool by_token = params.scales == KvScales::kPerTokenAndHead;
    const uint64_t at = by_token ? row * sizeof(float) : work.kv_head / 4 * 16;
    const uint32_t chunks = by_token ? kScaleBytes / 16 : 1;
    const uint32_t tile = simt::Lane() / 4;
    const uint32_t chunk = simt::Lane() % 4;
    if (chunk >= chunks || tile > (kIsLatent ? 0u : 1u)) return;
    const uint64_t scales = tile == 0 ? params.key_scales_offset : params.value_scales_offset;
    simt::CopyAsync16(to + (tile == 0 ? kKeyScales : kValueScales) + chunk * 16,
                      reinterpret_cast<const std::byte*>(segment + scales + at + chunk * 16), 16);
  }

  // A unit whose tokens lie in pages of any size: lane t < 16 finds token t.
  CAIRN_SIMT_DEVICE void BringRows(const AttentionParams& params, const AttentionWork& work,
                                   uint32_t token, uint32_t to) const {
    const uint32_t seen = SeenTokens(work.any, token);
    const uint32_t mine = token + simt::Lane() % kUnitTokens;
    uint64_t segment = 0;
    uint64_t row = 0;
    if ((seen >> (simt::Lane() % kUnitTokens) & 1) != 0) {
      segment = simt::LoadGlobal(work.pages + mine / params.page_tokens) + params.segment_offset;
      row = uint64_t{work.kv_head} * params.page_tokens + mine % params.page_tokens;
    }
    const uint64_t key = segment + params.key_offset + row * params.key_row_bytes;
    CopyRows<kKeyDim, kKeyPitch>(params.key_row_bytes, seen, to,
                                 [&](uint32_t r) { return simt::ShuffleFrom(key, r); });
    if constexpr (!kIsLatent) {
      const uint64_t value = segment + params.value_offset + row * params.value_row_bytes;
      CopyRows<kValueDim, kValuePitch>(params.value_row_bytes, seen, to + kValueTile,
                                       [&](uint32_t r) { return simt::ShuffleFrom(value, r); });
    }
    if (params.scales == KvScales::kNone) return;
    const bool by_token = params.scales == KvScales::kPerTokenAndHead;
    const uint64_t at = (by_token ? row : work.kv_head) * sizeof(float);
    const bool is_key = simt::Lane() < kUnitTokens;
    if (kIsLatent && !is_key) return;
    const uint64_t scales = is_key ? params.key_scales_offset : params.value_scales_offset;
    float scale = 0;
    if (segment != 0) {
      scale = simt::LoadGlobal(reinterpret_cast<const float*>(segment + scales + at));
    }
    simt::StoreShared(to + (is_key ? kKeyScales : kValueScales) +
                          simt::Lane() % kUnitTokens * static_cast<uint32_t>(sizeof(float)),
                      scale);
  }

  // 16 rows into a tile; to whole loads of matrices, zeros behind a row's end.
  template <uint32_t kDim, uint32_t kPitch, class AddressOf>
  CAIRN_SIMT_DEVICE void CopyRows(uint32_t row_bytes, uint32_t seen, uint32_t to,
                                  const AddressOf& address_of) const {
    constexpr uint32_t kChunks = kDim / Tile::kChunkDims;
    const uint32_t chunks = row_bytes / 16;
    const uint32_t padded = (chunks + 1) / 2 * 2;
    constexpr uint32_t kCopies = kUnitTokens * kChunks / simt::kWarpLanes;
    // All at once would need more registers than there are where rows are long.
    constexpr uint32_t kAtOnce = kCopies % 8 == 0 ? 8 : kCopies % 6 == 0 ? 6 : kCopies;
    CAIRN_SIMT_NO_UNROLL
    for (uint32_t begin = 0; begin < kCopies; begin += kAtOnce) {
      CAIRN_SIMT_UNROLL
      for (uint32_t i = 0; i < kAtOnce; ++i) {
        const uint32_t index = (begin + i) * simt::kWarpLanes + simt::Lane();
        const uint32_t row = index / kChunks;
        const uint32_t chunk = index % kChunks;
        const uint64_t from = address_of(row) + chunk * 16;
        if (chunk < padded) {
          const bool is_read = chunk < chunks && (seen >> row & 1) != 0;
          simt::CopyAsync16(to + SwizzledOffset(row, chunk, kPitch),
                            reinterpret_cast<const std::byte*>(from), is_read ? 16 : 0, policy);
        }
      }
    }
  }
};

CAIRN_SIMT_END
