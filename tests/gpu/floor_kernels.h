// Kernels that a bench compares with, or fills memory with. Launched over as many blocks as keep a
// device busy; threads go on until all is done.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/problem.h"
#include "kernels/simt/simt.h"

CAIRN_SIMT_BEGIN

inline constexpr uint32_t kFloorBlocksPerProcessor = 8;

// 16-byte pieces, eight in flight a thread.
struct ReadFloorKernel {
  struct Params {
    const std::byte* from = nullptr;
    uint64_t pieces = 0;
    uint32_t* sink = nullptr;
  };
  static constexpr uint32_t kThreads = 256;
  static constexpr uint32_t kBlocksPerProcessor = 4;
  static constexpr uint32_t kAtOnce = 8;

  static CAIRN_SIMT_DEVICE void Run(const Params& params) {
    const uint64_t step = uint64_t{simt::GridX()} * kThreads;
    const uint64_t mine = uint64_t{simt::BlockX()} * kThreads + simt::Thread();
    uint32_t mixed = 0;
    for (uint64_t first = mine; first < params.pieces; first += step * kAtOnce) {
      simt::Bytes16 loaded[kAtOnce] = {};
      CAIRN_SIMT_UNROLL
      for (uint32_t i = 0; i < kAtOnce; ++i) {
        const uint64_t piece = first + i * step;
        if (piece < params.pieces) {
          loaded[i] = simt::LoadGlobalStreaming16(params.from + piece * 16);
        }
      }
      CAIRN_SIMT_UNROLL
      for (uint32_t i = 0; i < kAtOnce; ++i) {
        mixed ^= loaded[i].word[0] ^ loaded[i].word[1] ^ loaded[i].word[2] ^ loaded[i].word[3];
      }
    }
    // Never so in practice, and no compiler knows.
    if (mixed == 0x9e3779b9u) simt::AtomicAdd(params.sink, 1);
  }
};

// Runs in the order of a list, a warp each, up to eight pieces a lane in flight: as a kernel reads
// that follows a table of pages.
struct ReadRunsKernel {
  struct Params {
    const std::byte* from = nullptr;
    const uint32_t* order = nullptr;  // Which runs, by their index from `from` on.
    uint64_t runs = 0;
    uint32_t run_pieces = 0;
    uint32_t* sink = nullptr;
  };
  static constexpr uint32_t kThreads = 256;
  static constexpr uint32_t kBlocksPerProcessor = 4;
  static constexpr uint32_t kAtOnce = 8;

  static CAIRN_SIMT_DEVICE void Run(const Params& params) {
    constexpr uint32_t kWarps = kThreads / simt::kWarpLanes;
    uint32_t mixed = 0;
    for (uint64_t run = uint64_t{simt::BlockX()} * kWarps + simt::Warp(); run < params.runs;
         run += uint64_t{simt::GridX()} * kWarps) {
      const uint64_t first = uint64_t{simt::LoadGlobal(params.order + run)} * params.run_pieces;
      simt::Bytes16 loaded[kAtOnce] = {};
      CAIRN_SIMT_UNROLL
      for (uint32_t i = 0; i < kAtOnce; ++i) {
        const uint32_t piece = i * simt::kWarpLanes + simt::Lane();
        if (piece < params.run_pieces) {
          loaded[i] = simt::LoadGlobalStreaming16(params.from + (first + piece) * 16);
        }
      }
      CAIRN_SIMT_UNROLL
      for (uint32_t i = 0; i < kAtOnce; ++i) {
        mixed ^= loaded[i].word[0] ^ loaded[i].word[1] ^ loaded[i].word[2] ^ loaded[i].word[3];
      }
    }
    if (mixed == 0x9e3779b9u) simt::AtomicAdd(params.sink, 1);
  }
};

struct CopyFloorKernel {
  struct Params {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    uint64_t pieces = 0;
  };
  static constexpr uint32_t kThreads = 256;
  static constexpr uint32_t kBlocksPerProcessor = 4;
  static constexpr uint32_t kAtOnce = 4;

  static CAIRN_SIMT_DEVICE void Run(const Params& params) {
    const uint64_t step = uint64_t{simt::GridX()} * kThreads;
    const uint64_t mine = uint64_t{simt::BlockX()} * kThreads + simt::Thread();
    for (uint64_t first = mine; first < params.pieces; first += step * kAtOnce) {
      simt::Bytes16 loaded[kAtOnce];
      CAIRN_SIMT_UNROLL
      for (uint32_t i = 0; i < kAtOnce; ++i) {
        const uint64_t piece = first + i * step;
        if (piece < params.pieces) {
          loaded[i] = simt::LoadGlobalStreaming16(params.from + piece * 16);
        }
      }
      CAIRN_SIMT_UNROLL
      for (uint32_t i = 0; i < kAtOnce; ++i) {
        const uint64_t piece = first + i * step;
        if (piece < params.pieces) {
          simt::StoreGlobal(reinterpret_cast<simt::Bytes16*>(params.to + piece * 16), loaded[i]);
        }
      }
    }
  }
};

// Words whose codes keep their signs and mantissas of a mixed counter, and exponents near 1.
struct FillKernel {
  struct Params {
    std::byte* to = nullptr;
    uint64_t pieces = 0;
    uint32_t keep = 0;  // Bits of a word that stay mixed.
    uint32_t set = 0;
  };
  static constexpr uint32_t kThreads = 256;
  static constexpr uint32_t kBlocksPerProcessor = 4;

  static CAIRN_SIMT_DEVICE void Run(const Params& params) {
    const uint64_t step = uint64_t{simt::GridX()} * kThreads;
    for (uint64_t piece = uint64_t{simt::BlockX()} * kThreads + simt::Thread();
         piece < params.pieces; piece += step) {
      simt::Bytes16 bytes;
      CAIRN_SIMT_UNROLL
      for (uint32_t i = 0; i < 4; ++i) {
        uint64_t mixed = (piece * 4 + i + 1) * 0x9e3779b97f4a7c15u;
        mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
        bytes.word[i] = (static_cast<uint32_t>(mixed >> 32) & params.keep) | params.set;
      }
      simt::StoreGlobal(reinterpret_cast<simt::Bytes16*>(params.to + piece * 16), bytes);
    }
  }
};

inline simt::LaunchShape FloorShape(uint32_t processors) {
  simt::LaunchShape shape;
  shape.blocks_x = processors * kFloorBlocksPerProcessor;
  return shape;
}

// bfloat16 between 0.5 and 2, float8 between 0.5 and 2, of either sign.
inline FillKernel::Params FillParams(bool is_bfloat16, std::byte* to, uint64_t bytes) {
  return {to, bytes / 16, is_bfloat16 ? 0x80ff80ffu : 0x8f8f8f8fu,
          is_bfloat16 ? 0x3f003f00u : 0x30303030u};
}

CAIRN_SIMT_END
