// BlockHasher: from a parent and a block's content to the block's key.
//
// An interface so that a test can force collisions; everything that makes keys takes one in its
// constructor or call. Implementations are stateless or immutable, so thread-safe.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/bytes16.h"

namespace cairn {

class BlockHasher {
 public:
  virtual ~BlockHasher() = default;

  // Key scheme 1. `parent` is the key of the block before, or the scope's 16 bytes; `extra` as
  // EncodeExtra gives it. Defined for any count of tokens: that they fill a block is the caller's
  // rule.
  virtual BlockKey Block(const BlockKey& parent, absl::Span<const uint32_t> tokens,
                         absl::string_view extra) const = 0;

  // Key scheme 2. `root` is the 16 bytes of the scope that the block is in, whatever precedes it.
  virtual BlockKey External(const BlockKey& root, absl::string_view id) const = 0;
};

// The real one.
class Sha256BlockHasher final : public BlockHasher {
 public:
  BlockKey Block(const BlockKey& parent, absl::Span<const uint32_t> tokens,
                 absl::string_view extra) const override;
  BlockKey External(const BlockKey& root, absl::string_view id) const override;
};

}  // namespace cairn
