// PublicWatch: the public scope of a running node: what holds of it, looked at again once a second
// on a thread of its own, and counted.
//
// Borrows the store and the metrics, which outlive it.
#pragma once

#include <memory>
#include <optional>

#include "cache_node/store/block_store.h"
#include "cache_node/tenants/public_scope.h"
#include "common/metrics/metrics.h"
#include "common/security/file_watch.h"

namespace cairn::node {

class PublicWatch {
 public:
  // `file` and `log` may be null.
  PublicWatch(std::unique_ptr<PublicPrefixFile> file, BlockStore* store, Metrics* metrics,
              FileWatch::Log log);

  // Looks once, then begins to.
  void Start();
  // The scope stays as it is. Blocks for a look that is under way.
  void Stop() { watch_.reset(); }

  const PublicScope& scope() const { return scope_; }
  // For what is counted of it. Null after Stop.
  const FileWatch* files() const { return watch_.has_value() ? &*watch_ : nullptr; }

 private:
  PublicScope scope_;
  std::optional<FileWatch> watch_;
  CallbackMetric refused_;
  CallbackMetric removed_blocks_;
};

}  // namespace cairn::node
