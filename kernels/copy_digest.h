// Copying bytes and hashing them in one pass.
#pragma once

#include <cstdint>

#include "kernels/byte_hash.h"

namespace cairn::kernels {

inline constexpr uint64_t kStreamBytesMin = 256 << 10;

// Copies `bytes` from `from` to `to` (which do not overlap) and returns ByteHash64 of them with
// `seed`. Runs of `stream_bytes_min` and more are written past the caches, and read ahead: for
// blocks that go to a pool or out of it, not for bytes that the caller reads next. Thread-safe.
uint64_t CopyAndHash(void* to, const void* from, uint64_t bytes, uint64_t seed,
                     uint64_t stream_bytes_min = kStreamBytesMin);

// The same for bytes that come in pieces, each to its own place, all past the caches. What was
// written is seen by other threads once Digest() was called. Not thread-safe; allocates nothing.
class StreamingCopyHasher {
 public:
  explicit StreamingCopyHasher(uint64_t seed) : hasher_(seed) {}

  // Copies `bytes` from `from` to `to`, which do not overlap.
  void Copy(void* to, const void* from, uint64_t bytes);
  // ByteHash64 of all that was copied.
  uint64_t Digest() const;

 private:
  ByteHasher hasher_;
};

}  // namespace cairn::kernels
