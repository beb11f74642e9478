// Promises held against every input: whatever the bytes, parsing fails with DATA_LOSS or gives
// values that are within their bounds and come out of writing and parsing them again unchanged; a
// record is of the key that was asked for, and is what writing it gives, byte for byte. Values are
// heap blocks of exactly their size, so that the address sanitizer sees a read past them.
#include "tests/fuzz/disk_format_fuzz.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "cache_node/tiers/disk/directory_format.h"
#include "cache_node/tiers/disk/ledger_format.h"
#include "cache_node/tiers/disk/record_format.h"
#include "common/base/check.h"
#include "google/protobuf/stubs/logging.h"
#include "kernels/byte_hash.h"
#include "tests/cache_node/tiers/disk/numbered_record.h"
#include "tests/testing/identity_samples.h"

namespace cairn::testing {
namespace {

using node::DiskPlace;
using node::DiskRecord;
using node::DiskRecordFields;
using node::DiskTier;

constexpr DiskPlace kPlace{7, 3};
constexpr uint64_t kSeedFactor = 0x9e37'79b9'7f4a'7c15;

// As the formats say it: a record's checksum lies at 16 and covers its head but for itself.
void MendRecord(std::string* value) {
  uint32_t head_bytes = 0;
  if (value->size() < 24) return;
  std::memcpy(&head_bytes, value->data() + 8, sizeof(head_bytes));
  if (head_bytes < 24 || head_bytes > value->size()) return;
  kernels::ByteHasher hasher(kPlace.file * kSeedFactor + kPlace.slot);
  hasher.Update(value->data(), 16);
  hasher.Update(value->data() + 24, head_bytes - 24);
  const uint64_t checksum = hasher.Digest();
  std::memcpy(value->data() + 16, &checksum, sizeof(checksum));
}

// A directory's lies at 8 and covers all but itself.
void MendDirectory(std::string* value) {
  if (value->size() < 16) return;
  kernels::ByteHasher hasher(kPlace.file * kSeedFactor);
  hasher.Update(value->data(), 8);
  hasher.Update(value->data() + 16, value->size() - 16);
  const uint64_t checksum = hasher.Digest();
  std::memcpy(value->data() + 8, &checksum, sizeof(checksum));
}

// The key that a record says it has, so that parsing asks for it.
BlockKey KeyIn(absl::string_view value) {
  BlockKey key;
  if (value.size() >= 24 + kKeyBytes) std::memcpy(key.bytes.data(), value.data() + 24, kKeyBytes);
  return key;
}

bool RunRecord(absl::string_view value) {
  const BlockKey key = KeyIn(value);
  DiskRecordFields fields;
  const absl::StatusOr<absl::string_view> payload = ParseRecord(value, kPlace, key, &fields);
  if (!payload.ok()) {
    CAIRN_CHECK(absl::IsDataLoss(payload.status()));
    return false;
  }
  CAIRN_CHECK(fields.block.key == key && payload->size() == fields.block.payload_bytes);
  DiskRecord record;
  record.block = fields.block;
  record.scope = &fields.scope;
  record.writer = fields.writer;
  record.written_unix_ms = fields.written_unix_ms;
  record.tokens = fields.tokens;
  record.extra = fields.extra;
  record.digests = fields.digests;
  record.payload = {reinterpret_cast<const uint8_t*>(payload->data()), payload->size()};
  std::string again;
  AppendRecordHead(record, kPlace, &again);
  CAIRN_CHECK(again.size() == RecordHeadBytes(record));
  CAIRN_CHECK(again + std::string(*payload) == value);
  BlockKey other = key;
  other.bytes[0] ^= 1;
  CAIRN_CHECK(absl::IsDataLoss(ParseRecord(value, kPlace, other, &fields).status()));
  CAIRN_CHECK(absl::IsDataLoss(ParseRecord(value, {7, 4}, key, &fields).status()));
  return true;
}

bool SameEntries(const DiskTier::RecoveredFile& a, const DiskTier::RecoveredFile& b) {
  if (a.entries.size() != b.entries.size()) return false;
  for (size_t i = 0; i < a.entries.size(); ++i) {
    const node::DiskBlock& x = a.entries[i].block;
    const node::DiskBlock& y = b.entries[i].block;
    if (!(a.scopes.at(a.entries[i].scope) == b.scopes.at(b.entries[i].scope))) return false;
    if (x.key != y.key || x.parent != y.parent || x.sequence != y.sequence ||
        x.payload_bytes != y.payload_bytes || x.expires_unix_ms != y.expires_unix_ms) {
      return false;
    }
  }
  return true;
}

bool RunChunk(absl::string_view value) {
  DiskTier::RecoveredFile parsed, again;
  parsed.file = again.file = kPlace.file;
  const absl::Status status = ParseDirectoryChunk(value, &parsed);
  CAIRN_CHECK(status.ok() || absl::IsDataLoss(status));
  if (!status.ok()) return false;
  CAIRN_CHECK(!parsed.entries.empty() && parsed.entries.size() <= node::kEntriesPerChunk);
  node::DirectoryWriter writer(kPlace.file);
  for (const DiskTier::RecoveredFile::Entry& entry : parsed.entries) {
    writer.Add(parsed.scopes.at(entry.scope), entry.block);
  }
  CAIRN_CHECK_OK(ParseDirectoryChunk(writer.TakeChunk(), &again));
  CAIRN_CHECK(SameEntries(parsed, again));
  return true;
}

bool RunFooter(absl::string_view value) {
  const absl::StatusOr<uint32_t> records = node::ParseDirectoryFooter(value, kPlace.file);
  CAIRN_CHECK(records.ok() || absl::IsDataLoss(records.status()));
  return records.ok();
}

// Key and value of the ledger in one input: u8 length of the key, then both.
bool Split(absl::string_view input, absl::string_view* key, absl::string_view* value) {
  if (input.empty()) return false;
  const size_t key_bytes = std::min<size_t>(static_cast<uint8_t>(input[0]), input.size() - 1);
  *key = input.substr(1, key_bytes);
  *value = input.substr(1 + key_bytes);
  return true;
}

bool RunNamespace(absl::string_view input) {
  absl::string_view key, value;
  if (!Split(input, &key, &value)) return false;
  const absl::StatusOr<DiskTier::KnownNamespace> known = node::ParseNamespace(key, value);
  CAIRN_CHECK(known.ok() || absl::IsDataLoss(known.status()));
  if (!known.ok()) return false;
  CAIRN_CHECK_OK(ValidateNamespace(known->fields));
  CAIRN_CHECK(node::NamespaceKey(known->tenant, known->name) == key);
  const auto again = node::ParseNamespace(key, node::NamespaceValue(known->fields));
  CAIRN_CHECK(again.ok() && again->fields == known->fields);
  return true;
}

bool RunFence(absl::string_view input) {
  absl::string_view key, value;
  if (!Split(input, &key, &value)) return false;
  const absl::StatusOr<DiskTier::Fence> fence = node::ParseFence(key, value);
  CAIRN_CHECK(fence.ok() || absl::IsDataLoss(fence.status()));
  if (!fence.ok()) return false;
  CAIRN_CHECK(node::FenceKey(*fence) == key && node::FenceValue(*fence) == value);
  return true;
}

bool RunDead(absl::string_view key) {
  const absl::StatusOr<DiskPlace> place = node::ParseDead(key);
  CAIRN_CHECK(place.ok() || absl::IsDataLoss(place.status()));
  if (place.ok()) CAIRN_CHECK(node::DeadKey(*place) == key);
  return place.ok();
}

std::string Joined(absl::string_view key, absl::string_view value) {
  CAIRN_CHECK(key.size() <= UINT8_MAX);
  return std::string(1, static_cast<char>(key.size())) + std::string(key) + std::string(value);
}

std::string SoundRecord(uint64_t number) {
  const NumberedRecord record(number, number % 50);
  std::string value;
  AppendRecordHead(record.record(), kPlace, &value);
  return value.append(reinterpret_cast<const char*>(record.record().payload.data()),
                      record.record().payload.size());
}

std::string SoundChunk(uint64_t number) {
  node::DirectoryWriter writer(kPlace.file);
  for (uint64_t i = 0; i <= number % 5; ++i) {
    const NumberedRecord record(number + i, 8);
    writer.Add(*record.record().scope, record.record().block);
  }
  return writer.TakeChunk();
}

std::string SoundFence(uint64_t number) {
  DiskTier::Fence fence;
  fence.tenant = std::string(number % 9, 't');
  fence.scope_digest = NumberedRecord::KeyOf(number);
  fence.sequence = number;
  fence.epoch = number / 2;
  return Joined(node::FenceKey(fence), node::FenceValue(fence));
}

std::string SoundNamespace(uint64_t number) {
  Namespace fields = SampleNamespace();
  fields.model = std::string(number % 20, 'm');
  return Joined(node::NamespaceKey(std::string(number % 9, 't'), "chat"),
                node::NamespaceValue(fields));
}

}  // namespace

bool ParsesAs(DiskFormat format, absl::string_view value) {
  // Exactly as large as the value.
  const std::vector<char> block(value.begin(), value.end());
  const absl::string_view view(block.data(), block.size());
  switch (format) {
    case DiskFormat::kRecord:
      return RunRecord(view);
    case DiskFormat::kChunk:
      return RunChunk(view);
    case DiskFormat::kFooter:
      return RunFooter(view);
    case DiskFormat::kNamespace:
      return RunNamespace(view);
    case DiskFormat::kFence:
      return RunFence(view);
    case DiskFormat::kDead:
      return RunDead(view);
  }
  return false;
}

std::string DiskFuzzInput(DiskFormat format, bool mend_checksum, absl::string_view value) {
  std::string input{static_cast<char>(format), static_cast<char>(mend_checksum ? 1 : 0)};
  return input.append(value.data(), value.size());
}

std::string SoundValue(DiskFormat format, uint64_t number) {
  switch (format) {
    case DiskFormat::kRecord:
      return SoundRecord(number);
    case DiskFormat::kChunk:
      return SoundChunk(number);
    case DiskFormat::kFooter:
      return node::DirectoryFooter(kPlace.file, static_cast<uint32_t>(number));
    case DiskFormat::kNamespace:
      return SoundNamespace(number);
    case DiskFormat::kFence:
      return SoundFence(number);
    case DiskFormat::kDead:
      return node::DeadKey({number, static_cast<uint32_t>(number * 3)});
  }
  return {};
}

}  // namespace cairn::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using cairn::testing::DiskFormat;
  using cairn::testing::kDiskFuzzPrefixBytes;
  if (size < kDiskFuzzPrefixBytes) return 0;
  const google::protobuf::LogSilencer silencer;  // Of what is no message.
  const auto format = static_cast<DiskFormat>(data[0] % cairn::testing::kDiskFormats);
  std::string value(reinterpret_cast<const char*>(data) + kDiskFuzzPrefixBytes,
                    size - kDiskFuzzPrefixBytes);
  if ((data[1] & 1) != 0) {
    if (format == DiskFormat::kRecord) cairn::testing::MendRecord(&value);
    if (format == DiskFormat::kChunk || format == DiskFormat::kFooter) {
      cairn::testing::MendDirectory(&value);
    }
  }
  cairn::testing::ParsesAs(format, value);
  return 0;
}
