// Fingerprint: the 32 bytes that stand for a namespace (namespace.h).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/string_view.h"
#include "common/base/bytes16.h"

namespace cairn {

inline constexpr size_t kFingerprintBytes = 32;

struct Fingerprint {
  std::array<uint8_t, kFingerprintBytes> bytes{};

  // The fingerprint in `view`, or nothing when its length is not 32.
  static std::optional<Fingerprint> FromBytes(absl::string_view view) {
    if (view.size() != kFingerprintBytes) return std::nullopt;
    Fingerprint fingerprint;
    std::memcpy(fingerprint.bytes.data(), view.data(), kFingerprintBytes);
    return fingerprint;
  }

  absl::string_view view() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // Its first 16 bytes: what the first scope of a prompt enters after.
  BlockKey root() const {
    BlockKey key;
    std::memcpy(key.bytes.data(), bytes.data(), kKeyBytes);
    return key;
  }

  friend bool operator==(const Fingerprint& a, const Fingerprint& b) { return a.bytes == b.bytes; }
  friend bool operator!=(const Fingerprint& a, const Fingerprint& b) { return a.bytes != b.bytes; }
  friend bool operator<(const Fingerprint& a, const Fingerprint& b) { return a.bytes < b.bytes; }

  template <typename H>
  friend H AbslHashValue(H state, const Fingerprint& fingerprint) {
    return H::combine_contiguous(std::move(state), fingerprint.bytes.data(),
                                 fingerprint.bytes.size());
  }
};

}  // namespace cairn
