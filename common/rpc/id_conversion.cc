#include "common/rpc/id_conversion.h"

#include <cstring>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/hex.h"

namespace cairn {

absl::Status WrongLength(absl::string_view field, size_t size, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat(field, " has ", size, " bytes; must be ", wanted));
}

absl::StatusOr<Fingerprint> FingerprintFromProto(absl::string_view bytes, absl::string_view field) {
  const std::optional<Fingerprint> fingerprint = Fingerprint::FromBytes(bytes);
  if (!fingerprint) return WrongLength(field, bytes.size(), "32");
  return *fingerprint;
}

absl::StatusOr<std::vector<BlockKey>> KeysFromProto(absl::string_view bytes,
                                                    absl::string_view field, size_t keys_max) {
  if (bytes.size() % kKeyBytes != 0) {
    return WrongLength(field, bytes.size(), "a multiple of 16, one key after the other");
  }
  const size_t count = bytes.size() / kKeyBytes;
  if (count > keys_max) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " has ", count, " keys; at most ", keys_max));
  }
  std::vector<BlockKey> keys(count);
  if (count != 0) std::memcpy(keys.data(), bytes.data(), bytes.size());
  return keys;
}

absl::Status CheckNoDuplicates(absl::Span<const BlockKey> keys, absl::string_view field) {
  absl::flat_hash_map<BlockKey, size_t> seen;
  seen.reserve(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto [it, inserted] = seen.emplace(keys[i], i);
    if (inserted) continue;
    return absl::InvalidArgumentError(absl::StrCat(field, ": key ", ToHex(keys[i].view()),
                                                   " is at ", it->second, " and again at ", i));
  }
  return absl::OkStatus();
}

std::string KeysToProto(absl::Span<const BlockKey> keys) {
  std::string bytes;
  bytes.reserve(keys.size() * kKeyBytes);
  for (const BlockKey& key : keys) bytes.append(key.view().data(), key.view().size());
  return bytes;
}

}  // namespace cairn
