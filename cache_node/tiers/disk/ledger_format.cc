#include "cache_node/tiers/disk/ledger_format.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cache_node/tiers/disk/byte_reader.h"
#include "cache_node/tiers/disk/place_key.h"
#include "common/base/check.h"
#include "common/rpc/namespace_conversion.h"

namespace cairn::node {
namespace {

constexpr uint8_t kVersion = 1;

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("the ledger: ", what));
}

bool ReadVersion(ByteReader* reader) {
  uint8_t version = 0;
  return reader->Read(&version) && version == kVersion;
}

bool ReadKind(ByteReader* reader, char kind) {
  char found = 0;
  return reader->Read(&found) && found == kind;
}

}  // namespace

std::string NamespaceKey(absl::string_view tenant, absl::string_view name) {
  CAIRN_CHECK(tenant.size() <= UINT16_MAX);
  std::string key(1, kNamespaceKeys);
  AppendBytesOf(&key, static_cast<uint16_t>(tenant.size()));
  absl::StrAppend(&key, tenant, name);
  return key;
}

std::string NamespaceValue(const Namespace& fields) {
  std::string value;
  AppendBytesOf(&value, kVersion);
  value.append(NamespaceToProto(fields).SerializeAsString());
  return value;
}

absl::StatusOr<DiskTier::KnownNamespace> ParseNamespace(absl::string_view key,
                                                        absl::string_view value) {
  DiskTier::KnownNamespace known;
  ByteReader key_reader(key), value_reader(value);
  uint16_t tenant_bytes = 0;
  if (!ReadKind(&key_reader, kNamespaceKeys) || !key_reader.Read(&tenant_bytes) ||
      !key_reader.ReadString(tenant_bytes, &known.tenant) ||
      !key_reader.ReadString(key_reader.remaining(), &known.name)) {
    return Damaged("key of a namespace");
  }
  absl::string_view bytes;
  v1::Namespace message;
  if (!ReadVersion(&value_reader) || !value_reader.ReadBytes(value_reader.remaining(), &bytes) ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Damaged("value of a namespace");
  }
  absl::StatusOr<Namespace> fields = NamespaceFromProto(message);
  if (!fields.ok()) return Damaged(fields.status().message());
  known.fields = *std::move(fields);
  return known;
}

std::string FenceKey(const DiskTier::Fence& fence) {
  std::string key(1, kFenceKeys);
  AppendBytesOf(&key, fence.fingerprint);
  AppendBytesOf(&key, fence.scope_digest);
  key.append(fence.tenant);
  return key;
}

std::string FenceValue(const DiskTier::Fence& fence) {
  std::string value;
  AppendBytesOf(&value, kVersion);
  AppendBytesOf(&value, fence.sequence);
  AppendBytesOf(&value, fence.epoch);
  return value;
}

absl::StatusOr<DiskTier::Fence> ParseFence(absl::string_view key, absl::string_view value) {
  DiskTier::Fence fence;
  ByteReader key_reader(key), value_reader(value);
  if (!ReadKind(&key_reader, kFenceKeys) || !key_reader.Read(&fence.fingerprint) ||
      !key_reader.Read(&fence.scope_digest) ||
      !key_reader.ReadString(key_reader.remaining(), &fence.tenant)) {
    return Damaged("key of a fence");
  }
  if (!ReadVersion(&value_reader) || !value_reader.Read(&fence.sequence) ||
      !value_reader.Read(&fence.epoch) || value_reader.remaining() != 0) {
    return Damaged("value of a fence");
  }
  return fence;
}

std::string DeadKey(DiskPlace place) {
  return absl::StrCat(absl::string_view(&kDeadKeys, 1), RecordKey(place));
}

absl::StatusOr<DiskPlace> ParseDead(absl::string_view key) {
  if (key.size() != 1 + kPlaceKeyBytes || key[0] != kDeadKeys) return Damaged("key of a record");
  return ParseRecordKey(key.substr(1));
}

std::string NumberValue(uint64_t number) {
  std::string value;
  AppendBytesOf(&value, number);
  return value;
}

absl::StatusOr<uint64_t> ParseNumber(absl::string_view value) {
  ByteReader reader(value);
  uint64_t number = 0;
  if (!reader.Read(&number) || reader.remaining() != 0) return Damaged("a number");
  return number;
}

}  // namespace cairn::node
