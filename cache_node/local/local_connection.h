// LocalConnection: one connection of the LocalServer: its socket, and what is due from its client.
//
// Packets are served by one thread at a time (epoll's one shot sees to that); what another thread
// may call at any time is said. Borrows its parts.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cache_node/local/departed_clients.h"
#include "cache_node/local/local_session.h"
#include "common/local/packet_socket.h"

namespace cairn::node {

class LocalConnection {
 public:
  LocalConnection(uint64_t key, PacketSocket socket, absl::Time hello_due);

  uint64_t key() const { return key_; }
  int fd() const { return socket_.fd(); }
  // Who it is, once it said hello.
  LocalSession* session() { return session_.has_value() ? &*session_ : nullptr; }

  struct Received {
    v1::LocalRequest request;
    bool none = false;  // Nothing is there now.
  };
  // INVALID_ARGUMENT: what came is no request. UNAVAILABLE: the client is gone.
  absl::StatusOr<Received> Receive(absl::Span<char> buffer);
  // RESOURCE_EXHAUSTED: the client does not read.
  absl::Status Send(const v1::LocalAnswer& answer, absl::Span<const int> descriptors);

  void Welcome(const LocalSession::Parts& parts, Caller caller, const LocalConnectionId& id);
  const LocalConnectionId& id() const { return id_; }
  // What becomes readable when the client's process ends; an empty descriptor where none knows.
  const std::shared_ptr<const Descriptor>& process() const { return process_; }

  // Any thread. The client is to give these back until `due`, or be cut.
  absl::Status Recall(absl::Span<const uint64_t> segments, absl::Time due)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void GaveBack(const v1::LocalUnmapped& unmapped) ABSL_LOCKS_EXCLUDED(mutex_);
  // Any thread.
  void DropIdleStaging(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Any thread. Why it is to be cut now.
  enum class Overdue { kNothing, kHello, kMemory };
  Overdue OverdueAt(absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Any thread. Whoever serves it finds its end.
  void Cut() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const uint64_t key_;
  const PacketSocket socket_;
  const std::shared_ptr<const Descriptor> process_;  // Outlives this where it must be waited for.
  LocalConnectionId id_;
  std::optional<LocalSession> session_;  // Before the mutex's state: see hello_due_.
  mutable absl::Mutex mutex_;
  std::optional<absl::Time> hello_due_ ABSL_GUARDED_BY(mutex_);  // Until it said hello.
  absl::flat_hash_map<uint64_t, absl::Time> recalled_ ABSL_GUARDED_BY(mutex_);
  bool cut_ ABSL_GUARDED_BY(mutex_) = false;  // Nothing is due any more.
};

}  // namespace cairn::node
