// What a block is on disk, as plain values: where it lies, and what is kept beside its payload.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "cache_node/tiers/provenance.h"
#include "common/base/bytes16.h"
#include "common/identity/fingerprint.h"

namespace cairn::node {

// One record of one file. File numbers rise and are never used again within one directory.
struct DiskPlace {
  uint64_t file = 0;  // 0: none.
  uint32_t slot = 0;  // Position in the file.

  friend bool operator==(const DiskPlace&, const DiskPlace&) = default;
};

// Whose blocks these are; a file keeps each once.
struct DiskScope {
  Fingerprint fingerprint;
  std::string tenant;
  std::string adapter;
  std::string salt;       // Raw bytes.
  BlockKey scope_digest;  // As the store knows the scope within its partition.

  friend bool operator==(const DiskScope&, const DiskScope&) = default;
};

// What the index needs to know of a block without its record: kept in the file's directory too.
struct DiskBlock {
  BlockKey key;
  std::optional<BlockKey> parent;  // None: a prompt's first block.
  bool parent_shared = false;      // The parent may be the public tenant's.
  uint32_t depth = 0;
  uint64_t sequence = 0;        // Order of spills; fences are compared with it.
  uint64_t epoch = 0;           // Of the namespace.
  int64_t expires_unix_ms = 0;  // Wall clock; 0: never.
  uint8_t priority = 0;
  uint64_t payload_bytes = 0;
  Provenance provenance;
};

// A whole record, as it is written. Borrows all; lives for the call.
struct DiskRecord {
  DiskBlock block;
  const DiskScope* scope = nullptr;
  uint64_t writer = 0;  // Incarnation of the node that wrote it.
  int64_t written_unix_ms = 0;
  absl::Span<const uint32_t> tokens;  // block_tokens of them, or empty.
  absl::Span<const uint8_t> extra;
  absl::Span<const uint64_t> digests;  // One a segment, in the order of the payload.
  absl::Span<const uint8_t> payload;   // The whole block, as it lies in a slot.
};

// What a read record says beside its payload.
struct DiskRecordFields {
  DiskBlock block;
  DiskScope scope;
  uint64_t writer = 0;
  int64_t written_unix_ms = 0;
  std::vector<uint32_t> tokens;
  std::vector<uint8_t> extra;
  std::vector<uint64_t> digests;
};

}  // namespace cairn::node
