#include "cache_node/service/disk_bells.h"

namespace cairn::node {

DiskBells::DiskBells(size_t loaders) {
  for (size_t i = 0; i < loaders; ++i) loads_.push_back(std::make_unique<WorkBell>());
}

void DiskBells::RingLoads() {
  for (const auto& bell : loads_) bell->Ring();
}

void DiskBells::RingAll() {
  spills_.Ring();
  room_.Ring();
  RingLoads();
}

}  // namespace cairn::node
