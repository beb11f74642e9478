// GetSlots: how many Get calls may run at once. Each holds the pins of one frame, so their number
// bounds what slow readers keep from being evicted. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/base/check.h"

namespace cairn::node {

class GetSlots {
 public:
  explicit GetSlots(uint32_t max) : max_(max) {}
  // All must have been given back.
  ~GetSlots() { CAIRN_CHECK(taken_.load() == 0); }

  uint32_t max() const { return max_; }

  // False: all are taken.
  bool Take() {
    if (taken_.fetch_add(1) < max_) return true;
    taken_.fetch_sub(1);
    return false;
  }
  void Give() { taken_.fetch_sub(1); }

 private:
  const uint32_t max_;
  std::atomic<uint32_t> taken_{0};
};

}  // namespace cairn::node
