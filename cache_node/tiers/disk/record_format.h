// How a record lies on disk: a head, then the payload to the end of the value.
//
// Head, little-endian: magic, version, flags, head bytes, key id, checksum; then the fixed fields;
// then tenant, adapter, salt, tokens, extra and digests, whose lengths are fixed fields. The
// checksum (XXH3-64) covers the head but for itself and is seeded with the place, file * the golden
// ratio's 64 bits + slot, so that a head read from another place is damage. It does not cover the
// payload: the checksum of RocksDB's block does, on disk, and the digests, which are in the head,
// do so on the way to the reader.
//
// The key id is room for encryption at rest: 0 says that the payload is plain, the only value that
// this version knows.
//
// Bytes from disk are not trusted: whatever they are, parsing gives a record of the place and key
// that were asked for, or DATA_LOSS that says what is wrong. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cache_node/tiers/disk/disk_types.h"
#include "common/identity/extra.h"
#include "common/identity/frame.h"
#include "common/identity/layout.h"

namespace cairn::node {

inline constexpr uint16_t kRecordVersion = 2;
inline constexpr size_t kRecordFixedBytes = 192;
inline constexpr size_t kRecordHeadBytesMax = kRecordFixedBytes + 3 * kFieldBytesMax +
                                              kBlockTokensMax * sizeof(uint32_t) + kExtraBytesMax +
                                              kBlockSegmentsMax * sizeof(uint64_t);

// Head bytes of this record.
size_t RecordHeadBytes(const DiskRecord& record);

// REQUIRES: the fields are within the bounds of common/identity, and payload_bytes says the truth.
void AppendRecordHead(const DiskRecord& record, DiskPlace place, std::string* out);

// The payload, which is part of `value`; the rest goes into `fields`.
absl::StatusOr<absl::string_view> ParseRecord(absl::string_view value, DiskPlace place,
                                              const BlockKey& key, DiskRecordFields* fields);

}  // namespace cairn::node
