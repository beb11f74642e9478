// XXH3-64 with a seed over raw bytes: what digests of cached bytes are made of.
//
// Not a defence against an adversary: it finds bytes that changed by accident or by a bug. Results
// are the same on every machine; the widest vector unit of the processor at hand is chosen at run
// time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn::kernels {

// XXH3-64 of `size` bytes at `data` (which may be null when `size` is 0). Thread-safe.
uint64_t ByteHash64(const void* data, size_t size, uint64_t seed);

// The same hash over bytes that come in pieces: however they are cut, Digest() equals ByteHash64 of
// them all. Not thread-safe; a copy goes on from the same point. Allocates nothing.
class ByteHasher {
 public:
  explicit ByteHasher(uint64_t seed);
  ByteHasher(const ByteHasher& other);
  ByteHasher& operator=(const ByteHasher& other);

  // Forgets what was added.
  void Reset(uint64_t seed);
  void Update(const void* data, size_t size);
  // The hash so far; more may be added afterwards.
  uint64_t Digest() const;

 private:
  static constexpr size_t kStateBytes = 576;
  alignas(64) unsigned char state_[kStateBytes];
};

}  // namespace cairn::kernels
