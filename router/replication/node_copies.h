// NodeCopies: asks nodes over gRPC to copy (PullBlocks), on threads of its own, a few at once.
//
// Orders beyond a bounded queue end at once with RESOURCE_EXHAUSTED. A copy is asked for in calls
// of kKeysPerPullMax keys, each again until the node has nothing of it in hand; a block that does
// not come ends it. A public region is copied first, as the tenant `public`'s. Bounded in time. The
// destructor ends what runs: every order is answered before it returns. Thread-safe. Borrows parts
// and metadata.
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/client_options.h"
#include "client/cpp/client_parts.h"
#include "client/cpp/node_link.h"
#include "common/server/executor.h"
#include "router/replication/copy_transport.h"

namespace cairn::router {

class NodeCopies final : public CopyTransport {
 public:
  static constexpr int kThreads = 4;
  static constexpr size_t kQueueMax = 64;
  static constexpr absl::Duration kCopyMax = absl::Minutes(2);
  // One call waits so long at the node.
  static constexpr absl::Duration kWait = absl::Seconds(1);
  static constexpr size_t kLinksMax = 1024;

  // `options` but for the target.
  NodeCopies(const ClientOptions& options, const ClientParts& parts);
  ~NodeCopies() override;

  void Start(const CopyOrder& order, Done done) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  CopyResult Copy(const CopyOrder& order) ABSL_LOCKS_EXCLUDED(mutex_);
  // Some keys of it. False: it ends here.
  bool CopyPart(const CopyOrder& order, const std::string& tenant, size_t first, size_t count,
                absl::Time deadline, NodeLink* link, CopyResult* result)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<NodeLink> LinkTo(const std::string& address) ABSL_LOCKS_EXCLUDED(mutex_);
  bool stopping() const ABSL_LOCKS_EXCLUDED(mutex_);

  const ClientOptions options_;
  const ClientParts parts_;
  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Shared, because a copy keeps its link while the bound drops it here.
  absl::flat_hash_map<std::string, std::shared_ptr<NodeLink>> links_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Executor> threads_;
};

}  // namespace cairn::router
