// PublicPrefixes: which prefixes may be kept for all tenants: an operator's file, parsed.
//
// One prefix a line, named by the key of its last block as 32 hexadecimal digits; `#` begins a
// comment:
//
//     9f3c51a07be2441d8a60f2c9d4e7b813   # the assistant's system prompt, llama-70b, 2026-04
//
// A key is the hash of all that is before it, of the namespace and of the scope, so it names one
// prefix of one model. Parsing is strict and bounded: a line that means nothing is an error, never
// passed over. Immutable; thread-safe.
#pragma once

#include <cstddef>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/bytes16.h"

namespace cairn {

inline constexpr size_t kPublicPrefixesMax = 16384;

class PublicPrefixes {
 public:
  // None.
  PublicPrefixes() = default;
  // INVALID_ARGUMENT naming `file`, the line, what is wrong with it and what to write.
  static absl::StatusOr<PublicPrefixes> Parse(absl::string_view text, absl::string_view file);

  // Whether a listed prefix ends with this block.
  bool EndsWith(const BlockKey& key) const { return last_keys_.contains(key); }
  // Whether all of them are listed in `other` too.
  bool IsWithin(const PublicPrefixes& other) const;
  // Of the last block of each.
  const absl::flat_hash_set<BlockKey>& last_keys() const { return last_keys_; }

 private:
  absl::flat_hash_set<BlockKey> last_keys_;
};

}  // namespace cairn
