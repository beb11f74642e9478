#include "client/cpp/synthetic_payload.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/base/check.h"
#include "common/identity/payload_size.h"
#include "common/identity/segment_digest.h"

namespace cairn {
namespace {

// The stream of 8-byte words of one segment (splitmix64, seeded as its digest is).
class WordStream {
 public:
  WordStream(const BlockKey& key, const SegmentId& id) {
    // The digest's seed takes half of the key; the other half separates keys that share that.
    uint64_t rest = 0;
    std::memcpy(&rest, key.bytes.data() + sizeof(rest), sizeof(rest));
    state_ = SegmentDigestSeed(key, id) ^ rest * kStep;
  }

  uint64_t Next() {
    state_ += kStep;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15ULL;
  uint64_t state_ = 0;
};

void ZeroPadding(const TileSpan& tile, absl::Span<uint8_t> segment) {
  const size_t end = tile.offset + tile.bytes;
  std::memset(segment.data() + end, 0, PadTile(tile.bytes) - tile.bytes);
}

}  // namespace

void FillSyntheticSegment(const PayloadMap& map, const BlockKey& key, const SegmentId& id,
                          absl::Span<uint8_t> out) {
  const SegmentTiles& tiles = map.TilesOfGroup(id.group);
  CAIRN_CHECK(map.FindSegment(id).has_value() && out.size() == tiles.segment_bytes);
  WordStream words(key, id);
  for (size_t at = 0; at < out.size(); at += sizeof(uint64_t)) {
    const uint64_t word = words.Next();
    std::memcpy(out.data() + at, &word, std::min(sizeof(word), out.size() - at));
  }
  for (const TileSpan& tile : {tiles.key_scales, tiles.key, tiles.value_scales, tiles.value}) {
    ZeroPadding(tile, out);
  }
}

bool IsSyntheticSegment(const PayloadMap& map, const BlockKey& key, const SegmentId& id,
                        absl::Span<const uint8_t> bytes) {
  std::vector<uint8_t> expected(bytes.size());
  FillSyntheticSegment(map, key, id, absl::MakeSpan(expected));
  return std::equal(bytes.begin(), bytes.end(), expected.begin());
}

void FillSyntheticBlock(const PayloadMap& map, const BlockKey& key, absl::Span<uint8_t> out) {
  CAIRN_CHECK(out.size() == map.block_bytes());
  for (size_t i = 0; i < map.segment_count(); ++i) {
    FillSyntheticSegment(map, key, map.SegmentAt(i),
                         out.subspan(map.SegmentOffset(i), map.SegmentBytesAt(i)));
  }
}

}  // namespace cairn
