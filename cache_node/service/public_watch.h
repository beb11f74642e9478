// PublicWatch: the public scope of a running node: what holds of it, looked at again once a second
// on a thread of its own, and counted.
//
// Borrows the store and the metrics, which outlive it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
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

 private:
  absl::Status Poll();

  PublicScope scope_;
  std::atomic<uint64_t> failed_polls_{0};
  std::optional<FileWatch> watch_;
  CallbackMetric refused_;
  CallbackMetric removed_blocks_;
  CallbackMetric read_errors_;
};

}  // namespace cairn::node
