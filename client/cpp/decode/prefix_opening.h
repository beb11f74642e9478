// Opening a prefix for decode the cheaper way: served by the nodes that hold it, or fetched.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cpp/decode/decode_cost.h"
#include "client/cpp/decode/decode_session.h"
#include "client/cpp/segment_buffers.h"

namespace cairn {

enum class WayChoice { kByCost, kServe, kFetch };

struct OpeningWish {
  WayChoice choice = WayChoice::kByCost;
  // What is to come, and rates; the opening fills in what session and parts say themselves.
  DecodeCostInputs cost;
};

struct PrefixOpening {
  DecodeWay way = DecodeWay::kServe;
  DecodeCost cost;  // Also where the way was chosen otherwise.
  // With kFetch: of all parts, verified.
  uint64_t fetched_blocks = 0;
  uint64_t fetched_bytes = 0;
  // Why it is served though fetching was the cheaper: what the holders said.
  absl::Status fetch_status;
};

// Opens `sequence` over `parts`. Where it is fetched, `place` gets the segments of the session's
// slices, by index of the block in the prompt, and all tokens of the sequence are the caller's own.
// A fetch by cost that fails is served instead; one that was asked for is an error. Errors of an
// opening are those of DecodeSession::Open. Fetching takes holders with both clients.
absl::StatusOr<PrefixOpening> OpenPrefix(DecodeSession* session, uint64_t sequence,
                                         const Prompt& prompt, absl::Span<const PartWish> parts,
                                         const OpeningWish& wish, SegmentPlace place);

}  // namespace cairn
