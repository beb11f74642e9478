// DecodeBytes: what requests of served attention and their answers hold in memory, within a bound.
//
// Taken when a request was read, given back when its answer is in the transport. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace cairn::node {

class DecodeBytes {
 public:
  explicit DecodeBytes(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // False: there is no room.
  bool Take(uint64_t bytes) {
    if (bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= bytes_max_) return true;
    Give(bytes);
    refused_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  void Give(uint64_t bytes) { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  uint64_t bytes_max() const { return bytes_max_; }
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  const uint64_t bytes_max_;
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> refused_{0};
};

}  // namespace cairn::node
