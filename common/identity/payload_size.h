// Sizes of segments, parts and blocks: pure functions of the layout.
//
// REQUIRES of all: the group is one of the layout's, and the layout is valid (layout.h), which also
// rules out overflow. PayloadMap (payload_map.h) gives places within a block.
#pragma once

#include <cstdint>

#include "common/identity/layout.h"

namespace cairn {

// Every scales array and tile is padded with zeros to a multiple of this.
inline constexpr uint64_t kTileAlignBytes = 64;

constexpr uint64_t PadTile(uint64_t bytes) {
  return (bytes + kTileAlignBytes - 1) / kTileAlignBytes * kTileAlignBytes;
}

// In how many slices the group is stored.
uint32_t SlicesOf(const Layout& layout, const Group& group);

// A run of bytes within a segment; `bytes` is without padding, and 0 when the segment has none.
struct TileSpan {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// What a segment holds, in this order. An opaque group has its one tile as `key`.
struct SegmentTiles {
  TileSpan key_scales;
  TileSpan key;
  TileSpan value_scales;
  TileSpan value;
  uint64_t segment_bytes = 0;  // With padding.
};

SegmentTiles TilesOf(const Layout& layout, const Group& group);

// One layer of one slice of the group, a multiple of kTileAlignBytes.
uint64_t SegmentBytes(const Layout& layout, const Group& group);

// All layers of one slice of the group.
uint64_t PartBytes(const Layout& layout, const Group& group);

// All parts of all groups, required or not.
uint64_t BlockBytes(const Layout& layout);

}  // namespace cairn
