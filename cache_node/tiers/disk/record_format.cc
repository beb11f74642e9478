#include "cache_node/tiers/disk/record_format.h"

#include <algorithm>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cache_node/tiers/disk/byte_reader.h"
#include "common/base/check.h"
#include "kernels/byte_hash.h"

namespace cairn::node {
namespace {

constexpr uint32_t kMagic = 0x4b52'4243;  // "CBRK"
constexpr uint16_t kHasParent = 1, kParentShared = 2;
constexpr uint16_t kFlagsKnown = kHasParent | kParentShared;
constexpr uint32_t kPlainKeyId = 0;

// Named and padded by hand: written and read as they lie in memory.
struct Preamble {
  uint32_t magic;
  uint16_t version;
  uint16_t flags;
  uint32_t head_bytes;
  uint32_t key_id;
  uint64_t checksum;
};
static_assert(sizeof(Preamble) == 24 && offsetof(Preamble, checksum) == 16);

struct Fixed {
  BlockKey key;
  BlockKey parent;
  BlockKey scope_digest;
  Fingerprint fingerprint;
  uint64_t sequence;
  uint64_t epoch;
  int64_t expires_unix_ms;
  uint64_t payload_bytes;
  uint64_t writer;
  int64_t written_unix_ms;
  uint64_t author;  // Of the block; the fields above are of the record.
  int64_t authored_unix_ms;
  uint32_t depth;
  uint32_t tokens;
  uint32_t extra_bytes;
  uint32_t digests;
  uint16_t tenant_bytes;
  uint16_t adapter_bytes;
  uint16_t salt_bytes;
  uint8_t priority;
  uint8_t zeros[1];  // A round size.
};
static_assert(sizeof(Fixed) == 168 && sizeof(Preamble) + sizeof(Fixed) == kRecordFixedBytes);

uint64_t Checksum(absl::string_view head, DiskPlace place) {
  kernels::ByteHasher hasher(place.file * 0x9e37'79b9'7f4a'7c15 + place.slot);
  hasher.Update(head.data(), offsetof(Preamble, checksum));
  hasher.Update(head.data() + sizeof(Preamble), head.size() - sizeof(Preamble));
  return hasher.Digest();
}

size_t VariableBytes(const Fixed& fixed) {
  return size_t{fixed.tenant_bytes} + fixed.adapter_bytes + fixed.salt_bytes +
         size_t{fixed.tokens} * sizeof(uint32_t) + fixed.extra_bytes +
         size_t{fixed.digests} * sizeof(uint64_t);
}

bool WithinBounds(const Fixed& fixed) {
  return fixed.tenant_bytes <= kFieldBytesMax && fixed.adapter_bytes <= kFieldBytesMax &&
         fixed.salt_bytes <= kFieldBytesMax && fixed.tokens <= kBlockTokensMax &&
         fixed.extra_bytes <= kExtraBytesMax && fixed.digests <= kBlockSegmentsMax &&
         fixed.payload_bytes <= kBlockBytesMax;
}

Fixed FixedOf(const DiskRecord& record) {
  const DiskBlock& block = record.block;
  Fixed fixed{};
  fixed.key = block.key;
  fixed.parent = block.parent.value_or(BlockKey{});
  fixed.scope_digest = record.scope->scope_digest;
  fixed.fingerprint = record.scope->fingerprint;
  fixed.sequence = block.sequence;
  fixed.epoch = block.epoch;
  fixed.expires_unix_ms = block.expires_unix_ms;
  fixed.payload_bytes = block.payload_bytes;
  fixed.writer = record.writer;
  fixed.written_unix_ms = record.written_unix_ms;
  fixed.author = block.provenance.writer;
  fixed.authored_unix_ms = block.provenance.written_unix_ms;
  fixed.depth = block.depth;
  fixed.tokens = static_cast<uint32_t>(record.tokens.size());
  fixed.extra_bytes = static_cast<uint32_t>(record.extra.size());
  fixed.digests = static_cast<uint32_t>(record.digests.size());
  fixed.tenant_bytes = static_cast<uint16_t>(record.scope->tenant.size());
  fixed.adapter_bytes = static_cast<uint16_t>(record.scope->adapter.size());
  fixed.salt_bytes = static_cast<uint16_t>(record.scope->salt.size());
  fixed.priority = block.priority;
  return fixed;
}

template <typename T>
void AppendAll(std::string* out, absl::Span<const T> values) {
  if (values.empty()) return;
  out->append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

template <typename T>
bool ReadAll(ByteReader* reader, size_t count, std::vector<T>* out) {
  absl::string_view bytes;
  if (!reader->ReadBytes(count * sizeof(T), &bytes)) return false;
  out->resize(count);
  if (count > 0) std::memcpy(out->data(), bytes.data(), bytes.size());
  return true;
}

absl::Status Damaged(absl::string_view what) { return absl::DataLossError(what); }

// What can be said before the checksum was computed.
absl::Status CheckPreamble(const Preamble& preamble, size_t value_bytes) {
  if (preamble.magic != kMagic) return Damaged("not a record");
  if (preamble.version != kRecordVersion) {
    return Damaged(
        absl::StrCat("record version ", preamble.version, ", known is ", kRecordVersion));
  }
  if (preamble.head_bytes < kRecordFixedBytes || preamble.head_bytes > kRecordHeadBytesMax ||
      preamble.head_bytes > value_bytes) {
    return Damaged(absl::StrCat("a head of ", preamble.head_bytes, " bytes in ", value_bytes));
  }
  return absl::OkStatus();
}

absl::Status CheckFixed(const Preamble& preamble, const Fixed& fixed, size_t value_bytes,
                        const BlockKey& key) {
  if ((preamble.flags & ~kFlagsKnown) != 0) {
    return Damaged(absl::StrCat("unknown flags ", preamble.flags));
  }
  if (preamble.key_id != kPlainKeyId) {
    return Damaged(absl::StrCat("encrypted under key ", preamble.key_id, ", none is known"));
  }
  if (!WithinBounds(fixed) || VariableBytes(fixed) != preamble.head_bytes - kRecordFixedBytes) {
    return Damaged("lengths that do not add up");
  }
  if (fixed.payload_bytes != value_bytes - preamble.head_bytes) {
    return Damaged(absl::StrCat(value_bytes - preamble.head_bytes, " bytes of payload, not ",
                                fixed.payload_bytes));
  }
  const bool zeros = std::all_of(std::begin(fixed.zeros), std::end(fixed.zeros),
                                 [](uint8_t byte) { return byte == 0; });
  if (!zeros || ((preamble.flags & kHasParent) == 0 && fixed.parent != BlockKey{})) {
    return Damaged("bytes that should be zero");
  }
  if (fixed.key != key) return Damaged("another block's record");
  return absl::OkStatus();
}

void SetFields(const Preamble& preamble, const Fixed& fixed, DiskRecordFields* fields) {
  DiskBlock& block = fields->block;
  block.key = fixed.key;
  block.parent = std::nullopt;
  if ((preamble.flags & kHasParent) != 0) block.parent = fixed.parent;
  block.parent_shared = (preamble.flags & kParentShared) != 0;
  block.depth = fixed.depth;
  block.sequence = fixed.sequence;
  block.epoch = fixed.epoch;
  block.expires_unix_ms = fixed.expires_unix_ms;
  block.priority = fixed.priority;
  block.payload_bytes = fixed.payload_bytes;
  block.provenance = {.writer = fixed.author, .written_unix_ms = fixed.authored_unix_ms};
  fields->scope.fingerprint = fixed.fingerprint;
  fields->scope.scope_digest = fixed.scope_digest;
  fields->writer = fixed.writer;
  fields->written_unix_ms = fixed.written_unix_ms;
}

}  // namespace

size_t RecordHeadBytes(const DiskRecord& record) {
  return kRecordFixedBytes + VariableBytes(FixedOf(record));
}

void AppendRecordHead(const DiskRecord& record, DiskPlace place, std::string* out) {
  CAIRN_CHECK(record.scope != nullptr);
  CAIRN_CHECK(record.block.payload_bytes == record.payload.size());
  const Fixed fixed = FixedOf(record);
  CAIRN_CHECK(WithinBounds(fixed) && record.scope->tenant.size() <= kFieldBytesMax &&
              record.scope->adapter.size() <= kFieldBytesMax &&
              record.scope->salt.size() <= kFieldBytesMax);
  const size_t start = out->size();
  Preamble preamble{};
  preamble.magic = kMagic;
  preamble.version = kRecordVersion;
  preamble.flags = static_cast<uint16_t>((record.block.parent.has_value() ? kHasParent : 0) |
                                         (record.block.parent_shared ? kParentShared : 0));
  preamble.head_bytes = static_cast<uint32_t>(kRecordFixedBytes + VariableBytes(fixed));
  preamble.key_id = kPlainKeyId;
  AppendBytesOf(out, preamble);
  AppendBytesOf(out, fixed);
  out->append(record.scope->tenant);
  out->append(record.scope->adapter);
  out->append(record.scope->salt);
  AppendAll(out, record.tokens);
  AppendAll(out, record.extra);
  AppendAll(out, record.digests);
  CAIRN_CHECK(out->size() - start == preamble.head_bytes);
  preamble.checksum = Checksum(absl::string_view(*out).substr(start), place);
  std::memcpy(out->data() + start, &preamble, sizeof(preamble));
}

absl::StatusOr<absl::string_view> ParseRecord(absl::string_view value, DiskPlace place,
                                              const BlockKey& key, DiskRecordFields* fields) {
  ByteReader reader(value);
  Preamble preamble;
  Fixed fixed;
  if (!reader.Read(&preamble) || !reader.Read(&fixed)) {
    return Damaged(absl::StrCat("a record of ", value.size(), " bytes"));
  }
  if (absl::Status status = CheckPreamble(preamble, value.size()); !status.ok()) return status;
  if (Checksum(value.substr(0, preamble.head_bytes), place) != preamble.checksum) {
    return Damaged("checksum of the head");
  }
  if (absl::Status status = CheckFixed(preamble, fixed, value.size(), key); !status.ok()) {
    return status;
  }
  SetFields(preamble, fixed, fields);
  const bool complete = reader.ReadString(fixed.tenant_bytes, &fields->scope.tenant) &&
                        reader.ReadString(fixed.adapter_bytes, &fields->scope.adapter) &&
                        reader.ReadString(fixed.salt_bytes, &fields->scope.salt) &&
                        ReadAll(&reader, fixed.tokens, &fields->tokens) &&
                        ReadAll(&reader, fixed.extra_bytes, &fields->extra) &&
                        ReadAll(&reader, fixed.digests, &fields->digests);
  CAIRN_CHECK(complete && reader.remaining() == fixed.payload_bytes);  // CheckFixed has added up.
  return value.substr(preamble.head_bytes);
}

}  // namespace cairn::node
