#include "cache_node/tiers/disk/directory_format.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_node/tiers/disk/byte_reader.h"
#include "common/base/check.h"
#include "common/identity/frame.h"
#include "common/identity/layout.h"
#include "kernels/byte_hash.h"

namespace cairn::node {
namespace {

constexpr uint32_t kChunkMagic = 0x4b44'4243;   // "CBDK"
constexpr uint32_t kFooterMagic = 0x4b46'4243;  // "CBFK"
constexpr uint8_t kHasParent = 1, kParentShared = 2;
constexpr uint8_t kFlagsKnown = kHasParent | kParentShared;

// As they lie on disk.
struct Head {
  uint32_t magic;
  uint16_t version;
  uint16_t zero;
  uint64_t checksum;  // Of all but itself.
  uint32_t first_slot;
  uint32_t scopes;
  uint32_t entries;
  uint32_t zero_too;
};
static_assert(sizeof(Head) == kDirectoryHeadBytes && offsetof(Head, first_slot) == 16);

struct ScopeHead {
  Fingerprint fingerprint;
  BlockKey scope_digest;
  uint16_t tenant_bytes;
  uint16_t adapter_bytes;
  uint16_t salt_bytes;
  uint16_t zero;
};
static_assert(sizeof(ScopeHead) == kDirectoryScopeBytes);

struct EntryBytes {
  BlockKey key;
  BlockKey parent;
  uint64_t sequence;
  uint64_t epoch;
  int64_t expires_unix_ms;
  uint64_t payload_bytes;
  uint64_t writer;
  int64_t written_unix_ms;
  uint32_t depth;
  uint32_t scope;
  uint8_t priority;
  uint8_t flags;
  uint8_t zeros[6];
};
static_assert(sizeof(EntryBytes) == kDirectoryEntryBytes);

uint64_t Checksum(absl::string_view value, uint64_t file, uint32_t first_slot) {
  constexpr size_t kAt = offsetof(Head, checksum), kBehind = offsetof(Head, first_slot);
  kernels::ByteHasher hasher(file * 0x9e37'79b9'7f4a'7c15 + first_slot);
  hasher.Update(value.data(), kAt);
  hasher.Update(value.data() + kBehind, value.size() - kBehind);
  return hasher.Digest();
}

void Seal(Head head, uint64_t file, std::string* value) {
  std::memcpy(value->data(), &head, sizeof(head));
  head.checksum = Checksum(*value, file, head.first_slot);
  std::memcpy(value->data(), &head, sizeof(head));
}

std::string ScopeBytes(const DiskScope& scope) {
  CAIRN_CHECK(scope.tenant.size() <= kFieldBytesMax && scope.adapter.size() <= kFieldBytesMax &&
              scope.salt.size() <= kFieldBytesMax);
  ScopeHead head{};
  head.fingerprint = scope.fingerprint;
  head.scope_digest = scope.scope_digest;
  head.tenant_bytes = static_cast<uint16_t>(scope.tenant.size());
  head.adapter_bytes = static_cast<uint16_t>(scope.adapter.size());
  head.salt_bytes = static_cast<uint16_t>(scope.salt.size());
  std::string bytes;
  AppendBytesOf(&bytes, head);
  absl::StrAppend(&bytes, scope.tenant, scope.adapter, scope.salt);
  return bytes;
}

bool ReadScope(ByteReader* reader, DiskScope* scope) {
  ScopeHead head;
  if (!reader->Read(&head)) return false;
  if (head.tenant_bytes > kFieldBytesMax || head.adapter_bytes > kFieldBytesMax ||
      head.salt_bytes > kFieldBytesMax) {
    return false;
  }
  scope->fingerprint = head.fingerprint;
  scope->scope_digest = head.scope_digest;
  return reader->ReadString(head.tenant_bytes, &scope->tenant) &&
         reader->ReadString(head.adapter_bytes, &scope->adapter) &&
         reader->ReadString(head.salt_bytes, &scope->salt);
}

bool ReadEntry(ByteReader* reader, size_t scopes, DiskTier::RecoveredFile::Entry* entry) {
  EntryBytes bytes;
  if (!reader->Read(&bytes)) return false;
  if (bytes.scope >= scopes || (bytes.flags & ~kFlagsKnown) != 0 ||
      bytes.payload_bytes > kBlockBytesMax) {
    return false;
  }
  entry->scope = bytes.scope;
  entry->block.key = bytes.key;
  if ((bytes.flags & kHasParent) != 0) entry->block.parent = bytes.parent;
  entry->block.parent_shared = (bytes.flags & kParentShared) != 0;
  entry->block.depth = bytes.depth;
  entry->block.sequence = bytes.sequence;
  entry->block.epoch = bytes.epoch;
  entry->block.expires_unix_ms = bytes.expires_unix_ms;
  entry->block.priority = bytes.priority;
  entry->block.payload_bytes = bytes.payload_bytes;
  entry->block.provenance = {.writer = bytes.writer, .written_unix_ms = bytes.written_unix_ms};
  return true;
}

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("the directory: ", what));
}

// The head of a value with this magic, when its checksum is right.
absl::StatusOr<Head> ReadHead(absl::string_view value, uint32_t magic, uint64_t file,
                              uint32_t first_slot) {
  Head head;
  if (!ByteReader(value).Read(&head)) return Damaged(absl::StrCat(value.size(), " bytes"));
  if (head.magic != magic) return Damaged("not what should be here");
  if (head.version != kDirectoryVersion) {
    return Damaged(absl::StrCat("version ", head.version, ", known is ", kDirectoryVersion));
  }
  if (head.first_slot != first_slot || head.checksum != Checksum(value, file, first_slot)) {
    return Damaged("checksum");
  }
  return head;
}

}  // namespace

void DirectoryWriter::Add(const DiskScope& scope, const DiskBlock& block) {
  CAIRN_CHECK(!chunk_is_full());
  std::string scope_bytes = ScopeBytes(scope);
  const auto [it, is_new] = scopes_.try_emplace(scope_bytes, static_cast<uint32_t>(scopes_.size()));
  if (is_new) {
    scope_bytes_.append(scope_bytes);
    ++new_scopes_;
  }
  EntryBytes bytes{};
  bytes.key = block.key;
  bytes.parent = block.parent.value_or(BlockKey{});
  bytes.sequence = block.sequence;
  bytes.epoch = block.epoch;
  bytes.expires_unix_ms = block.expires_unix_ms;
  bytes.payload_bytes = block.payload_bytes;
  bytes.writer = block.provenance.writer;
  bytes.written_unix_ms = block.provenance.written_unix_ms;
  bytes.depth = block.depth;
  bytes.scope = it->second;
  bytes.priority = block.priority;
  bytes.flags = static_cast<uint8_t>((block.parent.has_value() ? kHasParent : 0) |
                                     (block.parent_shared ? kParentShared : 0));
  AppendBytesOf(&entry_bytes_, bytes);
  ++entries_;
}

size_t DirectoryWriter::chunk_bytes() const {
  return kDirectoryHeadBytes + scope_bytes_.size() + entry_bytes_.size();
}

std::string DirectoryWriter::TakeChunk() {
  CAIRN_CHECK(entries_ > 0);
  Head head{};
  head.magic = kChunkMagic;
  head.version = kDirectoryVersion;
  head.first_slot = first_slot_;
  head.scopes = new_scopes_;
  head.entries = entries_;
  std::string value(kDirectoryHeadBytes, '\0');
  absl::StrAppend(&value, scope_bytes_, entry_bytes_);
  Seal(head, file_, &value);
  first_slot_ += entries_;
  new_scopes_ = entries_ = 0;
  scope_bytes_.clear();
  entry_bytes_.clear();
  return value;
}

absl::Status ParseDirectoryChunk(absl::string_view value, DiskTier::RecoveredFile* recovered) {
  const absl::StatusOr<Head> head = ReadHead(value, kChunkMagic, recovered->file,
                                             static_cast<uint32_t>(recovered->entries.size()));
  if (!head.ok()) return head.status();
  ByteReader reader(value.substr(kDirectoryHeadBytes));
  if (head->entries == 0 || head->entries > kEntriesPerChunk || head->scopes > head->entries) {
    return Damaged(absl::StrCat(head->entries, " entries, ", head->scopes, " scopes"));
  }
  for (uint32_t i = 0; i < head->scopes; ++i) {
    if (!ReadScope(&reader, &recovered->scopes.emplace_back())) return Damaged("a scope");
  }
  if (reader.remaining() != size_t{head->entries} * kDirectoryEntryBytes) {
    return Damaged("lengths that do not add up");
  }
  recovered->entries.reserve(recovered->entries.size() + head->entries);
  for (uint32_t i = 0; i < head->entries; ++i) {
    if (!ReadEntry(&reader, recovered->scopes.size(), &recovered->entries.emplace_back())) {
      return Damaged("an entry");
    }
  }
  return absl::OkStatus();
}

std::string DirectoryFooter(uint64_t file, uint32_t records) {
  Head head{};
  head.magic = kFooterMagic;
  head.version = kDirectoryVersion;
  head.entries = records;
  std::string value(kDirectoryHeadBytes, '\0');
  Seal(head, file, &value);
  return value;
}

absl::StatusOr<uint32_t> ParseDirectoryFooter(absl::string_view value, uint64_t file) {
  const absl::StatusOr<Head> head = ReadHead(value, kFooterMagic, file, 0);
  if (!head.ok()) return head.status();
  if (value.size() != kDirectoryHeadBytes || head->scopes != 0) return Damaged("the footer");
  return head->entries;
}

}  // namespace cairn::node
