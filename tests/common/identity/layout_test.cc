// ValidateLayout rule by rule: a valid layout, one field bent at a time, and the message that says
// so.
#include "common/identity/layout.h"

#include <gmock/gmock.h>

#include <functional>

#include "common/identity/payload_size.h"
#include "tests/testing/identity_samples.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::SampleGroup;
using testing::SampleLayout;

// The sample with its only group bent.
Layout Bent(const std::function<void(Group&)>& bend) {
  Layout layout = SampleLayout();
  bend(layout.groups[0]);
  return layout;
}

Layout OpaqueLayout() {
  return Bent([](Group& group) {
    group.dtype = Dtype::kOpaque;
    group.opaque_bytes = 100;
  });
}

Layout LatentLayout() {
  return Bent([](Group& group) {
    group.kind = GroupKind::kLatent;
    group.kv_heads = 1;
    group.key_dim = 576;
    group.value_dim = 0;
  });
}

// Refused as malformed, in words that name the field, its value and what is allowed.
void ExpectInvalid(const Layout& layout, absl::string_view field, absl::string_view value) {
  const absl::Status status = ValidateLayout(layout);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field << ": " << status;
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr(std::string(field)), HasSubstr(std::string(value)), HasSubstr("allowed: ")));
}

TEST(LayoutTest, SamplesAreValid) {
  EXPECT_TRUE(ValidateLayout(SampleLayout()).ok()) << ValidateLayout(SampleLayout());
  EXPECT_TRUE(ValidateLayout(OpaqueLayout()).ok()) << ValidateLayout(OpaqueLayout());
  EXPECT_TRUE(ValidateLayout(LatentLayout()).ok()) << ValidateLayout(LatentLayout());
}

TEST(LayoutTest, VersionIsOne) {
  Layout layout = SampleLayout();
  layout.version = 2;
  ExpectInvalid(layout, "layout.version", "is 2");
}

TEST(LayoutTest, BlockTokensHaveBounds) {
  Layout layout = SampleLayout();
  layout.block_tokens = 0;
  ExpectInvalid(layout, "block_tokens", "is 0");
  layout.block_tokens = kBlockTokensMax + 1;
  ExpectInvalid(layout, "block_tokens", "is 16385");
  layout.block_tokens = kBlockTokensMax;
  EXPECT_TRUE(ValidateLayout(layout).ok()) << ValidateLayout(layout);
}

TEST(LayoutTest, SlicesHaveBounds) {
  Layout layout = LatentLayout();
  layout.slices = 0;
  ExpectInvalid(layout, "slices", "is 0");
  layout.slices = kSlicesMax + 1;
  ExpectInvalid(layout, "slices", "is 1025");
  layout.slices = kSlicesMax;
  EXPECT_TRUE(ValidateLayout(layout).ok()) << ValidateLayout(layout);
}

TEST(LayoutTest, GroupsHaveBounds) {
  Layout layout = SampleLayout();
  layout.groups.clear();
  ExpectInvalid(layout, "number of groups", "is 0");
  layout.groups.assign(kGroupsMax + 1, SampleGroup());
  ExpectInvalid(layout, "number of groups", "is 65");
  layout.groups.pop_back();
  EXPECT_TRUE(ValidateLayout(layout).ok()) << ValidateLayout(layout);
}

TEST(LayoutTest, AtLeastOneGroupIsRequired) {
  Layout layout = Bent([](Group& group) { group.required = 0; });
  ExpectInvalid(layout, "required groups", "is 0");
  layout.groups.push_back(SampleGroup());
  EXPECT_TRUE(ValidateLayout(layout).ok()) << ValidateLayout(layout);
}

TEST(LayoutTest, FieldsOfAGroupHaveBounds) {
  const struct {
    absl::string_view field, value;
    std::function<void(Group&)> bend;
  } cases[] = {
      {"kind", "is 0", [](Group& g) { g.kind = GroupKind{0}; }},
      {"kind", "is 8", [](Group& g) { g.kind = GroupKind{8}; }},
      {"required", "is 2", [](Group& g) { g.required = 2; }},
      {"layers", "is 0", [](Group& g) { g.layers = 0; }},
      {"layers", "is 4097", [](Group& g) { g.layers = kLayersMax + 1; }},
      {"kv_heads", "is 0", [](Group& g) { g.kv_heads = 0; }},
      {"kv_heads", "is 4097", [](Group& g) { g.kv_heads = kKvHeadsMax + 1; }},
      {"key_dim", "is 65537", [](Group& g) { g.key_dim = kHeadDimMax + 1; }},
      {"value_dim", "is 4294967295", [](Group& g) { g.value_dim = UINT32_MAX; }},
      {"dtype", "is 7", [](Group& g) { g.dtype = Dtype{7}; }},
      {"scales", "is 3", [](Group& g) { g.scales = ScaleKind{3}; }},
      {"state_stride_blocks", "is 1", [](Group& g) { g.state_stride_blocks = 1; }},
      {"opaque_bytes", "is 1", [](Group& g) { g.opaque_bytes = 1; }},
      {"reserved", "is 1", [](Group& g) { g.reserved = 1; }},
  };
  for (const auto& one : cases) ExpectInvalid(Bent(one.bend), one.field, one.value);
}

TEST(LayoutTest, MessageSaysWhichGroup) {
  Layout layout = SampleLayout();
  layout.groups.push_back(SampleGroup());
  layout.groups[1].layers = 0;
  ExpectInvalid(layout, "layout.groups[1].layers", "is 0");
}

TEST(LayoutTest, RecurrentStateIsAFailedPrecondition) {
  const Layout layout = Bent([](Group& g) { g.kind = GroupKind::kRecurrentState; });
  EXPECT_EQ(ValidateLayout(layout).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(ValidateLayout(layout).message()), HasSubstr("kind is 5"));
}

TEST(LayoutTest, HeadsAreAMultipleOfSlicesWhereSlicesCut) {
  for (GroupKind kind :
       {GroupKind::kFull, GroupKind::kSlidingWindow, GroupKind::kChunked, GroupKind::kDraft}) {
    Layout layout = Bent([kind](Group& g) {
      g.kind = kind;
      const bool window = kind == GroupKind::kSlidingWindow || kind == GroupKind::kChunked;
      g.window_tokens = window ? 64 : 0;
    });
    layout.slices = 8;
    EXPECT_TRUE(ValidateLayout(layout).ok()) << ValidateLayout(layout);
    layout.slices = 3;
    ExpectInvalid(layout, "kv_heads", "is 8");
    layout.slices = 16;
    ExpectInvalid(layout, "kv_heads", "is 8");
  }
}

TEST(LayoutTest, LatentAndIndexerHaveOneSliceWhateverSlicesSays) {
  for (GroupKind kind : {GroupKind::kLatent, GroupKind::kIndexer}) {
    Layout layout = LatentLayout();
    layout.groups[0].kind = kind;
    layout.slices = 8;
    EXPECT_TRUE(ValidateLayout(layout).ok()) << ValidateLayout(layout);
    EXPECT_EQ(SlicesOf(layout, layout.groups[0]), 1u);
  }
}

TEST(LayoutTest, LatentHasOneHeadAndNoValue) {
  Layout layout = LatentLayout();
  layout.groups[0].kv_heads = 2;
  ExpectInvalid(layout, "kv_heads", "is 2");
  layout = LatentLayout();
  layout.groups[0].value_dim = 1;
  ExpectInvalid(layout, "value_dim", "is 1");
  layout = LatentLayout();
  layout.groups[0].key_dim = 0;
  ExpectInvalid(layout, "key_dim", "is 0");
}

TEST(LayoutTest, OneOfTheDimsMayBeZeroButNotBoth) {
  EXPECT_TRUE(ValidateLayout(Bent([](Group& g) { g.value_dim = 0; })).ok());
  EXPECT_TRUE(ValidateLayout(Bent([](Group& g) { g.key_dim = 0; })).ok());
  ExpectInvalid(Bent([](Group& g) { g.key_dim = g.value_dim = 0; }), "key_dim", "is 0");
}

TEST(LayoutTest, WindowBelongsToSlidingAndChunkedOnly) {
  ExpectInvalid(Bent([](Group& g) { g.window_tokens = 1; }), "window_tokens", "is 1");
  for (GroupKind kind : {GroupKind::kSlidingWindow, GroupKind::kChunked}) {
    Layout layout = Bent([kind](Group& g) { g.kind = kind; });
    ExpectInvalid(layout, "window_tokens", "is 0");
    layout.groups[0].window_tokens = 1024;
    EXPECT_TRUE(ValidateLayout(layout).ok()) << ValidateLayout(layout);
    layout.groups[0].window_tokens = UINT32_MAX;
    ExpectInvalid(layout, "window_tokens", "is 4294967295");
  }
}

TEST(LayoutTest, IntegersNeedScalesAndFloatsMayHaveThem) {
  for (Dtype dtype : {Dtype::kInt8, Dtype::kInt4}) {
    Layout layout = Bent([dtype](Group& g) { g.dtype = dtype; });
    ExpectInvalid(layout, "scales", "is 0");
    layout.groups[0].scales = ScaleKind::kPerHead;
    EXPECT_TRUE(ValidateLayout(layout).ok()) << ValidateLayout(layout);
  }
  for (Dtype dtype : {Dtype::kFloat16, Dtype::kBfloat16, Dtype::kFloat32, Dtype::kFloat8E4m3fn}) {
    for (ScaleKind scales : {ScaleKind::kNone, ScaleKind::kPerHead, ScaleKind::kPerTokenAndHead}) {
      const Layout layout = Bent([&](Group& g) {
        g.dtype = dtype;
        g.scales = scales;
      });
      EXPECT_TRUE(ValidateLayout(layout).ok()) << ValidateLayout(layout);
    }
  }
}

TEST(LayoutTest, OpaqueHasBytesAndNoScales) {
  Layout layout = OpaqueLayout();
  layout.groups[0].opaque_bytes = 0;
  ExpectInvalid(layout, "opaque_bytes", "is 0");
  layout.groups[0].opaque_bytes = kOpaqueBytesMax + 1;
  ExpectInvalid(layout, "opaque_bytes", "is 16777217");
  layout = OpaqueLayout();
  layout.groups[0].scales = ScaleKind::kPerHead;
  ExpectInvalid(layout, "scales", "is 1");
  layout = OpaqueLayout();
  layout.groups[0].kv_heads = layout.groups[0].key_dim = layout.groups[0].value_dim = 0;
  EXPECT_TRUE(ValidateLayout(layout).ok()) << ValidateLayout(layout);
}

TEST(LayoutTest, ABlockHasABoundOnItsBytes) {
  Layout layout = OpaqueLayout();
  layout.block_tokens = 16;
  layout.groups[0].layers = 1;
  layout.groups[0].opaque_bytes = 1 << 24;
  EXPECT_EQ(BlockBytes(layout), kBlockBytesMax);
  EXPECT_TRUE(ValidateLayout(layout).ok()) << ValidateLayout(layout);
  layout.groups[0].layers = 2;
  ExpectInvalid(layout, "bytes of a block", "is 536870912");
  layout.groups[0].layers = 1;
  layout.block_tokens = 17;
  ExpectInvalid(layout, "bytes of a segment", "is 285212672");
}

TEST(LayoutTest, ABlockHasABoundOnItsSegments) {
  Layout layout = Bent([](Group& g) {
    g.layers = 64;
    g.kv_heads = 1024;
    g.key_dim = 1;
    g.value_dim = 0;
  });
  layout.slices = 1024;
  EXPECT_TRUE(ValidateLayout(layout).ok()) << ValidateLayout(layout);
  layout.groups[0].layers = 65;
  ExpectInvalid(layout, "segments of a block", "is 66560");
}

TEST(LayoutTest, HostileLargestFieldsAreRefusedWithoutOverflow) {
  Layout layout = Bent([](Group& g) {
    g.layers = kLayersMax;
    g.kv_heads = kKvHeadsMax;
    g.key_dim = g.value_dim = kHeadDimMax;
    g.dtype = Dtype::kFloat32;
    g.scales = ScaleKind::kPerTokenAndHead;
  });
  layout.block_tokens = kBlockTokensMax;
  ExpectInvalid(layout, "bytes of a segment", "");
  layout.groups.assign(kGroupsMax, layout.groups[0]);
  EXPECT_EQ(ValidateLayout(layout).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace cairn
