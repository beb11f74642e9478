// The bench: each figure is a ratio to a floor measured in the same minute, on the same buffers.
//
// Attention: KV of the batch lies in as many copies, one after another, as make four times the
// second-level cache and more; a captured graph goes through them. Its floor is a kernel that
// only reads as many bytes the same way. Copies of the device tier: batches of slots against one
// copy of the runtime's own from pinned memory.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/problem.h"
#include "tests/gpu/backend.h"

namespace cairn::gpu_check {

// Named numbers in the order in which they came.
class BenchReport {
 public:
  // Of an emulated device only names are printed: its times mean nothing.
  explicit BenchReport(bool is_emulated) : is_emulated_(is_emulated) {}

  // Prints a row; puts key_ratio (floor over seconds), key_gb_s and key_floor_gb_s.
  void PutTimes(const std::string& key, double gigabytes, double seconds, double floor_seconds,
                const std::string& note = "");
  void Put(const std::string& key, double value) { values_.emplace_back(key, value); }
  const std::vector<std::pair<std::string, double>>& values() const { return values_; }
  // The lowest of the values whose keys begin so and end with "_ratio"; 0 without any.
  double Lowest(const std::string& prefix) const;

 private:
  const bool is_emulated_;
  std::vector<std::pair<std::string, double>> values_;
};

// Each prints its rows. On an emulated backend everything is tiny.
Problem BenchAttention(Backend* backend, BenchReport* report);
Problem BenchCopies(Backend* backend, BenchReport* report);
Problem BenchByteKernels(Backend* backend, BenchReport* report);

}  // namespace cairn::gpu_check
