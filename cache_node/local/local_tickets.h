// LocalTickets: who may connect to the local socket, and as whom.
//
// A ticket is 128 random bits, good once and for kTimeToLive, for the caller that it was issued to.
// Bounded, and so is each tenant's number of them. Thread-safe. Borrows time and randomness.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/bytes16.h"
#include "common/base/guarded_time.h"
#include "common/base/random_source.h"
#include "common/rpc/caller_identity.h"

namespace cairn::node {

using LocalTicket = Bytes16<struct LocalTicketTag>;

class LocalTickets {
 public:
  static constexpr absl::Duration kTimeToLive = absl::Seconds(10);
  static constexpr size_t kTicketsMax = 4096;
  static constexpr size_t kTicketsPerTenantMax = 256;

  LocalTickets(const GuardedTime* time, RandomSource* random) : time_(time), random_(random) {}

  // RESOURCE_EXHAUSTED with a retry delay when too many are out.
  absl::StatusOr<LocalTicket> Issue(const Caller& caller) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whose it is; nothing when it is none, was taken already, or is too old.
  std::optional<Caller> Take(absl::string_view ticket) ABSL_LOCKS_EXCLUDED(mutex_);
  // What callers may do has changed: none is good any more.
  void Clear() ABSL_LOCKS_EXCLUDED(mutex_);

  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Issued {
    Caller caller;
    absl::Time expires;
  };

  void DropExpired(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Issued> Erase(const LocalTicket& ticket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const GuardedTime* const time_;
  RandomSource* const random_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<LocalTicket, Issued> issued_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, size_t> by_tenant_ ABSL_GUARDED_BY(mutex_);
  // Oldest first; some were taken already. At most twice kTicketsMax.
  std::deque<std::pair<absl::Time, LocalTicket>> order_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::node
