// NodeClients: one CacheNodeClient for each node address that is in use.
//
// A router answers addresses; connections to them are made once and kept. Bounded: past the bound
// the client that was asked for longest ago is dropped. Thread-safe. It knows nothing of whether a
// node lives.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/cache_node_client.h"

namespace cairn {

inline constexpr size_t kNodeClientsMax = 1024;

class NodeClients {
 public:
  // `options` but for the target. Borrows the parts; they outlive it and every client.
  NodeClients(const ClientOptions& options, const ClientParts& parts,
              size_t clients_max = kNodeClientsMax);

  // INVALID_ARGUMENT for an address that no client can be made for. Shared, because a request keeps
  // its client while the bound drops it here.
  absl::StatusOr<std::shared_ptr<CacheNodeClient>> Get(absl::string_view address)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const Clock* clock() const { return parts_.clock; }

 private:
  struct Entry {
    std::shared_ptr<CacheNodeClient> client;
    std::list<std::string>::iterator place;
  };

  const ClientOptions options_;
  const ClientParts parts_;
  const size_t clients_max_;
  absl::Mutex mutex_;
  // The most recently asked for first; one entry of by_address_ each.
  std::list<std::string> by_use_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Entry> by_address_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
