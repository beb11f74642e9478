// What the movers (cache_node/spill) are given to do, and what they report, as values.
//
// Every task that was taken is reported once. Maps live as long as the store.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "cache_node/store/block_pin.h"
#include "cache_node/tiers/disk/disk_tier.h"
#include "cache_node/tiers/disk/disk_types.h"
#include "common/identity/payload_map.h"

namespace cairn::node {

// A block that is to be written into a file. Its number is `id` until it is reported by
// FinishWrites or AbandonWrites.
struct WriteTask {
  uint64_t id = 0;
  DiskBlock block;
  std::shared_ptr<const DiskScope> scope;  // Shared by all tasks of one scope; never changes.
  const PayloadMap* map = nullptr;
};

// From host memory. Let go of the pin after the report: until then the block cannot leave.
struct SpillTask {
  WriteTask write;
  std::vector<uint32_t> tokens;
  BlockPin pin;
};

// From another file, which is about to leave.
struct MoveTask {
  WriteTask write;
  DiskPlace from;
  uint64_t old_sequence = 0;  // Of the record there.
};

// A label that is to be put into the ledger, as it is bound at this epoch of its namespace.
struct NamespaceTask {
  DiskTier::KnownNamespace known;
  uint64_t epoch = 0;
};

struct PlacedBlock {
  uint64_t id = 0;  // Of its WriteTask.
  DiskPlace place;
};

// A file that makes room, and those of its blocks that are to be written again before.
struct ReclaimTask {
  uint64_t file = 0;
  std::vector<MoveTask> moves;
};

// A block that is to be read into a slot. The slot is held until FinishLoad.
struct LoadTask {
  uint64_t id = 0;
  DiskPlace place;
  DiskBlock block;  // As the index knows it; its epoch is not to be compared.
  std::shared_ptr<const DiskScope> scope;
  const PayloadMap* map = nullptr;
  absl::Span<uint8_t> destination;  // map->block_bytes() of them.
};

// Whether a record's digests say that it has the part: one that was not committed when it was
// written has zeros, for its digests and its bytes.
bool RecordHasPart(const PayloadMap::Part& part, absl::Span<const uint64_t> digests);

}  // namespace cairn::node
