// DepartedClients: connections that are over and did not say that they unmapped what they got.
//
// Each is known until its client says so in a later hello, or its process has ended: memory cannot
// be mapped by a process that is no more. Bounded; over the bound no new connections are let in.
// Thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
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

  // A descriptor that becomes readable when the process ends; an empty one where the kernel knows
  // none (0: not known who it is).
  static Descriptor WatchProcess(int process);

  bool full() const ABSL_LOCKS_EXCLUDED(mutex_);
  // `watch` may be empty.
  void Add(uint64_t key, const LocalConnectionId& connection, BorrowerId borrower, Descriptor watch)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Its process has ended, or its client has spoken: whose loans are over.
  std::optional<BorrowerId> TakeByKey(uint64_t key) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<BorrowerId> TakeByConnection(const LocalConnectionId& connection)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Departed {
    LocalConnectionId connection;
    BorrowerId borrower = 0;
    Descriptor watch;
  };

  std::optional<BorrowerId> Take(uint64_t key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<uint64_t, Departed> by_key_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<LocalConnectionId, uint64_t> by_connection_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::node
