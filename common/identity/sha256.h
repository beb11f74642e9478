// SHA-256 without a context on the heap: for messages so short that setting up costs as much as
// hashing.
//
// Stateless and thread-safe. Uses OpenSSL's block function (hardware SHA where there is any)
// through the deprecated low-level calls; this file's .cc is the only place that knows them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace cairn {

inline constexpr size_t kSha256BlockBytes = 64;
using Sha256Digest = std::array<uint8_t, 32>;

// Bytes that a message of `message_bytes` takes with SHA-256's own padding (a 1 bit, zeros,
// length).
constexpr size_t Sha256PaddedBytes(size_t message_bytes) {
  return (message_bytes + 9 + kSha256BlockBytes - 1) / kSha256BlockBytes * kSha256BlockBytes;
}

// The most that padding adds.
inline constexpr size_t kSha256PaddingBytesMax = kSha256BlockBytes + 8;

// Digest of one message.
Sha256Digest Sha256(absl::string_view message);

// Digest of a message given in pieces, as if they were one.
Sha256Digest Sha256OfPieces(absl::Span<const absl::string_view> pieces);

// Digest of the `message_bytes` at `buffer`, which has room for kSha256PaddingBytesMax more:
// padding is written behind the message, so that nothing is copied.
Sha256Digest Sha256InPlace(uint8_t* buffer, size_t message_bytes);

}  // namespace cairn
