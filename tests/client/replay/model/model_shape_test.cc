// Sizes that are wrong are named, and the pages of a model are what common/identity says a block's
// segments are.
#include "client/replay/model/model_shape.h"

#include <gmock/gmock.h>

#include <string>

#include "common/identity/payload_size.h"

namespace cairn::replay {
namespace {

using ::testing::HasSubstr;

TEST(ModelShapeTest, TheDefaultIsValidAndSmall) {
  EXPECT_TRUE(ValidateModelShape({}).ok());
  EXPECT_LT(WeightCount({}), 1000000u);
}

TEST(ModelShapeTest, NamesWhatIsWrong) {
  ModelShape odd;
  odd.head_dim = 15;
  EXPECT_THAT(std::string(ValidateModelShape(odd).message()), HasSubstr("head_dim 15 is odd"));
  ModelShape heads;
  heads.kv_heads = 3;
  EXPECT_THAT(std::string(ValidateModelShape(heads).message()),
              HasSubstr("query_heads 8 is not a multiple of kv_heads 3"));
  ModelShape none;
  none.ffn = 0;
  EXPECT_THAT(std::string(ValidateModelShape(none).message()), HasSubstr("ffn is 0"));
  ModelShape huge;
  huge.hidden = huge.ffn = kModelSizeMax;
  EXPECT_THAT(std::string(ValidateModelShape(huge).message()), HasSubstr("weights are more than"));
}

TEST(ModelShapeTest, PagesAreTheSegmentsOfABlock) {
  const struct {
    Dtype dtype;
    ScaleKind scales;
  } stored[] = {{Dtype::kFloat32, ScaleKind::kNone},
                {Dtype::kBfloat16, ScaleKind::kNone},
                {Dtype::kFloat8E4m3fn, ScaleKind::kNone},
                {Dtype::kInt8, ScaleKind::kPerTokenAndHead}};
  for (const auto& one : stored) {
    for (uint32_t slices : {1u, 2u}) {
      const Layout layout = ModelLayout({}, one.dtype, one.scales, 12, slices);
      ASSERT_TRUE(ValidateLayout(layout).ok()) << ValidateLayout(layout);
      const kernels::KvSegment segment = kernels::SegmentOf(PageShape(layout));
      const SegmentTiles tiles = TilesOf(layout, layout.groups[0]);
      EXPECT_EQ(segment.bytes, tiles.segment_bytes);
      EXPECT_EQ(segment.key, tiles.key.offset);
      EXPECT_EQ(segment.value, tiles.value.offset);
      EXPECT_EQ(segment.value_bytes, tiles.value.bytes);
      EXPECT_EQ(segment.bytes * 4, PartBytes(layout, layout.groups[0]));
    }
  }
}

}  // namespace
}  // namespace cairn::replay
