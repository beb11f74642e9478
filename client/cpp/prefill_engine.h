// PrefillEngine: what a ModelWorker needs of an inference engine, for one prompt.
//
// Implemented by the engine's side, and by replays. Calls come from the thread that runs the
// worker, one at a time. Memory that it names is its own and stays until the worker is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cpp/prompt.h"
#include "common/identity/payload_map.h"

namespace cairn {

class PrefillEngine {
 public:
  virtual ~PrefillEngine() = default;

  // From here on this form of the prompt counts: the same tokens under other keys, and nothing is
  // in its place yet. For engines whose places or bytes depend on keys. It outlives the request.
  virtual void UsePrompt(const Prompt& /*prompt*/) {}

  // Where a segment of the prompt's block is to lie: exactly its size. As SegmentPlace
  // (segment_buffers.h).
  virtual absl::Span<uint8_t> PlaceOf(size_t block, const SegmentId& id) = 0;

  // Blocks [0, first_block) are in their places, every byte verified; what lies elsewhere is to be
  // ignored. Computes the rest of the prompt, as this replica's model worker. The time it took, or
  // zero when that says nothing about the worker's speed. An error is the request's.
  virtual absl::StatusOr<absl::Duration> Compute(const std::string& worker_address,
                                                 size_t first_block) = 0;

  // Bytes of a segment that Compute made: exactly its size. As SegmentSource.
  virtual absl::Span<const uint8_t> BytesOf(size_t block, const SegmentId& id) = 0;
};

}  // namespace cairn
