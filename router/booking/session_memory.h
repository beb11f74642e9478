// SessionMemory: where the last prompt of each session went.
//
// Advice only: what is forgotten costs a hit at most. Bounded: the session that was used longest
// ago goes first, and each goes after its TTL. Not thread-safe: under the core's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "router/ids.h"

namespace cairn::router {

struct SessionOptions {
  size_t sessions_max = size_t{1} << 16;
  // As long as engines keep what nobody asks for, or so.
  absl::Duration ttl = absl::Minutes(5);
};

class SessionMemory {
 public:
  explicit SessionMemory(const SessionOptions& options);

  SessionMemory(const SessionMemory&) = delete;
  SessionMemory& operator=(const SessionMemory&) = delete;

  // Nothing when the session is not known, or its replica was freed since.
  std::optional<ReplicaId> Find(absl::string_view tenant, absl::string_view session,
                                absl::Time now) const;
  // Its prompt went there, and its TTL begins anew.
  void Note(absl::string_view tenant, absl::string_view session, ReplicaId replica, absl::Time now);

  // No session is there any more. O(1).
  void Free(ReplicaId replica) { freed_[replica] = turn_; }
  // The replica is gone for good, and its id with it. O(1).
  void Forget(ReplicaId replica) { freed_.erase(replica); }

  void Expire(absl::Time now);

  size_t size() const { return sessions_.size(); }

 private:
  struct Session {
    std::string name;
    ReplicaId replica = 0;
    uint64_t turn = 0;
    absl::Time expires = absl::InfinitePast();
  };

  static std::string NameOf(absl::string_view tenant, absl::string_view session);
  void DropOldest();

  const SessionOptions options_;
  std::list<Session> order_;  // The one used longest ago first.
  // By name, which is the session's own.
  absl::flat_hash_map<absl::string_view, std::list<Session>::iterator> sessions_;
  absl::flat_hash_map<ReplicaId, uint64_t> freed_;  // Sessions noted up to that turn are free.
  uint64_t turn_ = 0;                               // Of the last Note.
};

}  // namespace cairn::router
