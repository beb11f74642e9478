// Namespace: everything that must agree before KV may be shared at all, and its fingerprint.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/identity/fingerprint.h"
#include "common/identity/layout.h"

namespace cairn {

// How the keys of blocks are made.
enum class KeyScheme : uint32_t {
  kCairn = 1,     // From tokens, chained.
  kExternal = 2,  // From an id that the engine supplies for each block.
};

struct Namespace {
  std::string model;
  std::string revision;  // Digest of the weights.
  std::string numerics;  // Raw: digest of whatever else changes KV at equal weights.
  KeyScheme key_scheme = KeyScheme::kCairn;
  Layout layout;

  friend bool operator==(const Namespace&, const Namespace&) = default;
};

// OK when a fingerprint of it means something. INVALID_ARGUMENT names the field, its value and what
// is allowed; statuses of the layout are ValidateLayout's.
absl::Status ValidateNamespace(const Namespace& name_space);

// The fingerprint, or ValidateNamespace's status.
absl::StatusOr<Fingerprint> FingerprintOf(const Namespace& name_space);

}  // namespace cairn
