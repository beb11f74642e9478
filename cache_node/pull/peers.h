// Peers: the peers of this node, by the file that lists them, with a connection to each in use.
//
// The file is re-read (files()). A peer that leaves it, or moves, keeps the pulls that run and gets
// no new ones. Thread-safe. Borrows security and parts, which outlive it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "cache_node/pull/peer_list.h"
#include "cache_node/pull/peer_source.h"
#include "common/security/watched_file.h"

namespace cairn::node {

using PeerFile = WatchedFile<PeerList>;

class Peers final : public PullSources {
 public:
  // `file` is null where there are none. `options` but for the target.
  Peers(std::unique_ptr<PeerFile> file, ClientOptions options, const ClientSecurity* security,
        const ClientParts& parts);

  absl::StatusOr<std::shared_ptr<PullSource>> Find(absl::string_view node_id) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends all that runs, and refuses what comes.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Status Poll() { return file_->Poll(); }
  bool has_file() const { return file_ != nullptr; }

 private:
  // Takes those out that the list has not, or has at another address.
  std::vector<std::shared_ptr<PeerSource>> TakeUnlisted(const PeerList& list)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Peer {
    std::string address;
    std::shared_ptr<PeerSource> source;
  };

  const std::unique_ptr<PeerFile> file_;
  const ClientOptions options_;
  const ClientSecurity* const security_;
  const ClientParts parts_;
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<std::string, Peer> peers_ ABSL_GUARDED_BY(mutex_);  // Listed ones, in use.
  // Pulls may still use them, and let them go.
  std::vector<std::weak_ptr<PeerSource>> unlisted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::node
