#include "tests/bench/served/pool_kernel.h"

#include "common/base/check.h"
#include "kernels/cpu_path.h"
#include "tests/bench/served/served_node.h"

namespace cairn::bench {

PoolKernel::PoolKernel(absl::Span<const std::vector<node::BlockPin>> sequences, uint32_t threads)
    : pool_(threads), runner_(kernels::BestCpuPath(), &pool_) {
  const size_t row = size_t{kServedQueryHeads} * kServedHeadDim;
  for (size_t s = 0; s < sequences.size(); ++s) {
    std::vector<kernels::KvPage>& table = tables_.emplace_back();
    for (const node::BlockPin& pin : sequences[s]) {
      table.push_back({.region = regions_.size(), .offset = 0});
      regions_.push_back(
          {reinterpret_cast<const std::byte*>(pin.bytes().data()), pin.bytes().size()});
    }
    queries_.push_back(QueryRow(static_cast<uint32_t>(s)));
    outputs_.emplace_back(row);
    sums_.emplace_back(kServedQueryHeads);
  }
  for (size_t s = 0; s < sequences.size(); ++s) {
    const uint64_t tokens = tables_[s].size() * uint64_t{kServedBlockTokens};
    asked_.push_back({.position = tokens - 1,
                      .query = queries_[s].data(),
                      .output = outputs_[s].data(),
                      .log_sum_exp = sums_[s].data()});
  }
  for (size_t s = 0; s < sequences.size(); ++s) {
    sequences_.push_back({.pages = tables_[s].data(),
                          .page_count = tables_[s].size(),
                          .kv_tokens = asked_[s].position + 1,
                          .first_position = 0,
                          .queries = &asked_[s],
                          .query_count = 1});
  }
  batch_.shape = {.kv_heads = kServedKvHeads,
                  .page_tokens = kServedBlockTokens,
                  .key_dim = kServedHeadDim,
                  .value_dim = kServedHeadDim,
                  .dtype = kernels::KvDtype::kBfloat16,
                  .scales = kernels::KvScales::kNone};
  batch_.query_heads = kServedQueryHeads;
  batch_.query_dtype = kernels::KvDtype::kBfloat16;
  batch_.softmax_scale = 0.088f;
  batch_.regions = {.regions = regions_.data(), .count = regions_.size(), .segment_offset = 0};
  batch_.sequences = sequences_.data();
  batch_.sequence_count = sequences_.size();
}

void PoolKernel::Run() {
  const kernels::Problem problem = runner_.Run(batch_);
  CAIRN_CHECK_MSG(problem.empty(), problem);
}

absl::Span<const float> PoolKernel::OutputOf(size_t index) const { return outputs_[index]; }

}  // namespace cairn::bench
