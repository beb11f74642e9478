// DiskBells: what wakes the threads of the disk tier. Made before the store, whose signals ring.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "cache_node/service/work_bell.h"

namespace cairn::node {

class DiskBells {
 public:
  explicit DiskBells(size_t loaders);

  size_t loaders() const { return loads_.size(); }

  WorkBell& spills() { return spills_; }  // A block may be written.
  WorkBell& room() { return room_; }      // Something was written.
  // Of one loader.
  WorkBell& loads(size_t loader) { return *loads_[loader]; }
  void RingLoads();
  void RingAll();

 private:
  WorkBell spills_;
  WorkBell room_;
  std::vector<std::unique_ptr<WorkBell>> loads_;
};

}  // namespace cairn::node
