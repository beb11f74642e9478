// DiskLoad: threads that use a node with a disk tier at random until it is gone, each under a seed
// of its own, and say what broke the contract on the way.
//
// Calls that fail are no breach: the node may die at any moment, and a small pool is often full.
#pragma once

#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "client/cpp/cache_node_client.h"
#include "tests/cluster/disk_history.h"

namespace cairn::testing {

class DiskLoad {
 public:
  struct Options {
    std::string address = {};
    uint64_t seed = 1;
    int threads = 4;
    size_t prompt_blocks = 8;
    std::vector<std::string> salts = {"a"};
    // How often each is chosen, against the sum of all.
    uint32_t put = 1;
    uint32_t read = 1;      // Under a lease that waits for loads.
    uint32_t prefetch = 1;  // A lookup with promote.
    uint32_t clear = 0;
    uint32_t retire = 0;
    // A thread that put something goes on when no more than so much waits to be written, so that
    // not all is evicted before.
    uint64_t spill_queue_bytes_max = uint64_t{4} << 20;
    // The kill is due with that call.
    uint64_t calls_until_kill = 100;
  };

  // Begins. The history outlives it. The namespace is registered by each thread again, once it was
  // retired.
  DiskLoad(const Options& options, DiskHistory* history);
  // Ends it: waits for the calls under way.
  ~DiskLoad();

  // Waits until the calls were made; false after `bound`.
  bool AwaitKillDue(absl::Duration bound) {
    return kill_is_due_.WaitForNotificationWithTimeout(bound);
  }
  // The node is dead: calls fail from now on, and end the threads. Waits for them.
  void End();

  // After End: empty unless the contract was broken.
  std::string breach() const {
    absl::MutexLock lock(&mutex_);
    return breach_;
  }
  uint64_t blocks_read() const { return blocks_read_; }

 private:
  class Caller;

  void Run(uint64_t seed);
  void Breach(const std::string& what);

  const Options options_;
  DiskHistory* const history_;
  std::atomic<bool> over_{false};
  std::atomic<uint64_t> calls_{0};
  std::atomic<uint64_t> blocks_read_{0};
  absl::Notification kill_is_due_;
  mutable absl::Mutex mutex_;
  std::string breach_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace cairn::testing
