// Places within a segment against common/identity, which fixes them for the whole system.
#include "kernels/kv_segment.h"

#include <gmock/gmock.h>

#include "common/identity/payload_size.h"

namespace cairn::kernels {
namespace {

TEST(KvSegmentTest, IsWhatTheLayoutSays) {
  for (uint32_t dtype = 1; dtype <= 6; ++dtype) {
    for (uint32_t scales = dtype >= 5 ? 1 : 0; scales <= 2; ++scales) {
      for (uint32_t value_dim : {0u, 64u, 80u}) {
        cairn::Layout layout;
        layout.version = cairn::kLayoutVersion;
        layout.block_tokens = 24;
        layout.slices = 1;
        cairn::Group group;
        group.layers = 3;
        group.kv_heads = 5;
        group.key_dim = 80;
        group.value_dim = value_dim;
        group.dtype = static_cast<cairn::Dtype>(dtype);
        group.scales = static_cast<cairn::ScaleKind>(scales);
        layout.groups = {group};
        ASSERT_TRUE(cairn::ValidateLayout(layout).ok());
        const cairn::SegmentTiles tiles = cairn::TilesOf(layout, layout.groups[0]);
        const KvShape shape = {
            5, 24, 80, value_dim, static_cast<KvDtype>(dtype), static_cast<KvScales>(scales)};
        ASSERT_EQ(ValidateShape(shape), "");
        const KvSegment segment = SegmentOf(shape);
        EXPECT_EQ(segment.bytes, tiles.segment_bytes);
        EXPECT_EQ(segment.key, tiles.key.offset);
        EXPECT_EQ(segment.key_bytes, tiles.key.bytes);
        EXPECT_EQ(segment.key_scales, tiles.key_scales.offset);
        EXPECT_EQ(segment.key_scales_bytes, tiles.key_scales.bytes);
        EXPECT_EQ(segment.value_bytes, tiles.value.bytes);
        EXPECT_EQ(segment.value_scales_bytes, tiles.value_scales.bytes);
        if (value_dim == 0) continue;
        EXPECT_EQ(segment.value, tiles.value.offset);
        EXPECT_EQ(segment.value_scales, tiles.value_scales.offset);
      }
    }
  }
}

}  // namespace
}  // namespace cairn::kernels
