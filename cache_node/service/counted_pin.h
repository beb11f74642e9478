// CountedPin: a BlockPin whose end can be waited for.
//
// gRPC destroys the slices of a sent frame when it likes, perhaps after its call and its server are
// gone; the store must outlive them all. (Its own count of pins has those of open leases too, which
// end with it.) A PinCount must outlive its pins.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "cache_node/store/block_pin.h"

namespace cairn::node {

// How many CountedPins live. Thread-safe.
class PinCount {
 public:
  uint64_t pins() const { return pins_.load(); }

 private:
  friend class CountedPin;
  std::atomic<uint64_t> pins_{0};
};

class CountedPin {
 public:
  CountedPin(BlockPin pin, PinCount* count) : share_(count), pin_(std::move(pin)) {}

  CountedPin(const CountedPin&) = delete;
  CountedPin& operator=(const CountedPin&) = delete;

  const BlockPin& pin() const { return pin_; }

 private:
  struct Share {
    explicit Share(PinCount* count) : count(count) { count->pins_.fetch_add(1); }
    ~Share() { count->pins_.fetch_sub(1); }
    PinCount* const count;
  };

  const Share share_;  // Before the pin: it is given back after the pin ended.
  const BlockPin pin_;
};

}  // namespace cairn::node
