// How a file says what is in it: directory chunks of a bounded number of entries, and a footer.
//
// Chunk, little-endian: magic, version, checksum, then scopes that no chunk of the file before it
// has listed, then entries of one size in the order of their slots. An entry names its scope by its
// number among all that the file has listed so far. The footer says how many records there are.
// Checksums (XXH3-64 of all but themselves) are seeded as a record's, with the chunk's first slot.
// Recovery reads nothing else of a file.
//
// Bytes from disk are not trusted: parsing gives what was written at that place, or DATA_LOSS that
// says what is wrong. Parsing and the footer are thread-safe; DirectoryWriter is not.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cache_node/tiers/disk/disk_tier.h"
#include "cache_node/tiers/disk/disk_types.h"

namespace cairn::node {

inline constexpr uint16_t kDirectoryVersion = 2;
inline constexpr uint32_t kEntriesPerChunk = 8192;
inline constexpr size_t kDirectoryEntryBytes = 96;
inline constexpr size_t kDirectoryHeadBytes = 32;
// Beside its three strings.
inline constexpr size_t kDirectoryScopeBytes = 56;

// Collects entries and gives them back chunk by chunk.
class DirectoryWriter {
 public:
  explicit DirectoryWriter(uint64_t file) : file_(file) {}

  void Add(const DiskScope& scope, const DiskBlock& block);

  // Entries in all chunks, taken or not.
  uint32_t entries() const { return first_slot_ + entries_; }
  bool chunk_is_full() const { return entries_ == kEntriesPerChunk; }
  bool chunk_is_empty() const { return entries_ == 0; }
  // What the chunk takes that is collected now.
  size_t chunk_bytes() const;
  // Ends the chunk: its bytes, to be kept at the place of its last entry. REQUIRES: not empty.
  std::string TakeChunk();

 private:
  const uint64_t file_;
  absl::flat_hash_map<std::string, uint32_t> scopes_;  // A scope's bytes -> its number.
  uint32_t first_slot_ = 0;
  uint32_t new_scopes_ = 0;
  uint32_t entries_ = 0;
  std::string scope_bytes_;
  std::string entry_bytes_;
};

// Adds the chunk that begins at slot recovered->entries.size() of recovered->file. On an error
// `recovered` may hold a part of it.
absl::Status ParseDirectoryChunk(absl::string_view value, DiskTier::RecoveredFile* recovered);

// What the footer of a file of `records` records holds, and back.
std::string DirectoryFooter(uint64_t file, uint32_t records);
absl::StatusOr<uint32_t> ParseDirectoryFooter(absl::string_view value, uint64_t file);

}  // namespace cairn::node
