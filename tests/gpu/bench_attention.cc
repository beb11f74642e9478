#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/gpu/attention.h"
#include "kernels/kv_segment.h"
#include "tests/gpu/bench.h"
#include "tests/gpu/gpu_rig.h"

namespace cairn::gpu_check {
namespace {

using kernels::AttentionBatch;
using kernels::AttentionQuery;
using kernels::AttentionSequence;
using kernels::GpuAttention;
using kernels::KvDtype;
using kernels::KvPage;
using kernels::KvRegion;

constexpr uint32_t kKvHeads = 8;
constexpr uint32_t kDim = 128;
constexpr uint32_t kPageTokens = 16;
constexpr uint64_t kCacheMultiple = 4;
constexpr uint32_t kReplays = 20;
constexpr uint32_t kBlocksPerProcessorMax = 4;

struct Load {
  KvDtype dtype = KvDtype::kBfloat16;
  uint64_t sequences = 0;
  uint64_t tokens = 0;  // Of each.
};

// One load's memory on the device, `copies` times, and the plans that read one copy each.
class AttentionBench {
 public:
  AttentionBench(Backend* backend, const Load& load)
      : backend_(backend),
        load_(load),
        rig_(backend->device(), backend->kernels(), backend->registry()) {
    shape_.dtype = load.dtype;
    shape_.kv_heads = kKvHeads;
    shape_.page_tokens = kPageTokens;
    shape_.key_dim = kDim;
    shape_.value_dim = kDim;
    segment_bytes_ = SegmentOf(shape_).bytes;
    pages_ = load.sequences * (load.tokens / kPageTokens);
    bytes_ = pages_ * segment_bytes_;
    copies_ = backend->facts().second_level_bytes * kCacheMultiple / bytes_ + 2;
    kv_ = std::make_unique<DeviceArray<std::byte>>(&rig_, copies_ * bytes_);
    sink_ = std::make_unique<DeviceArray<uint32_t>>(&rig_, std::vector<uint32_t>{0});
  }

  uint64_t bytes() const { return bytes_; }

  Problem Fill() {
    rig_.Note(
        backend_->Fill(load_.dtype == KvDtype::kBfloat16 ? FillKind::kBfloat16 : FillKind::kFloat8,
                       kv_->data(), copies_ * bytes_, rig_.stream()));
    rig_.Finish();
    return rig_.TakeProblem();
  }

  // Seconds to read one copy.
  Problem TimeRead(double* seconds) {
    std::vector<Step> steps;
    for (uint64_t c = 0; c < copies_; ++c) {
      steps.push_back([this, c](kernels::Stream stream) {
        return backend_->Read(kv_->data() + c * bytes_, bytes_, sink_->data(), stream);
      });
    }
    const Problem problem = backend_->Time(steps, kReplays, true, seconds);
    *seconds /= static_cast<double>(copies_);
    return problem;
  }

  // Likewise by the runs of each page and head, pages in the order of the table.
  Problem TimeReadRuns(double* seconds) {
    const uint64_t run_bytes = RowBytes(shape_.dtype, kDim) * kPageTokens;
    std::vector<std::unique_ptr<DeviceArray<uint32_t>>> orders;
    std::vector<Step> steps;
    for (uint64_t c = 0; c < copies_; ++c) {
      std::vector<uint32_t> order;
      const std::vector<KvPage> pages = PagesOf(c);
      // Keys and values of one head after the other, as they are read.
      for (uint64_t head = 0; head < kKvHeads; ++head) {
        for (const KvPage& page : pages) {
          order.push_back(static_cast<uint32_t>(page.offset / run_bytes + head));
          order.push_back(static_cast<uint32_t>(page.offset / run_bytes + kKvHeads + head));
        }
      }
      orders.push_back(std::make_unique<DeviceArray<uint32_t>>(&rig_, order));
      steps.push_back([this, run_bytes, runs = order.size(),
                       list = orders.back()->data()](kernels::Stream stream) {
        return backend_->ReadRuns(kv_->data(), list, runs, static_cast<uint32_t>(run_bytes),
                                  sink_->data(), stream);
      });
    }
    Problem problem = rig_.TakeProblem();
    if (problem.empty()) problem = backend_->Time(steps, kReplays, true, seconds);
    *seconds /= static_cast<double>(copies_);
    return problem;
  }

  // Seconds of attention over one copy with `group` query heads a KV head: the best over how many
  // blocks a processor gets, 0 for one block an item.
  Problem TimeAttention(uint32_t group, double* seconds, uint32_t* blocks_per_processor) {
    Problem problem = MakePlans(group);
    *seconds = std::numeric_limits<double>::infinity();
    for (uint32_t blocks = 0; blocks <= kBlocksPerProcessorMax && problem.empty(); ++blocks) {
      double taken = 0;
      problem = TimePlans(blocks == 0 ? std::numeric_limits<uint64_t>::max()
                                      : uint64_t{blocks} * backend_->facts().processors,
                          &taken);
      if (taken >= *seconds) continue;
      *seconds = taken;
      *blocks_per_processor = blocks;
    }
    return problem;
  }

 private:
  struct Plan {
    GpuAttention call;
    uint64_t items = 0;
    std::unique_ptr<DeviceArray<std::byte>> plan;
    std::unique_ptr<DeviceArray<std::byte>> partials;
    std::unique_ptr<DeviceArray<uint32_t>> counters;
  };

  // Each copy's pages in an order of its own.
  std::vector<KvPage> PagesOf(uint64_t copy) const {
    std::vector<KvPage> pages;
    for (uint64_t p = 0; p < pages_; ++p) {
      pages.push_back({0, copy * bytes_ + p * segment_bytes_});
    }
    std::shuffle(pages.begin(), pages.end(), std::mt19937_64(copy + 1));
    return pages;
  }

  Problem MakePlans(uint32_t group) {
    const uint64_t heads = uint64_t{group} * kKvHeads;
    queries_ = std::make_unique<DeviceArray<std::byte>>(&rig_, load_.sequences * heads * kDim * 2);
    outputs_ = std::make_unique<DeviceArray<float>>(&rig_, load_.sequences * heads * kDim);
    sums_ = std::make_unique<DeviceArray<float>>(&rig_, load_.sequences * heads);
    rig_.Note(backend_->Fill(FillKind::kBfloat16, queries_->data(),
                             load_.sequences * heads * kDim * 2, rig_.stream()));
    rig_.Finish();
    plans_.clear();
    Problem problem = rig_.TakeProblem();
    for (uint64_t c = 0; c < copies_ && problem.empty(); ++c) problem = MakePlan(group, c);
    return problem;
  }

  Problem MakePlan(uint32_t group, uint64_t copy) {
    const uint64_t heads = uint64_t{group} * kKvHeads;
    const std::vector<KvPage> pages = PagesOf(copy);
    const KvRegion region = {kv_->data(), copies_ * bytes_};
    std::vector<AttentionQuery> queries;
    for (uint64_t s = 0; s < load_.sequences; ++s) {
      queries.push_back({load_.tokens - 1, queries_->data() + s * heads * kDim * 2,
                         outputs_->data() + s * heads * kDim, sums_->data() + s * heads});
    }
    std::vector<AttentionSequence> sequences;
    const uint64_t sequence_pages = load_.tokens / kPageTokens;
    for (uint64_t s = 0; s < load_.sequences; ++s) {
      sequences.push_back(
          {&pages[s * sequence_pages], sequence_pages, load_.tokens, 0, &queries[s], 1});
    }
    AttentionBatch batch;
    batch.shape = shape_;
    batch.query_heads = static_cast<uint32_t>(heads);
    batch.query_dtype = KvDtype::kBfloat16;
    batch.softmax_scale = 0.088f;
    batch.regions = {&region, 1, 0};
    batch.sequences = sequences.data();
    batch.sequence_count = sequences.size();

    kernels::GpuAttentionSizes sizes;
    Problem problem = GpuAttentionSizesOf(batch, &sizes);
    std::vector<Line> plan((sizes.plan_bytes + sizeof(Line) - 1) / sizeof(Line));
    auto* const plan_bytes = reinterpret_cast<std::byte*>(plan.data());
    if (problem.empty()) problem = PlanGpuAttention(batch, plan_bytes, sizes.plan_bytes);
    if (!problem.empty()) return problem;
    Plan made;
    made.items = sizes.items;
    made.plan = std::make_unique<DeviceArray<std::byte>>(&rig_, sizes.plan_bytes);
    rig_.Upload(made.plan->data(), plan_bytes, sizes.plan_bytes);
    made.partials = std::make_unique<DeviceArray<std::byte>>(&rig_, sizes.partial_bytes);
    made.counters = std::make_unique<DeviceArray<uint32_t>>(
        &rig_, std::vector<uint32_t>(sizes.counter_bytes / sizeof(uint32_t), 0));
    made.call = GpuAttentionOf(batch);
    made.call.plan = made.plan->data();
    made.call.counters = made.counters->data();
    made.call.partials = reinterpret_cast<float*>(made.partials->data());
    plans_.push_back(std::move(made));
    return rig_.TakeProblem();
  }

  Problem TimePlans(uint64_t blocks, double* seconds) {
    std::vector<Step> steps;
    for (Plan& plan : plans_) {
      plan.call.blocks = static_cast<uint32_t>(std::min(blocks, plan.items));
      steps.push_back([this, &plan](kernels::Stream stream) {
        return backend_->kernels()->Attention(plan.call, stream);
      });
    }
    const Problem problem = backend_->Time(steps, kReplays, true, seconds);
    *seconds /= static_cast<double>(copies_);
    return problem;
  }

  struct alignas(16) Line {
    std::byte bytes[16];
  };

  Backend* const backend_;
  const Load load_;
  GpuRig rig_;
  kernels::KvShape shape_;
  uint64_t segment_bytes_ = 0;
  uint64_t pages_ = 0;
  uint64_t bytes_ = 0;
  uint64_t copies_ = 0;
  std::unique_ptr<DeviceArray<std::byte>> kv_;
  std::unique_ptr<DeviceArray<uint32_t>> sink_;
  std::unique_ptr<DeviceArray<std::byte>> queries_;
  std::unique_ptr<DeviceArray<float>> outputs_;
  std::unique_ptr<DeviceArray<float>> sums_;
  std::vector<Plan> plans_;
};

Problem BenchLoad(Backend* backend, const Load& load, BenchReport* report) {
  AttentionBench bench(backend, load);
  Problem problem = bench.Fill();
  double read = 0;
  if (problem.empty()) problem = bench.TimeRead(&read);
  double read_runs = 0;
  if (problem.empty()) problem = bench.TimeReadRuns(&read_runs);
  const double gigabytes = static_cast<double>(bench.bytes()) / 1e9;
  const bool is_bf16 = load.dtype == KvDtype::kBfloat16;
  for (const uint32_t group : {1, 4, 8}) {
    double seconds = 0;
    uint32_t blocks = 0;
    if (problem.empty()) problem = bench.TimeAttention(group, &seconds, &blocks);
    if (!problem.empty()) return problem;
    const std::string key = std::string(is_bf16 ? "gpu_bf16" : "gpu_fp8") + "_g" +
                            std::to_string(group) + "_" + std::to_string(load.sequences) + "x" +
                            std::to_string(load.tokens);
    report->Put(key + "_run_floor_gb_s", gigabytes / read_runs);
    report->PutTimes(
        key, gigabytes, seconds, read,
        blocks == 0 ? ", a block an item" : ", blocks a processor " + std::to_string(blocks));
  }
  return "";
}

}  // namespace

Problem BenchAttention(Backend* backend, BenchReport* report) {
  // 0.27, 1.07 and 2.15 GB of KV each.
  std::vector<Load> loads = {
      {KvDtype::kBfloat16, 8, 8192},      {KvDtype::kBfloat16, 8, 32768},
      {KvDtype::kBfloat16, 64, 8192},     {KvDtype::kFloat8E4m3fn, 8, 16384},
      {KvDtype::kFloat8E4m3fn, 64, 8192},
  };
  if (backend->facts().is_emulated) {
    loads = {{KvDtype::kBfloat16, 2, 32}, {KvDtype::kFloat8E4m3fn, 1, 32}};
  }
  for (const Load& load : loads) {
    const Problem problem = BenchLoad(backend, load, report);
    if (!problem.empty()) return problem;
  }
  report->Put("gpu_bf16_ratio", report->Lowest("gpu_bf16_g"));
  report->Put("gpu_fp8_ratio", report->Lowest("gpu_fp8_g"));
  return "";
}

}  // namespace cairn::gpu_check
