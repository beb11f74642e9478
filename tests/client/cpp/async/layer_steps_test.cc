// A layout of two groups with different layer counts is cut into steps, and bad steps are refused.
#include "client/cpp/async/layer_steps.h"

#include <gmock/gmock.h>

#include "tests/client/cpp/sample_blocks.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

size_t SegmentsIn(const PayloadMap& map, const std::vector<LayerStep>& steps) {
  size_t segments = 0;
  for (const LayerStep& step : steps) {
    segments += SegmentSelection::Make(map, step.parts)->segment_count();
  }
  return segments;
}

class LayerStepsTest : public ::testing::Test {
 protected:
  const NamespaceHandle handle_ = HandleOf(TwoGroups());
  const PayloadMap& map_ = handle_.payload_map();
};

TEST_F(LayerStepsTest, EveryLayerIsInOneStepInOrder) {
  for (const uint32_t at_once : {1u, 2u, 3u, 100u}) {
    const auto steps = StepsByLayer(map_, {}, at_once);
    ASSERT_TRUE(steps.ok()) << steps.status();
    EXPECT_TRUE(CheckSteps(map_, *steps).ok());
    EXPECT_EQ(SegmentsIn(map_, *steps), map_.segment_count());
    for (size_t i = 0; i < steps->size(); ++i) {
      for (const PartLayers& part : (*steps)[i].parts) EXPECT_EQ(part.first_layer, i * at_once);
    }
  }
}

TEST_F(LayerStepsTest, ZeroAtOnceIsOneStep) { EXPECT_THAT(*StepsByLayer(map_, {}, 0), SizeIs(1)); }

TEST_F(LayerStepsTest, PartsAreKept) {
  const PartLayers part{.group = 0, .slice = 0, .first_layer = 1, .layers = 1};
  EXPECT_THAT(*StepsByLayer(map_, {&part, 1}, 1), ::testing::ElementsAre(LayerStep{{part}}));
}

TEST_F(LayerStepsTest, ALoadTakesOfASlidingGroupTheBlocksOfItsWindow) {
  Namespace fields = TwoGroups();
  Group& second = fields.layout.groups[1];
  second.kind = GroupKind::kSlidingWindow;
  second.window_tokens = 2 * fields.layout.block_tokens + 1;
  const NamespaceHandle handle = HandleOf(fields);
  const auto steps = LoadStepsByLayer(handle.payload_map(), {}, 1);
  ASSERT_TRUE(steps.ok()) << steps.status();
  EXPECT_TRUE(CheckSteps(handle.payload_map(), *steps).ok());
  EXPECT_EQ(SegmentsIn(handle.payload_map(), *steps), handle.payload_map().segment_count());
  for (const LayerStep& step : *steps) {
    for (const PartLayers& part : step.parts) {
      EXPECT_EQ(step.window_blocks, part.group == 1 ? 3u : 0u);
    }
  }
}

TEST_F(LayerStepsTest, WhatIsNotThereOrThereTwiceIsRefused) {
  const PartLayers part{.group = 9};
  EXPECT_THAT(StepsByLayer(map_, {&part, 1}, 1).status().message(), HasSubstr("no such part"));
  EXPECT_FALSE(CheckSteps(map_, {}).ok());
  EXPECT_FALSE(CheckSteps(map_, {LayerStep{}}).ok());
  const LayerStep first = {{{.group = 0, .slice = 0, .first_layer = 0, .layers = 1}}};
  EXPECT_THAT(CheckSteps(map_, {first, first}).message(), HasSubstr("twice"));
}

}  // namespace
}  // namespace cairn::testing
