#include "common/identity/segment_digest.h"

#include <bit>
#include <cstring>

#include "common/base/check.h"

namespace cairn {

static_assert(std::endian::native == std::endian::little, "keys and digests are read as u64le");

uint64_t SegmentDigestSeed(const BlockKey& key, const SegmentId& id) {
  CAIRN_CHECK(id.group <= UINT16_MAX);
  CAIRN_CHECK(id.slice <= UINT16_MAX);
  uint64_t key_start = 0;
  std::memcpy(&key_start, key.bytes.data(), sizeof(key_start));
  return key_start ^ (uint64_t{id.group} << 48 | uint64_t{id.slice} << 32 | id.layer);
}

uint64_t SegmentDigest(const BlockKey& key, const SegmentId& id, absl::Span<const uint8_t> bytes) {
  return kernels::ByteHash64(bytes.data(), bytes.size(), SegmentDigestSeed(key, id));
}

kernels::ByteHasher SegmentHasher(const BlockKey& key, const SegmentId& id) {
  return kernels::ByteHasher(SegmentDigestSeed(key, id));
}

uint64_t PartDigest(absl::Span<const uint64_t> segment_digests) {
  return kernels::ByteHash64(segment_digests.data(), segment_digests.size() * sizeof(uint64_t), 0);
}

uint64_t FeedKeyDigest(const BlockKey& key) {
  return kernels::ByteHash64(key.bytes.data(), key.bytes.size(), 0);
}

}  // namespace cairn
