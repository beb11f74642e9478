#include "cache_node/service/device_threads.h"

#include "cache_node/spill/device_filler.h"
#include "cache_node/spill/device_loader.h"
#include "common/server/thread_name.h"
#include "common/server/thread_priority.h"

namespace cairn::node {

DeviceThreads::DeviceThreads(DeviceTier* tier, BlockStore* store, DeviceBells* bells)
    : tier_(tier), store_(store), bells_(bells) {
  threads_.emplace_back([this] { Fill(); });
  threads_.emplace_back([this] { Load(); });
}

DeviceThreads::~DeviceThreads() {
  stopping_.store(true);
  bells_->uploads.Ring();
  bells_->loads.Ring();
  for (std::thread& thread : threads_) thread.join();
}

void DeviceThreads::Fill() {
  NameThisThread("device-fill");
  LowerThisThread();
  DeviceFiller filler(tier_, store_);
  while (!stopping_.load()) {
    while (!stopping_.load() && filler.Step()) {
    }
    if (!stopping_.load()) bells_->uploads.WaitFor(kIdle);
  }
}

void DeviceThreads::Load() {
  NameThisThread("device-load");
  DeviceLoader loader(tier_, store_);
  while (!stopping_.load()) {
    while (!stopping_.load() && loader.Step()) {
    }
    if (!stopping_.load()) bells_->loads.WaitFor(kIdle);
  }
}

}  // namespace cairn::node
