// MirrorReader: follows a node's feed on a thread of its own and keeps a BlockMirror of it.
//
// Thread-safe. Borrows the client.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/block_mirror.h"
#include "client/cpp/cache_node_client.h"

namespace cairn::testing {

class MirrorReader {
 public:
  explicit MirrorReader(CacheNodeClient& client);
  ~MirrorReader();

  // Waits until every shard agrees with what `describe` says of it, which is asked again and again;
  // false after `bound`, or when the feed broke.
  bool AwaitAgreement(CacheNodeClient& describe, absl::Duration bound);
  // Waits until the node's heartbeats said that every shard is the same; false as above.
  bool AwaitExact(absl::Duration bound);

  // Asks for these shards again.
  void Resync(const std::vector<uint32_t>& shards);

  // Not OK once the feed broke.
  absl::Status status() const;
  uint64_t gaps_seen() const;
  uint64_t digest_mismatches_seen() const;
  size_t block_count() const;
  uint64_t messages() const;
  // Waits until the node said that it drains; false after `bound`.
  bool AwaitDraining(absl::Duration bound);

 private:
  void Run(CacheNodeClient& client);
  bool Agrees(const v1::DescribeResponse& node) const;

  mutable absl::Mutex mutex_;
  BlockMirror mirror_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint32_t> to_resync_ ABSL_GUARDED_BY(mutex_);
  uint64_t messages_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace cairn::testing
