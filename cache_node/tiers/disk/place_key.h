// Keys of a payload file in RocksDB: records by slot, each directory chunk right behind the record
// of its last entry, the footer last. Big-endian, so that a file is one range of keys.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "cache_node/tiers/disk/disk_types.h"

namespace cairn::node {

inline constexpr size_t kPlaceKeyBytes = 12;
inline constexpr uint32_t kFooterSlot = UINT32_MAX;

std::string RecordKey(DiskPlace place);
// Of the chunk whose last entry is `last`.
std::string ChunkKey(DiskPlace last);
std::string FooterKey(uint64_t file);

// The place in a RecordKey or FooterKey. REQUIRES: kPlaceKeyBytes bytes.
DiskPlace ParseRecordKey(absl::string_view key);

}  // namespace cairn::node
