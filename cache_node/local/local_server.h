// LocalServer: the Unix socket on which clients of this host get memory in place of payload.
//
// A few threads wait on one epoll; a connection is served by one of them at a time. Open issues
// tickets (over the authenticated channel), hello spends them; everything after is a
// LocalSession's. No client can hold a thread: nothing blocks, and a client that does not read is
// cut. When what callers may do changes, all are cut, and come back through Open. The destructor
// cuts all, which ends their shares. Thread-safe. Borrows its parts, which outlive it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cache_node/local/departed_clients.h"
#include "cache_node/local/local_connection.h"
#include "cache_node/local/local_counters.h"
#include "cache_node/local/local_session.h"
#include "cache_node/local/local_tickets.h"
#include "cairn/v1/local.pb.h"
#include "common/base/guarded_time.h"
#include "common/base/random_source.h"
#include "common/local/packet_socket.h"
#include "common/rpc/caller_resolver.h"

namespace cairn::node {

class LocalServer {
 public:
  struct Options {
    std::string socket;  // As of PacketSocket.
    int threads = 2;
    size_t connections_max = 128;
    // Of a connection: from its start to its hello, and from a recall to the memory's return.
    absl::Duration hello_within = absl::Seconds(2);
    absl::Duration return_within = absl::Seconds(5);
  };
  struct Parts {
    BlockStore* store = nullptr;
    TenantRates* rates = nullptr;
    StagingBudget* staging = nullptr;
    LocalCounters* counters = nullptr;
    const CallerResolver* callers = nullptr;
    const GuardedTime* time = nullptr;
    RandomSource* random = nullptr;
  };

  // FAILED_PRECONDITION or UNAVAILABLE when it cannot listen there.
  static absl::StatusOr<std::unique_ptr<LocalServer>> Start(Options options, const Parts& parts);
  ~LocalServer();

  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  // RESOURCE_EXHAUSTED with a retry delay when there are too many connections or tickets.
  absl::StatusOr<v1::OpenLocalResponse> Open(const Caller& caller);
  // The store has recalls. Cheap, and does not call the store.
  void WakeForRecalls();
  // No new leases and staging memory from now on.
  void Drain() { draining_.store(true, std::memory_order_relaxed); }
  // Cuts what is overdue. Called every few tens of milliseconds.
  void Tick() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Keys of the epoll that are no connection's.
  static constexpr uint64_t kListenerKey = 0;
  static constexpr uint64_t kRecallsKey = 1;
  static constexpr uint64_t kStopKey = 2;
  static constexpr uint64_t kFirstConnectionKey = 16;

  using ConnectionPtr = std::shared_ptr<LocalConnection>;  // Its thread's, and a tick's meanwhile.

  LocalServer(Options options, const Parts& parts, PacketSocket listener);
  void Watch(int fd, uint64_t key, uint32_t events, bool again);
  void Run(size_t thread);
  void HandleEvent(uint64_t key, absl::Span<char> buffer);
  // Lets in who waits. False: there are no descriptors, and it is to be tried later: at once would
  // be again and again.
  bool Accept() ABSL_LOCKS_EXCLUDED(mutex_);
  // What has come, as far as its turn goes; false when the connection is over.
  bool Serve(LocalConnection* connection, absl::Span<char> buffer);
  absl::Status Answer(LocalConnection* connection, const v1::LocalRequest& request);
  absl::Status Hello(LocalConnection* connection, const v1::LocalRequest& request);
  void EndPrevious(absl::string_view connection) ABSL_LOCKS_EXCLUDED(mutex_);
  void Close(const ConnectionPtr& connection) ABSL_LOCKS_EXCLUDED(mutex_);
  void SendRecalls() ABSL_LOCKS_EXCLUDED(mutex_);
  ConnectionPtr Find(uint64_t key) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<ConnectionPtr> All() const ABSL_LOCKS_EXCLUDED(mutex_);
  void CountCut(const absl::Status& why);

  const Options options_;
  const Parts parts_;
  const std::string boot_id_;
  const PacketSocket listener_;
  const Descriptor epoll_;
  const Descriptor recalls_;
  const Descriptor stop_;
  LocalTickets tickets_;
  DepartedClients departed_;
  std::atomic<bool> draining_{false};
  std::atomic<bool> accept_later_{false};  // By the next tick.
  std::atomic<uint64_t> rights_seen_;
  mutable absl::Mutex mutex_;
  uint64_t next_key_ ABSL_GUARDED_BY(mutex_) = kFirstConnectionKey;
  absl::flat_hash_map<uint64_t, ConnectionPtr> connections_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace cairn::node
