// Synthetic payload: bytes that anyone can compute again from what they claim to be.
//
// For tests, demonstrations and `cairnctl put --generate`. Every segment of every key differs,
// tiles are padded with zeros as the layout wants, and a reader checks what it got without having
// seen what was written. Not the KV of any model. Thread-safe.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "common/base/bytes16.h"
#include "common/identity/payload_map.h"

namespace cairn {

// Fills `out` with the bytes of one segment. REQUIRES: the segment is one of the map's, and
// out.size() is its size.
void FillSyntheticSegment(const PayloadMap& map, const BlockKey& key, const SegmentId& id,
                          absl::Span<uint8_t> out);

// Whether `bytes` are what FillSyntheticSegment gives. REQUIRES as there.
bool IsSyntheticSegment(const PayloadMap& map, const BlockKey& key, const SegmentId& id,
                        absl::Span<const uint8_t> bytes);

// A whole block in slot order (PayloadMap). REQUIRES: out.size() == map.block_bytes().
void FillSyntheticBlock(const PayloadMap& map, const BlockKey& key, absl::Span<uint8_t> out);

}  // namespace cairn
