#include "cache_node/service/disk_threads.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "cache_node/spill/block_loader.h"
#include "cache_node/spill/fence_pruner.h"
#include "common/base/check.h"
#include "common/server/thread_name.h"
#include "common/server/thread_priority.h"

namespace cairn::node {

DiskThreads::DiskThreads(const Parts& parts) : parts_(parts), recovery_(parts.tier, parts.store) {}

DiskThreads::~DiskThreads() {
  stopping_.store(true);
  stop_.Set();
  parts_.bells->RingAll();
  for (std::thread& thread : threads_) thread.join();
}

void DiskThreads::Open() {
  CAIRN_CHECK(threads_.empty());
  opened_ = recovery_.Open().ok();
}

void DiskThreads::Start() {
  CAIRN_CHECK(threads_.empty());
  threads_.emplace_back([this] { Spill(); });
  threads_.emplace_back([this] { Reclaim(); });
  threads_.emplace_back([this] { Recover(); });
  threads_.emplace_back([this] { Probe(); });
  for (size_t i = 0; i < parts_.bells->loaders(); ++i) {
    threads_.emplace_back([this, i] { Load(i); });
  }
}

void DiskThreads::Drain() {
  draining_.store(true);
  parts_.bells->spills().Ring();
}

void DiskThreads::Spill() {
  NameThisThread("disk-spill");
  LowerThisThread();
  SpillWriter writer(parts_.spill, parts_.tier, parts_.store);
  while (!stopping_.load()) {
    const bool draining = draining_.load();
    const size_t segments_left = draining ? QueueHostBlocks() : 0;
    while (!stopping_.load() && writer.Step(parts_.clock->SteadyNow(), parts_.clock->WallNow())) {
      parts_.bells->room().Ring();
    }
    if (draining && !stopping_.load()) DrainOnce(writer, segments_left);
    const absl::Duration due = writer.due() - parts_.clock->SteadyNow();
    parts_.bells->spills().WaitFor(std::min(due, draining ? kDrainPause : kIdle));
  }
  if (draining_.load()) writer.Flush();
}

size_t DiskThreads::QueueHostBlocks() {
  size_t segments_left = 1;
  for (int i = 0; i < kQueueingsPerRound && segments_left > 0; ++i) {
    segments_left = parts_.store->QueueHostBlocks();
  }
  return segments_left;
}

void DiskThreads::DrainOnce(SpillWriter& writer, size_t segments_left) {
  writer.Flush();
  const bool nothing_left = segments_left == 0 && parts_.store->Status().spill_queue_blocks == 0;
  const bool takes_nothing = parts_.tier->GetStats().health == DiskTier::Health::kFailing;
  drained_.store(nothing_left || takes_nothing);
}

void DiskThreads::Reclaim() {
  NameThisThread("disk-reclaim");
  LowerThisThread();
  FileReclaimer reclaimer(parts_.reclaim, parts_.tier, parts_.store);
  while (!stopping_.load()) {
    while (!stopping_.load() && reclaimer.Step(parts_.clock->WallNow())) {
    }
    parts_.bells->room().WaitFor(kIdle);
  }
}

void DiskThreads::Load(size_t loader) {
  NameThisThread(absl::StrCat("disk-load-", loader));
  BlockLoader mover(parts_.tier, parts_.store);
  while (!stopping_.load()) {
    const absl::Time began = parts_.clock->SteadyNow();
    if (mover.Step()) {
      parts_.load_seconds.Observe(absl::ToDoubleSeconds(parts_.clock->SteadyNow() - began));
    } else {
      parts_.bells->loads(loader).WaitFor(kIdle);
    }
  }
}

void DiskThreads::Recover() {
  NameThisThread("disk-recover");
  LowerThisThread();
  absl::Duration pause = kRecoveryPauseMin;
  while (!stopping_.load()) {
    if (!opened_) opened_ = recovery_.Open().ok();
    if (opened_ &&
        recovery_.Recover(parts_.clock->WallNow(), [this] { return !stopping_.load(); }).ok()) {
      return;
    }
    stop_.WaitFor(pause);
    pause = std::min(2 * pause, kRecoveryPauseMax);
  }
}

void DiskThreads::Probe() {
  NameThisThread("disk-probe");
  LowerThisThread();
  HealthProbe probe(parts_.tier, parts_.store);
  FencePruner pruner(parts_.tier, parts_.store);
  while (!stop_.WaitFor(kProbe)) {
    probe.Step(parts_.clock->SteadyNow());
    pruner.Step(parts_.clock->SteadyNow());
  }
}

}  // namespace cairn::node
