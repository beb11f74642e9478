// AttentionRunner: attention on the CPU, at the memory's speed.
//
// KV is cut into chunks at multiples that depend on a sequence's length alone, chunks are merged in
// order, and rows are grouped by their own sequence alone: a result's bits depend on its sequence
// (KV and all of its queries), never on threads or on the other sequences of the batch. Head h of
// one KV head's group and all queries of a sequence share each read of KV.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/cpu_path.h"
#include "kernels/worker_pool.h"

namespace cairn::kernels {

struct AttentionPlan;
class AttentionStrand;

// Not thread-safe: one Run at a time. Keeps its memory between runs, so that runs of one size
// allocate nothing.
class AttentionRunner {
 public:
  // REQUIRES: IsAvailable(path). `pool` is not owned and outlives the runner.
  AttentionRunner(CpuPath path, WorkerPool* pool);
  ~AttentionRunner();

  AttentionRunner(const AttentionRunner&) = delete;
  AttentionRunner& operator=(const AttentionRunner&) = delete;

  // Fills outputs and log-sum-exps. On a problem (ValidateAttention, or partial results beyond
  // kPartialBytesMax) nothing was written.
  [[nodiscard]] Problem Run(const AttentionBatch& batch);

  static constexpr uint64_t kPartialBytesMax = uint64_t{1} << 30;

 private:
  const CpuPath path_;
  WorkerPool* const pool_;
  std::unique_ptr<AttentionPlan> plan_;
  std::vector<std::unique_ptr<AttentionStrand>> strands_;
};

}  // namespace cairn::kernels
