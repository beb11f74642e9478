// KeyChain: the keys of a prompt's full blocks, one after another, with the rules about regions.
//
// A prompt is one or two regions; the first of two is whole blocks, at least one. A new chain
// stands before the first region. Not thread-safe; copying one continues from the same place twice.
// Nothing is done when a call fails.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/bytes16.h"
#include "common/identity/block_hasher.h"
#include "common/identity/extra.h"
#include "common/identity/fingerprint.h"
#include "common/identity/namespace.h"
#include "common/identity/scope.h"

namespace cairn {

inline constexpr size_t kRegionsMax = 2;
inline constexpr size_t kExternalIdBytesMax = 64;
inline constexpr size_t kPromptTokensMax = size_t{1} << 22;
inline constexpr size_t kPromptBlocksMax = size_t{1} << 20;

// What of a namespace its keys depend on.
struct KeyRules {
  Fingerprint fingerprint;
  KeyScheme key_scheme = KeyScheme::kCairn;
  uint32_t block_tokens = 0;
};

// The rules of a namespace, or ValidateNamespace's status.
absl::StatusOr<KeyRules> KeyRulesOf(const Namespace& name_space);

class KeyChain {
 public:
  // `hasher` outlives the chain.
  KeyChain(const BlockHasher* hasher, const KeyRules& rules);

  // Begins a region. INVALID_ARGUMENT for a bad scope, a third region, or a second one before the
  // first has a block.
  absl::Status Enter(const Scope& scope);

  // The next block's key under key scheme 1. INVALID_ARGUMENT when `tokens` is not exactly one
  // block, `extra` is not canonical (extra.h), the scheme is another, or no region was entered.
  absl::StatusOr<BlockKey> Next(absl::Span<const uint32_t> tokens, absl::string_view extra);

  // The same under key scheme 2; the id has 1 to kExternalIdBytesMax bytes.
  absl::StatusOr<BlockKey> NextExternal(absl::string_view id);

  // Key of the last block; before a region's first block, the region's 16 bytes.
  const BlockKey& parent() const { return parent_; }
  // The 16 bytes of the region that the chain is in.
  const BlockKey& root() const { return root_; }
  size_t block_count() const { return block_count_; }

 private:
  absl::Status CheckCanAppend(KeyScheme scheme) const;

  const BlockHasher* hasher_;
  KeyRules rules_;
  BlockKey root_;
  BlockKey parent_;
  size_t region_count_ = 0;
  size_t block_count_ = 0;
};

// One region of a prompt. Key scheme 1 takes tokens and no ids. Key scheme 2 takes ids; tokens may
// be given beside them and then must have as many full blocks as there are ids.
struct Region {
  Scope scope;
  absl::Span<const uint32_t> tokens;
  absl::Span<const std::string> external_ids;
};

// Extra items by index of the block in the whole prompt; key scheme 1 only.
using ExtrasByBlock = std::map<uint32_t, std::vector<ExtraItem>>;

// Keys of all full blocks of a prompt. INVALID_ARGUMENT when a rule of KeyChain is broken, a bound
// exceeded, or an extra names a block past the prompt's end (one for the partial last block is let
// pass: that block has no key).
absl::StatusOr<std::vector<BlockKey>> PromptKeys(const BlockHasher& hasher, const KeyRules& rules,
                                                 absl::Span<const Region> regions,
                                                 const ExtrasByBlock& extras);

}  // namespace cairn
