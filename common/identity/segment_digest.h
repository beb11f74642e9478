// Digests of cached bytes and of sets of keys, all XXH3-64.
//
// A segment's digest is seeded with what the segment claims to be, so that bytes served under
// another key, group, slice or layer do not verify. Not a defence against a malicious writer.
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "common/base/bytes16.h"
#include "common/identity/payload_map.h"
#include "kernels/byte_hash.h"

namespace cairn {

// The seed that binds a digest to its segment. REQUIRES: group and slice are under 2^16, as those
// of a valid layout are.
uint64_t SegmentDigestSeed(const BlockKey& key, const SegmentId& id);

// Digest of a whole segment, padding included.
uint64_t SegmentDigest(const BlockKey& key, const SegmentId& id, absl::Span<const uint8_t> bytes);

// The same for bytes that arrive in pieces: Update with each, then Digest.
kernels::ByteHasher SegmentHasher(const BlockKey& key, const SegmentId& id);

// Digest of a part from its segments' digests, layers ascending.
uint64_t PartDigest(absl::Span<const uint64_t> segment_digests);

// One key's share of a feed's digest, which is the sum of shares mod 2^64: add it when a key enters
// the set, subtract it when it leaves.
uint64_t FeedKeyDigest(const BlockKey& key);

}  // namespace cairn
