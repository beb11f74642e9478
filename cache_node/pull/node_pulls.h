// NodePulls: everything that a node needs to pull from its peers, in one object.
//
// Its threads give way to all others. Stop, or the destructor, ends what runs: transfers are
// cancelled, reservations given back. Borrows store, clock and the rest, which outlive it. Thread-
// safe.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cache_node/pull/block_puller.h"
#include "cache_node/pull/byte_rate.h"
#include "cache_node/pull/peers.h"
#include "cache_node/pull/pull_board.h"
#include "cache_node/pull/pull_calls.h"
#include "cache_node/pull/pull_config.h"
#include "cache_node/pull/pull_fences.h"
#include "client/cpp/client_parts.h"
#include "common/base/random_source.h"
#include "common/identity/block_hasher.h"
#include "common/metrics/metrics.h"
#include "common/security/client_security.h"
#include "common/security/file_watch.h"
#include "common/server/executor.h"

namespace cairn::node {

class NodePulls {
 public:
  // Calls that may wait for a thread.
  static constexpr size_t kPullsQueuedMax = 256;

  // What reads files.
  struct Opened {
    std::unique_ptr<PeerFile> peers;           // Null without --peer-file.
    std::unique_ptr<ClientSecurity> security;  // Never null.
  };
  static absl::StatusOr<Opened> Open(const PullConfig& config, FileWatch::Log log);

  struct Parts {
    std::string node_id;
    BlockStore* store = nullptr;
    TenantRates* rates = nullptr;
    const PublicScope* public_scope = nullptr;  // May be null.
    const Clock* clock = nullptr;
    const BlockHasher* hasher = nullptr;
    RandomSource* random = nullptr;
    Metrics* metrics = nullptr;
    std::function<void()> settled;
    FileWatch::Log log;
  };
  NodePulls(const PullConfig& config, Opened opened, Parts parts);
  ~NodePulls();

  NodePulls(const NodePulls&) = delete;
  NodePulls& operator=(const NodePulls&) = delete;

  // No more pulls; those that run end soon.
  void Stop();

  PullCalls& calls() { return calls_; }
  PullFences& fences() { return fences_; }
  // Null where there is none.
  const FileWatch* files() const { return watch_.get(); }
  const FileWatch* security_files() const { return security_->files(); }

 private:
  const std::unique_ptr<ClientSecurity> security_;
  StoppableWait wait_;
  Peers peers_;
  PullFences fences_;
  ByteRate rate_;
  PullMetrics metrics_;
  PullBoard board_;
  BlockPuller puller_;
  std::unique_ptr<FileWatch> watch_;
  std::unique_ptr<Executor> threads_;
  PullCalls calls_;
  CallbackMetric in_hand_;
};

}  // namespace cairn::node
