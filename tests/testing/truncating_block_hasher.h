// TruncatingBlockHasher (a fake): real keys of which only the first few bits are kept, so that a
// test meets collisions at will. Immutable, so thread-safe.
#pragma once

#include "common/base/check.h"
#include "common/identity/block_hasher.h"

namespace cairn::testing {

class TruncatingBlockHasher final : public BlockHasher {
 public:
  // Keeps the first `bits` bits of each key, counted from the high bit of byte 0; the rest is 0.
  explicit TruncatingBlockHasher(size_t bits) : bits_(bits) { CAIRN_CHECK(bits <= 8 * kKeyBytes); }

  BlockKey Block(const BlockKey& parent, absl::Span<const uint32_t> tokens,
                 absl::string_view extra) const override {
    return Truncate(real_.Block(parent, tokens, extra));
  }

  BlockKey External(const BlockKey& root, absl::string_view id) const override {
    return Truncate(real_.External(root, id));
  }

 private:
  BlockKey Truncate(BlockKey key) const {
    for (size_t i = 0; i < kKeyBytes; ++i) {
      const size_t kept = bits_ > 8 * i ? bits_ - 8 * i : 0;
      if (kept < 8) key.bytes[i] &= static_cast<uint8_t>(0xff00u >> kept);
    }
    return key;
  }

  Sha256BlockHasher real_;
  size_t bits_;
};

}  // namespace cairn::testing
