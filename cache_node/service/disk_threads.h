// DiskThreads: the threads that run the movers of cache_node/spill.
//
// One writes, one makes room, some load, one finds again what was on disk before the start, one
// looks after a tier that is full or failing. Each may wait for the disk as long as that takes, and
// nothing else waits for them. All but the loaders, whose readers wait, give way to other threads.
//
// Thread-safe but for Open, Start and destruction. Borrows all, which must outlive it.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "cache_node/service/disk_bells.h"
#include "cache_node/spill/disk_recovery.h"
#include "cache_node/spill/file_reclaimer.h"
#include "cache_node/spill/health_probe.h"
#include "cache_node/spill/spill_writer.h"
#include "cache_node/store/block_store.h"
#include "cache_node/tiers/disk/disk_tier.h"
#include "common/base/clock.h"
#include "common/metrics/metric_handles.h"
#include "common/server/wake_event.h"

namespace cairn::node {

class DiskThreads {
 public:
  // A thread that found nothing to do looks again after so long, whatever it was told.
  static constexpr absl::Duration kIdle = absl::Milliseconds(200);
  static constexpr absl::Duration kDrainPause = absl::Milliseconds(10);  // The same in a drain.
  static constexpr absl::Duration kProbe = absl::Milliseconds(50);
  // Of a drain: how often blocks are queued before those queued are written.
  static constexpr int kQueueingsPerRound = 64;
  // Between tries of a recovery that failed, doubled from the first to the second.
  static constexpr absl::Duration kRecoveryPauseMin = absl::Milliseconds(100);
  static constexpr absl::Duration kRecoveryPauseMax = absl::Seconds(5);

  struct Parts {
    DiskTier* tier = nullptr;
    BlockStore* store = nullptr;
    DiskBells* bells = nullptr;  // One loader for each of its loaders.
    const Clock* clock = nullptr;
    SpillWriter::Options spill;
    FileReclaimer::Options reclaim;
    Histogram load_seconds;
  };

  explicit DiskThreads(const Parts& parts);
  // Ends them: what was begun is given up, or after Drain finished. Returns when the disk has
  // answered the calls that are under way.
  ~DiskThreads();

  DiskThreads(const DiskThreads&) = delete;
  DiskThreads& operator=(const DiskThreads&) = delete;

  // What must be known before the first call is answered, on this thread. Where the disk does not
  // say it now, the recovery asks again.
  void Open();
  // Once, after Open.
  void Start();

  // From now on blocks that are only in host memory are written too, and files do not wait for more
  // blocks.
  void Drain();
  // Drain was called and nothing was left to write at last, or the tier takes nothing.
  bool drained() const { return drained_.load(); }

 private:
  void Spill();
  // 0: all blocks are queued or written.
  size_t QueueHostBlocks();
  // One round of a drain, after the writer found no more to do.
  void DrainOnce(SpillWriter& writer, size_t segments_left);
  void Reclaim();
  void Load(size_t loader);
  void Recover();
  void Probe();

  const Parts parts_;
  DiskRecovery recovery_;
  bool opened_ = false;
  std::atomic<bool> draining_{false};
  std::atomic<bool> drained_{false};
  std::atomic<bool> stopping_{false};
  WakeEvent stop_;
  std::vector<std::thread> threads_;
};

}  // namespace cairn::node
