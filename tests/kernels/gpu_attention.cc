#include "tests/kernels/gpu_attention.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>

#include "kernels/gpu/attention_choice.h"
#include "kernels/gpu/attention_launch.h"

namespace cairn::kernels {
namespace {

using simt::emulated::LaunchReport;
using simt::emulated::MemoryRegistry;

// What a case has on the device while it runs. KV is there as it is, poison and all.
class CaseMemory {
 public:
  CaseMemory(AttentionCase& a_case, MemoryRegistry* registry) : registry_(registry) {
    Add(a_case.kv().base(), a_case.kv().bytes());
    Add(a_case.queries().data(), a_case.queries().size());
    const std::vector<AttentionQuery>& queries = a_case.query_list();
    if (queries.empty()) return;
    const uint64_t rows = queries.size() * a_case.batch().query_heads;
    Add(queries[0].output, rows * OutputDim(a_case.batch()) * sizeof(float));
    Add(queries[0].log_sum_exp, rows * sizeof(float));
  }
  ~CaseMemory() {
    for (const void* base : bases_) registry_->Remove(base);
  }
  CaseMemory(const CaseMemory&) = delete;
  CaseMemory& operator=(const CaseMemory&) = delete;

 private:
  void Add(const void* base, uint64_t bytes) {
    if (bytes == 0) return;
    registry_->Add(base, bytes);
    bases_.push_back(base);
  }

  MemoryRegistry* const registry_;
  std::vector<const void*> bases_;
};

}  // namespace

DeviceBytes::DeviceBytes(MemoryRegistry* registry, uint64_t bytes)
    : blocks_(bytes / sizeof(Block) + 1) {
  const uint64_t size = blocks_.size() * sizeof(Block);
  std::memset(data(), 0xff, size);
  registry->Add(data(), size);
}

EmulatedAttention::EmulatedAttention(const GpuAttentionSizes& sizes, const EmulatedRun& run)
    : sizes_(sizes),
      run_(run),
      plan_(&registry_, sizes.plan_bytes),
      counters_(&registry_, sizes.counter_bytes),
      partials_(&registry_, sizes.partial_bytes),
      executor_({run.order, run.seed}, &registry_) {
  std::memset(counters_.data(), 0, sizes.counter_bytes);
}

Problem EmulatedAttention::Run(AttentionCase& a_case) {
  Problem problem = PlanGpuAttention(a_case.batch(), plan_.data(), sizes_.plan_bytes);
  if (!problem.empty()) return problem;
  GpuAttention attention = GpuAttentionOf(a_case.batch());
  attention.plan = plan_.data();
  attention.counters = reinterpret_cast<uint32_t*>(counters_.data());
  attention.partials = reinterpret_cast<float*>(partials_.data());
  attention.blocks = run_.blocks;
  if (run_.blocks == 0) {
    attention.blocks = static_cast<uint32_t>(std::max<uint64_t>(sizes_.items, 1));
  }
  const CaseMemory memory(a_case, &registry_);
  simt::LaunchTarget target;
  target.executor = &executor_;
  if (run_.shared_bytes_max == 0) {
    problem = LaunchAttention(attention, target);
  } else {
    problem = LaunchChosen(attention, {run_.shared_bytes_max, false}, target);
  }
  EXPECT_TRUE(std::all_of(counters_.data(), counters_.data() + sizes_.counter_bytes,
                          [](std::byte byte) { return byte == std::byte{0}; }));
  return problem;
}

Problem RunEmulated(AttentionCase& a_case, const EmulatedRun& run, LaunchReport* report) {
  GpuAttentionSizes sizes;
  Problem problem = GpuAttentionSizesOf(a_case.batch(), &sizes);
  if (!problem.empty()) return problem;
  EmulatedAttention attention(sizes, run);
  problem = attention.Run(a_case);
  *report = attention.TakeReport();
  return problem;
}

AttentionPath EmulatedGpuPath(const EmulatedRun& run) {
  const auto run_case = [run](AttentionCase& a_case, uint32_t) {
    LaunchReport report;
    Problem problem = RunEmulated(a_case, run, &report);
    EXPECT_EQ(report.matrix_bank_conflicts, 0u);
    return problem;
  };
  const auto tolerance = [](const KvShape& shape) {
    return shape.dtype == KvDtype::kFloat32 ? 1e-5 : 4e-3;
  };
  return {"EmulatedGpu", run_case, tolerance};
}

}  // namespace cairn::kernels
