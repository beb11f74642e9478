// PayloadMap and tile offsets: against hand-computed places, and as properties over a layout of
// several groups (nothing overlaps, nothing is left out, every lookup is its inverse).
#include "common/identity/payload_map.h"

#include <gmock/gmock.h>

#include "tests/testing/identity_samples.h"

namespace cairn {
namespace {

using testing::SampleGroup;
using testing::SampleLayout;

// Three groups: cut in 2, optional and cut in 2, and latent in one slice.
Layout ThreeGroups() {
  Layout layout = SampleLayout();
  layout.slices = 2;
  Group sliding = SampleGroup();
  sliding.kind = GroupKind::kSlidingWindow;
  sliding.window_tokens = 128;
  sliding.layers = 3;
  sliding.required = 0;
  Group latent = SampleGroup();
  latent.kind = GroupKind::kLatent;
  latent.kv_heads = 1;
  latent.key_dim = 20;
  latent.value_dim = 0;
  latent.dtype = Dtype::kFloat8E4m3fn;
  latent.scales = ScaleKind::kPerTokenAndHead;
  latent.layers = 1;
  layout.groups = {SampleGroup(), sliding, latent};
  return layout;
}

PayloadMap MapOf(const Layout& layout) {
  absl::StatusOr<PayloadMap> map = PayloadMap::Make(layout);
  EXPECT_TRUE(map.ok()) << map.status();
  return *std::move(map);
}

TEST(PayloadSizeTest, TilesFollowEachOtherOnSixtyFourBytes) {
  Layout layout = SampleLayout();
  layout.block_tokens = 8;
  Group& group = layout.groups[0];
  group.kv_heads = 1;
  group.dtype = Dtype::kInt4;
  group.scales = ScaleKind::kPerTokenAndHead;
  group.key_dim = 3;
  group.value_dim = 50;
  const SegmentTiles tiles = TilesOf(layout, group);
  EXPECT_EQ(tiles.key_scales.offset, 0u);
  EXPECT_EQ(tiles.key_scales.bytes, 32u);
  EXPECT_EQ(tiles.key.offset, 64u);
  EXPECT_EQ(tiles.key.bytes, 12u);
  EXPECT_EQ(tiles.value_scales.offset, 128u);
  EXPECT_EQ(tiles.value_scales.bytes, 32u);
  EXPECT_EQ(tiles.value.offset, 192u);
  EXPECT_EQ(tiles.value.bytes, 200u);
  EXPECT_EQ(tiles.segment_bytes, 192u + 256u);
}

TEST(PayloadSizeTest, OddInt4TileRoundsUpToAWholeByteOnce) {
  Layout layout = SampleLayout();
  layout.block_tokens = 3;
  Group& group = layout.groups[0];
  group.kv_heads = 1;
  group.dtype = Dtype::kInt4;
  group.scales = ScaleKind::kPerHead;
  group.key_dim = 3;
  group.value_dim = 1;
  EXPECT_EQ(TilesOf(layout, group).key.bytes, 5u);    // 9 codes
  EXPECT_EQ(TilesOf(layout, group).value.bytes, 2u);  // 3 codes
}

TEST(PayloadSizeTest, AZeroDimDropsItsScalesAndTile) {
  Layout layout = SampleLayout();
  Group& group = layout.groups[0];
  group.scales = ScaleKind::kPerHead;
  group.key_dim = 0;
  const SegmentTiles tiles = TilesOf(layout, group);
  EXPECT_EQ(tiles.key_scales.bytes, 0u);
  EXPECT_EQ(tiles.key.bytes, 0u);
  EXPECT_EQ(tiles.value_scales.offset, 0u);
  EXPECT_EQ(tiles.value.offset, 64u);
}

TEST(PayloadMapTest, PartsLieInOrderOfGroupAndSlice) {
  const PayloadMap map = MapOf(ThreeGroups());
  std::vector<std::pair<uint32_t, uint32_t>> order;
  for (const PayloadMap::Part& part : map.parts()) order.emplace_back(part.group, part.slice);
  EXPECT_THAT(order, ::testing::ElementsAre(std::pair(0u, 0u), std::pair(0u, 1u), std::pair(1u, 0u),
                                            std::pair(1u, 1u), std::pair(2u, 0u)));
}

TEST(PayloadMapTest, SizesAndOffsetsAreThoseComputedByHand) {
  const PayloadMap map = MapOf(ThreeGroups());
  // A slice of a sample layer: 4 heads * 16 tokens * 16 dims * 2 bytes, keys and values.
  constexpr uint64_t kSegment = 2 * 2048;
  // Latent: 16 tokens' scales in 64 bytes, then 16 * 20 bytes in 320.
  constexpr uint64_t kLatentSegment = 64 + 320;
  EXPECT_EQ(map.parts()[1].offset, 2 * kSegment);
  EXPECT_EQ(map.parts()[2].offset, 4 * kSegment);
  EXPECT_EQ(map.parts()[4].offset, 10 * kSegment);
  EXPECT_EQ(map.parts()[4].segment_bytes, kLatentSegment);
  EXPECT_EQ(map.block_bytes(), 10 * kSegment + kLatentSegment);
  EXPECT_EQ(map.segment_count(), 11u);
}

TEST(PayloadMapTest, OnlyPartsOfRequiredGroupsAreRequired) {
  const PayloadMap map = MapOf(ThreeGroups());
  EXPECT_EQ(map.required_part_count(), 3u);
  EXPECT_EQ(map.required_segment_count(), 5u);
  EXPECT_TRUE(map.parts()[0].required);
  EXPECT_FALSE(map.parts()[2].required);
  EXPECT_TRUE(map.parts()[4].required);
}

TEST(PayloadMapTest, SegmentsCoverTheSlotWithoutGapOrOverlap) {
  const PayloadMap map = MapOf(ThreeGroups());
  uint64_t end = 0;
  for (size_t i = 0; i < map.segment_count(); ++i) {
    EXPECT_EQ(map.SegmentOffset(i), end) << i;
    EXPECT_EQ(map.SegmentOffset(i) % kTileAlignBytes, 0u) << i;
    end += map.SegmentBytesAt(i);
  }
  EXPECT_EQ(end, map.block_bytes());
}

TEST(PayloadMapTest, IndexAndIdAreEachOthersInverse) {
  const PayloadMap map = MapOf(ThreeGroups());
  for (size_t i = 0; i < map.segment_count(); ++i) {
    const SegmentId id = map.SegmentAt(i);
    EXPECT_EQ(map.FindSegment(id), std::optional<size_t>(i));
    EXPECT_EQ(map.FindPart(id.group, id.slice), std::optional<size_t>(map.PartOfSegment(i)));
  }
}

TEST(PayloadMapTest, FindsNothingOutsideTheLayout) {
  const PayloadMap map = MapOf(ThreeGroups());
  for (const SegmentId& id : {SegmentId{3, 0, 0}, SegmentId{0, 2, 0}, SegmentId{0, 0, 2},
                              SegmentId{2, 1, 0}, SegmentId{UINT32_MAX, UINT32_MAX, UINT32_MAX}}) {
    EXPECT_EQ(map.FindSegment(id), std::nullopt);
  }
  EXPECT_EQ(map.FindPart(2, 1), std::nullopt);
}

TEST(PayloadMapTest, TilesOfAGroupAreThoseOfItsLayout) {
  const Layout layout = ThreeGroups();
  const PayloadMap map = MapOf(layout);
  for (uint32_t g = 0; g < layout.groups.size(); ++g) {
    EXPECT_EQ(map.TilesOfGroup(g).segment_bytes, SegmentBytes(layout, layout.groups[g]));
    EXPECT_EQ(map.TilesOfGroup(g).value.offset, TilesOf(layout, layout.groups[g]).value.offset);
  }
}

TEST(PayloadMapTest, RefusesALayoutThatIsNotValid) {
  Layout layout = ThreeGroups();
  layout.groups[1].layers = 0;
  EXPECT_EQ(PayloadMap::Make(layout).status(), ValidateLayout(layout));
  EXPECT_FALSE(PayloadMap::Make(layout).ok());
}

TEST(PayloadMapDeathTest, AnIndexPastTheEndIsABug) {
  const PayloadMap map = MapOf(ThreeGroups());
  EXPECT_DEATH(map.SegmentAt(map.segment_count()), "segment_count_");
}

}  // namespace
}  // namespace cairn
