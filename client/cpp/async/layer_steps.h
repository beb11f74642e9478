// Steps of layer-wise transfers: which layers go together.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cpp/async/transfer_types.h"
#include "client/cpp/segment_selection.h"
#include "common/identity/payload_map.h"

namespace cairn {

// Of a store: `parts` (empty: all of the layout), cut so that step i has the layers [i*n, (i+1)*n)
// of each, n being `layers_at_once`; 0: one step of everything. As SegmentSelection::Make for bad
// parts.
absl::StatusOr<std::vector<LayerStep>> StepsByLayer(const PayloadMap& map,
                                                    absl::Span<const PartLayers> parts,
                                                    uint32_t layers_at_once);

// Of a load: the same, and of sliding and chunked groups only the blocks that a window, or a chunk,
// can reach; where groups differ in that, a step each.
absl::StatusOr<std::vector<LayerStep>> LoadStepsByLayer(const PayloadMap& map,
                                                        absl::Span<const PartLayers> parts,
                                                        uint32_t layers_at_once);

// INVALID_ARGUMENT for no step, an empty one, and what SegmentSelection::Make refuses, also across
// steps.
absl::Status CheckSteps(const PayloadMap& map, absl::Span<const LayerStep> steps);

}  // namespace cairn
