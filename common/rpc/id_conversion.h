// Fixed-length ids in `bytes` fields: fingerprints, keys, leases, tokens.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/bytes16.h"
#include "common/identity/fingerprint.h"

namespace cairn {

// INVALID_ARGUMENT naming `field` when `bytes` are not 32.
absl::StatusOr<Fingerprint> FingerprintFromProto(absl::string_view bytes,
                                                 absl::string_view field = "fingerprint");

// INVALID_ARGUMENT: `field` has `size` bytes where `wanted` says what it must have.
absl::Status WrongLength(absl::string_view field, size_t size, absl::string_view wanted);

// An id of 16 bytes: LeaseId, TokenId, BlockKey.
template <typename Id>
absl::StatusOr<Id> IdFromProto(absl::string_view bytes, absl::string_view field) {
  const std::optional<Id> id = Id::FromBytes(bytes);
  if (!id) return WrongLength(field, bytes.size(), "16");
  return *id;
}

// The same, or nothing when the field is empty.
template <typename Id>
absl::StatusOr<std::optional<Id>> OptionalIdFromProto(absl::string_view bytes,
                                                      absl::string_view field) {
  if (bytes.empty()) return std::optional<Id>();
  const std::optional<Id> id = Id::FromBytes(bytes);
  if (!id) return WrongLength(field, bytes.size(), "16, or none");
  return id;
}

// Keys that stand one after the other in `bytes`; none of them is an empty list. INVALID_ARGUMENT
// naming `field` for a part of a key or more than `keys_max` keys.
absl::StatusOr<std::vector<BlockKey>> KeysFromProto(absl::string_view bytes,
                                                    absl::string_view field, size_t keys_max);

// INVALID_ARGUMENT naming the first key that comes twice, and where.
absl::Status CheckNoDuplicates(absl::Span<const BlockKey> keys, absl::string_view field);

// All keys, one after the other.
std::string KeysToProto(absl::Span<const BlockKey> keys);

}  // namespace cairn
