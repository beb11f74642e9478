// PoolKernel: attention on pages of a node's pool, called directly: the floor of serving it.
//
// The same pages, queries and number of threads as the service has; nothing is copied. Not
// thread-safe; the pins outlive it.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "cache_node/store/block_pin.h"
#include "kernels/attention/attention_runner.h"
#include "tests/kernels/spinning_pool.h"

namespace cairn::bench {

class PoolKernel {
 public:
  // One sequence for each run of pins, with one query at its end.
  PoolKernel(absl::Span<const std::vector<node::BlockPin>> sequences, uint32_t threads);

  void Run();
  // Output of the query over sequence `index`, as rows of float32.
  absl::Span<const float> OutputOf(size_t index) const;

 private:
  kernels::SpinningPool pool_;
  kernels::AttentionRunner runner_;
  std::vector<kernels::KvRegion> regions_;
  std::vector<std::vector<kernels::KvPage>> tables_;
  std::vector<std::vector<uint16_t>> queries_;
  std::vector<std::vector<float>> outputs_;
  std::vector<std::vector<float>> sums_;
  std::vector<kernels::AttentionQuery> asked_;
  std::vector<kernels::AttentionSequence> sequences_;
  kernels::AttentionBatch batch_;
};

}  // namespace cairn::bench
