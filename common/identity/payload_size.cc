#include "common/identity/payload_size.h"

namespace cairn {
namespace {

constexpr uint64_t kScaleBytes = 4;

uint64_t BitsOf(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16:
    case Dtype::kBfloat16:
      return 16;
    case Dtype::kFloat32:
      return 32;
    case Dtype::kFloat8E4m3fn:
    case Dtype::kInt8:
      return 8;
    case Dtype::kInt4:
      return 4;
    case Dtype::kOpaque:
      break;
  }
  return 0;
}

uint64_t ScalesBytes(const Layout& layout, const Group& group, uint64_t heads) {
  switch (group.scales) {
    case ScaleKind::kNone:
      return 0;
    case ScaleKind::kPerHead:
      return kScaleBytes * heads;
    case ScaleKind::kPerTokenAndHead:
      return kScaleBytes * heads * layout.block_tokens;
  }
  return 0;
}

// Places `bytes` at the segment's end and moves the end past its padding.
TileSpan Append(SegmentTiles* tiles, uint64_t bytes) {
  const TileSpan span{tiles->segment_bytes, bytes};
  tiles->segment_bytes += PadTile(bytes);
  return span;
}

}  // namespace

uint32_t SlicesOf(const Layout& layout, const Group& group) {
  return IsSliced(group.kind) ? layout.slices : 1;
}

SegmentTiles TilesOf(const Layout& layout, const Group& group) {
  SegmentTiles tiles;
  if (group.dtype == Dtype::kOpaque) {
    tiles.key = Append(&tiles, uint64_t{layout.block_tokens} * group.opaque_bytes);
    return tiles;
  }
  const uint64_t heads = group.kv_heads / SlicesOf(layout, group);
  const uint64_t scales_bytes = ScalesBytes(layout, group, heads);
  // A tile is packed as a whole: only its last byte can be half used.
  const auto tile_bytes = [&](uint64_t dim) {
    return (heads * layout.block_tokens * dim * BitsOf(group.dtype) + 7) / 8;
  };
  tiles.key_scales = Append(&tiles, group.key_dim == 0 ? 0 : scales_bytes);
  tiles.key = Append(&tiles, tile_bytes(group.key_dim));
  tiles.value_scales = Append(&tiles, group.value_dim == 0 ? 0 : scales_bytes);
  tiles.value = Append(&tiles, tile_bytes(group.value_dim));
  return tiles;
}

uint64_t SegmentBytes(const Layout& layout, const Group& group) {
  return TilesOf(layout, group).segment_bytes;
}

uint64_t PartBytes(const Layout& layout, const Group& group) {
  return SegmentBytes(layout, group) * group.layers;
}

uint64_t BlockBytes(const Layout& layout) {
  uint64_t bytes = 0;
  for (const Group& group : layout.groups) {
    bytes += PartBytes(layout, group) * SlicesOf(layout, group);
  }
  return bytes;
}

}  // namespace cairn
