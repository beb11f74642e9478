// PublicScope: what of the tenant `public` a node takes and keeps: prefixes that the operator
// lists.
//
// A reserve of `public` is admitted when its last block ends a listed prefix: keys are chained, so
// each block before that one is on the way to it. Where an engine names the blocks (key scheme 2)
// keys are not chained, and each must be listed. A prefix longer than one reserve has a line for
// the end of each. Who may write `public` at all is the caller's affair (TenantFor).
//
// Poll belongs to a thread of the owner's; it may take as long as a removal. A file that cannot be
// read or means nothing changes nothing, and Poll says why. What the list does not lead to any more
// is removed from the store. The rest is thread-safe. Borrows the store, which outlives it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cache_node/store/block_store.h"
#include "common/identity/namespace.h"
#include "common/security/public_prefixes.h"
#include "common/security/watched_file.h"

namespace cairn::node {

using PublicPrefixFile = WatchedFile<PublicPrefixes>;

// Not OK when the file cannot be read or means nothing.
absl::StatusOr<std::unique_ptr<PublicPrefixFile>> OpenPublicPrefixes(const std::string& path);

class PublicScope {
 public:
  // Without a file (null) nothing is listed.
  PublicScope(std::unique_ptr<PublicPrefixFile> file, BlockStore* store);

  // Before a reserve, and again after it, as the list may change meanwhile. Keys are as the node
  // computed them. PERMISSION_DENIED, counted, saying what to do.
  absl::Status Check(KeyScheme scheme, absl::Span<const BlockKey> keys) const;
  // A reserve of `public` by a caller that does not write it.
  void CountRefused() const { refused_.fetch_add(1, std::memory_order_relaxed); }

  absl::Status Poll();

  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  // That the list no longer led to.
  uint64_t removed_blocks() const { return removed_blocks_.load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<const PublicPrefixes> Listed() const;

  const std::unique_ptr<PublicPrefixFile> file_;
  BlockStore* const store_;
  const std::shared_ptr<const PublicPrefixes> none_;  // As files keep theirs.
  std::shared_ptr<const PublicPrefixes> swept_;       // Poll's: the store holds nothing beside it.
  mutable std::atomic<uint64_t> refused_{0};
  std::atomic<uint64_t> removed_blocks_{0};
};

}  // namespace cairn::node
