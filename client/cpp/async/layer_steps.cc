#include "client/cpp/async/layer_steps.h"

#include <algorithm>
#include <map>
#include <utility>

namespace cairn {
namespace {

// 0: all.
uint32_t WindowBlocks(const Layout& layout, uint32_t group) {
  const GroupKind kind = layout.groups[group].kind;
  if (kind != GroupKind::kSlidingWindow && kind != GroupKind::kChunked) return 0;
  const uint32_t tokens = layout.groups[group].window_tokens;
  return tokens / layout.block_tokens + (tokens % layout.block_tokens == 0 ? 0 : 1);
}

}  // namespace

absl::StatusOr<std::vector<LayerStep>> StepsByLayer(const PayloadMap& map,
                                                    absl::Span<const PartLayers> parts,
                                                    uint32_t layers_at_once) {
  const absl::StatusOr<SegmentSelection> selection = SegmentSelection::Make(map, parts);
  if (!selection.ok()) return selection.status();
  uint32_t most = 0;
  for (const PartLayers& part : selection->parts()) most = std::max(most, part.layers);
  const uint32_t step = layers_at_once == 0 ? most : std::min(layers_at_once, most);
  std::vector<LayerStep> steps;
  for (uint32_t first = 0; first < most; first += step) {
    LayerStep& together = steps.emplace_back();
    for (const PartLayers& part : selection->parts()) {
      if (first >= part.layers) continue;
      together.parts.push_back({.group = part.group,
                                .slice = part.slice,
                                .first_layer = part.first_layer + first,
                                .layers = std::min(step, part.layers - first)});
    }
  }
  return steps;
}

absl::StatusOr<std::vector<LayerStep>> LoadStepsByLayer(const PayloadMap& map,
                                                        absl::Span<const PartLayers> parts,
                                                        uint32_t layers_at_once) {
  const absl::StatusOr<std::vector<LayerStep>> by_layer = StepsByLayer(map, parts, layers_at_once);
  if (!by_layer.ok()) return by_layer.status();
  std::vector<LayerStep> steps;
  for (const LayerStep& together : *by_layer) {
    std::map<uint32_t, LayerStep> by_window;
    for (const PartLayers& part : together.parts) {
      by_window[WindowBlocks(map.layout(), part.group)].parts.push_back(part);
    }
    for (auto& [window_blocks, step] : by_window) {
      step.window_blocks = window_blocks;
      steps.push_back(std::move(step));
    }
  }
  return steps;
}

absl::Status CheckSteps(const PayloadMap& map, absl::Span<const LayerStep> steps) {
  if (steps.empty()) return absl::InvalidArgumentError("a transfer needs at least one step");
  std::vector<PartLayers> all;
  for (const LayerStep& step : steps) {
    if (step.parts.empty())
      return absl::InvalidArgumentError("a step of a transfer names no layers");
    all.insert(all.end(), step.parts.begin(), step.parts.end());
  }
  return SegmentSelection::Make(map, all).status();
}

}  // namespace cairn
