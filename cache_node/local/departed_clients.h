// DepartedClients: connections that are over and did not say that they unmapped what they got.
//
// Each is known until its client says so in a later hello, or its process has ended: memory cannot
// be mapped by a process that is no more. A hello may overtake the end of the connection that it
// speaks of, so those that are not over are known too. Bounded, all together and by tenant; over
// the bounds no new connections are let in. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "cache_node/tiers/segment_loans.h"
#include "common/base/bytes16.h"
#include "common/local/descriptor.h"

namespace cairn::node {

// Names a connection to its client, and to nobody else.
using LocalConnectionId = Bytes16<struct LocalConnectionIdTag>;

class DepartedClients {
 public:
  static constexpr size_t kDepartedMax = 1024;
  // So that one tenant's clients do not keep out those of others.
  static constexpr size_t kPerTenantMax = 256;

  // Whether a client of this tenant is to stay out.
  bool full(absl::string_view tenant) const ABSL_LOCKS_EXCLUDED(mutex_);

  // `key` names the connection here, and never another. Then one of the two that follow, once.
  void Joined(uint64_t key, const LocalConnectionId& connection, absl::string_view tenant)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // It is over, and may have memory; false when its client said already that it has none. `watch`,
  // of its process, may be null, and is shared with whoever begins to wait for it.
  bool Left(uint64_t key, BorrowerId borrower, std::shared_ptr<const Descriptor> watch)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // It is over and has nothing.
  void Forget(uint64_t key) ABSL_LOCKS_EXCLUDED(mutex_);

  // Its process has ended: whose loans are over.
  std::optional<BorrowerId> TakeByKey(uint64_t key) ABSL_LOCKS_EXCLUDED(mutex_);
  // Its client says that it unmapped everything.
  struct Said {
    std::optional<BorrowerId> borrower;       // Whose loans are over.
    std::optional<uint64_t> still_connected;  // Key of one that is not over yet, and should be.
  };
  Said Returned(const LocalConnectionId& connection) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Client {
    LocalConnectionId connection;
    std::string tenant;
    bool returned = false;  // Said before it was over.
    // Once it is over:
    std::optional<BorrowerId> borrower;
    std::shared_ptr<const Descriptor> watch;
  };

  void Erase(uint64_t key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<uint64_t, Client> by_key_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<LocalConnectionId, uint64_t> by_connection_ ABSL_GUARDED_BY(mutex_);
  // Of those that are over.
  size_t departed_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, size_t> by_tenant_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::node
