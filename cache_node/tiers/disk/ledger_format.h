// Keys and values of the ledger: what the disk tier never forgets.
//
// Namespaces are kept as the message of the wire contract, which both ends can extend, and are
// validated when they are read. Bytes from disk are not trusted: parsing gives DATA_LOSS, or what
// was written. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cache_node/tiers/disk/disk_tier.h"
#include "cache_node/tiers/disk/disk_types.h"

namespace cairn::node {

// First byte of a key.
inline constexpr char kNamespaceKeys = 'n';
inline constexpr char kFenceKeys = 'f';
inline constexpr char kDeadKeys = 'd';
// Whole keys.
inline constexpr absl::string_view kFileLimitKey = "l";  // File numbers below it may be in use.
inline constexpr absl::string_view kIdentityKey = "i";   // Of the directory.
inline constexpr absl::string_view kProbeKey = "p";
inline constexpr absl::string_view kDeadUpToKey = "u";  // Sequences up to it are dead.

std::string NamespaceKey(absl::string_view tenant, absl::string_view name);
std::string NamespaceValue(const Namespace& fields);
absl::StatusOr<DiskTier::KnownNamespace> ParseNamespace(absl::string_view key,
                                                        absl::string_view value);

std::string FenceKey(const DiskTier::Fence& fence);
std::string FenceValue(const DiskTier::Fence& fence);
absl::StatusOr<DiskTier::Fence> ParseFence(absl::string_view key, absl::string_view value);

// In the order of file and slot; values are empty.
std::string DeadKey(DiskPlace place);
absl::StatusOr<DiskPlace> ParseDead(absl::string_view key);

std::string NumberValue(uint64_t number);
absl::StatusOr<uint64_t> ParseNumber(absl::string_view value);

}  // namespace cairn::node
