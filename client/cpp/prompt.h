// Prompt: what a caller asks about, with its keys computed once.
//
// Immutable. It borrows the tokens (and external ids) of its regions, which must stay where they
// are while it or a copy lives; keys, scopes and extras it owns.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cpp/namespace_handle.h"
#include "common/base/bytes16.h"
#include "common/identity/block_hasher.h"
#include "common/identity/key_chain.h"

namespace cairn {

class Prompt {
 public:
  // A scope without a tenant takes the namespace's. As PromptKeys (key_chain.h) when a rule about
  // regions, tokens or extras is broken.
  static absl::StatusOr<Prompt> Make(const BlockHasher& hasher, const NamespaceHandle& name_space,
                                     absl::Span<const Region> regions,
                                     const ExtrasByBlock& extras = {});

  // For lookups and gets by key: nothing else is known of the prompt, and nothing can be reserved.
  static Prompt FromKeys(std::vector<BlockKey> keys);

  // Of all full blocks.
  const std::vector<BlockKey>& keys() const { return keys_; }
  size_t block_count() const { return keys_.size(); }

  // Empty when made from keys.
  const std::vector<Region>& regions() const { return regions_; }
  const ExtrasByBlock& extras() const { return extras_; }
  // Tokens in all regions.
  size_t token_count() const;

  // Index of the first block of region `region`; of region == regions().size(): block_count().
  // REQUIRES: region <= regions().size().
  size_t FirstBlock(size_t region) const;

 private:
  Prompt() = default;

  std::vector<Region> regions_;
  std::vector<size_t> first_blocks_;  // By region.
  ExtrasByBlock extras_;
  std::vector<BlockKey> keys_;
};

}  // namespace cairn
