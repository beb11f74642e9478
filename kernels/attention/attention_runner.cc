#include "kernels/attention/attention_runner.h"

#include <algorithm>

#include "kernels/attention/attention_plan.h"
#include "kernels/attention/attention_strand.h"
#include "kernels/attention/avx512_tile.h"
#include "kernels/attention/portable_tile.h"

namespace cairn::kernels {
namespace {

// Runs of items that a strand takes at once: short enough to share the work evenly, long enough
// that items of one sequence, which share packed queries, mostly stay together.
constexpr uint64_t kRunsOfWorker = 8;

const TileOps* OpsFor(CpuPath path, const AttentionBatch& batch) {
  if (path == CpuPath::kAvx512Bf16) {
    TileGeometry geometry;
    geometry.key_dim = batch.shape.key_dim;
    geometry.value_dim = OutputDim(batch);
    geometry.dtype = batch.shape.dtype;
    const TileOps* ops = Avx512TileOps();
    if (ops->does(geometry)) return ops;
  }
  return PortableTileOps(path);
}

struct Work {
  AttentionPlan* plan;
  std::vector<std::unique_ptr<AttentionStrand>>* strands;
  ItemQueue* queue;
};

void RunStrand(void* context, uint32_t index) {
  Work* const work = static_cast<Work*>(context);
  (*work->strands)[index]->Run(work->plan, work->queue);
}

}  // namespace

AttentionRunner::AttentionRunner(CpuPath path, WorkerPool* pool)
    : path_(path), pool_(pool), plan_(std::make_unique<AttentionPlan>()) {}

AttentionRunner::~AttentionRunner() = default;

Problem AttentionRunner::Run(const AttentionBatch& batch) {
  Problem problem = ValidateAttention(batch);
  if (!problem.empty()) return problem;
  const uint64_t workers = std::max<uint64_t>(pool_->workers(), 1);
  problem = plan_->Make(batch, OpsFor(path_, batch), workers, kPartialBytesMax);
  if (!problem.empty() || plan_->items == 0) return problem;
  const uint32_t strands = static_cast<uint32_t>(std::min(workers, plan_->items));
  while (strands_.size() < strands) strands_.push_back(std::make_unique<AttentionStrand>());
  for (uint32_t i = 0; i < strands; ++i) strands_[i]->Prepare(*plan_);
  ItemQueue queue(plan_->items, std::max<uint64_t>(1, plan_->items / (strands * kRunsOfWorker)));
  Work work = {plan_.get(), &strands_, &queue};
  pool_->Run(strands, RunStrand, &work);
  return "";
}

}  // namespace cairn::kernels
