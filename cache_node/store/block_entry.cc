#include "cache_node/store/block_entry.h"

#include <algorithm>

#include "cache_node/store/block_families.h"
#include "cache_node/store/namespace_table.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

// An entry's share of the index, its family, the policy's state and the slot tables.
constexpr uint64_t kContainerBytes = 320;

}  // namespace

BlockEntry::BlockEntry(const PayloadMap& map_in, absl::Span<const uint32_t> tokens_in)
    : map(&map_in),
      index_bytes(IndexBytes(map_in, tokens_in.size())),
      segments(std::make_unique<SegmentState[]>(map_in.segment_count())),
      digests(std::make_unique<uint64_t[]>(map_in.segment_count())),
      layers_committed(std::make_unique<std::atomic<uint32_t>[]>(map_in.parts().size())),
      required_parts_missing(map_in.required_part_count()) {
  CAIRN_CHECK(tokens_in.empty() || tokens_in.size() == map_in.layout().block_tokens);
  CAIRN_CHECK(required_parts_missing > 0);
  if (tokens_in.empty()) return;
  tokens = std::make_unique<uint32_t[]>(tokens_in.size());
  std::copy(tokens_in.begin(), tokens_in.end(), tokens.get());
}

uint64_t BlockEntry::IndexBytes(const PayloadMap& map, size_t tokens) {
  return sizeof(BlockEntry) + kContainerBytes + tokens * sizeof(uint32_t) +
         map.segment_count() * (sizeof(SegmentState) + sizeof(uint64_t)) +
         map.parts().size() * sizeof(uint32_t);
}

bool BlockEntry::MayGo() const {
  return life == Life::kPresent && !held() && !stays() &&
         (children == nullptr || children->holding == 0);
}

bool BlockEntry::SameTokens(absl::Span<const uint32_t> others) const {
  CAIRN_CHECK(HasTokens() && others.size() == map->layout().block_tokens);
  return std::equal(others.begin(), others.end(), tokens.get());
}

bool BlockEntry::SegmentPresent(size_t segment) const {
  if (segment >= map->segment_count()) return false;
  const size_t part = map->PartOfSegment(segment);
  return layers_committed[part].load(std::memory_order_acquire) == map->parts()[part].layers;
}

bool BlockEntry::Readable() const {
  return !revoked.load(std::memory_order_acquire) &&
         name_space->epoch.load(std::memory_order_acquire) == epoch;
}

}  // namespace cairn::node
