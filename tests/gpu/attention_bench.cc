#include "tests/gpu/attention_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <random>

#include "kernels/float_formats.h"
#include "kernels/gpu/attention.h"
#include "tests/gpu/numbers.h"

namespace cairn::gpu_check {
namespace {

using kernels::AttentionBatch;
using kernels::AttentionQuery;
using kernels::AttentionSequence;
using kernels::KvDtype;
using kernels::KvPage;
using kernels::KvRegion;
using kernels::KvShape;

constexpr uint32_t kKvHeads = 8;
constexpr uint32_t kHeadDim = 128;
constexpr uint32_t kPageTokens = 16;
constexpr uint64_t kPatternBytes = 4 << 20;
constexpr uint32_t kRounds = 5;  // The best counts.
constexpr double kRoundSeconds = 0.02;

struct BenchSize {
  uint64_t sequences;
  uint64_t tokens;
};

KvShape ShapeOf(KvDtype dtype) {
  KvShape shape;
  shape.dtype = dtype;
  shape.kv_heads = kKvHeads;
  shape.page_tokens = kPageTokens;
  shape.key_dim = kHeadDim;
  shape.value_dim = kHeadDim;
  return shape;
}

// KV of ordinary numbers in the device's memory, a pattern over and over.
class BenchKv {
 public:
  BenchKv(GpuRig* rig, KvDtype dtype, uint64_t pages)
      : shape_(ShapeOf(dtype)), bytes_(pages * SegmentOf(shape_).bytes), memory_(rig, bytes_) {
    std::mt19937_64 random(1);
    std::vector<std::byte> pattern =
        MakeNumbers(KvDtype::kBfloat16, kPatternBytes / 2, false, &random);
    if (dtype == KvDtype::kFloat8E4m3fn) {
      std::normal_distribution<float> normal(0, 1);
      for (std::byte& code : pattern) code = std::byte{kernels::Float8OfFloat(normal(random))};
    }
    for (uint64_t at = 0; at < bytes_; at += kPatternBytes) {
      rig->Upload(memory_.data() + at, pattern.data(), std::min(kPatternBytes, bytes_ - at));
    }
    for (uint64_t i = 0; i < pages; ++i) table_.push_back({0, i * SegmentOf(shape_).bytes});
    std::shuffle(table_.begin(), table_.end(), random);
  }

  const KvShape& shape() const { return shape_; }
  uint64_t bytes() const { return bytes_; }
  KvRegion Region() { return {memory_.data(), bytes_}; }
  const std::vector<KvPage>& table() const { return table_; }

 private:
  const KvShape shape_;
  const uint64_t bytes_;
  DeviceArray<std::byte> memory_;
  std::vector<KvPage> table_;
};

// One batch on the device, ready to be launched again and again.
class BenchBatch {
 public:
  BenchBatch(GpuRig* rig, BenchKv* kv, const BenchSize& size, uint32_t group)
      : rig_(rig),
        rows_(size.sequences * kKvHeads * group),
        region_(kv->Region()),
        queries_(rig, MakeQueries()),
        output_(rig, rows_ * kHeadDim),
        log_sum_exp_(rig, rows_) {
    const uint64_t heads = uint64_t{kKvHeads} * group;
    const uint64_t pages = size.tokens / kPageTokens;
    for (uint64_t i = 0; i < size.sequences; ++i) {
      query_list_.push_back({size.tokens, queries_.data() + i * heads * kHeadDim * 2,
                             output_.data() + i * heads * kHeadDim,
                             log_sum_exp_.data() + i * heads});
    }
    for (uint64_t i = 0; i < size.sequences; ++i) {
      sequences_.push_back(
          {kv->table().data() + i * pages, pages, size.tokens, 0, &query_list_[i], 1});
    }
    AttentionBatch batch;
    batch.shape = kv->shape();
    batch.query_heads = kKvHeads * group;
    batch.query_dtype = KvDtype::kBfloat16;
    batch.softmax_scale = 1 / std::sqrt(static_cast<float>(kHeadDim));
    batch.regions = {&region_, 1, 0};
    batch.sequences = sequences_.data();
    batch.sequence_count = sequences_.size();
    MakePlan(batch);
  }

  void Launch() { rig_->Note(rig_->kernels()->Attention(attention_, rig_->stream())); }

 private:
  std::vector<std::byte> MakeQueries() const {
    std::mt19937_64 random(2);
    return MakeNumbers(KvDtype::kBfloat16, rows_ * kHeadDim, false, &random);
  }

  void MakePlan(const AttentionBatch& batch) {
    kernels::GpuAttentionSizes sizes;
    rig_->Note(GpuAttentionSizesOf(batch, &sizes));
    std::vector<std::byte> plan(sizes.plan_bytes);
    rig_->Note(PlanGpuAttention(batch, plan.data(), plan.size()));
    plan_ = std::make_unique<DeviceArray<std::byte>>(rig_, plan);
    counters_ = std::make_unique<DeviceArray<uint32_t>>(
        rig_, std::vector<uint32_t>(sizes.counter_bytes / sizeof(uint32_t) + 1, 0));
    partials_ = std::make_unique<DeviceArray<float>>(rig_, sizes.partial_bytes / sizeof(float) + 1);
    attention_ = GpuAttentionOf(batch);
    attention_.plan = plan_->data();
    attention_.counters = counters_->data();
    attention_.partials = partials_->data();
    attention_.blocks = static_cast<uint32_t>(std::max<uint64_t>(sizes.items, 1));
  }

  GpuRig* const rig_;
  const uint64_t rows_;
  KvRegion region_;
  DeviceArray<std::byte> queries_;
  DeviceArray<float> output_;
  DeviceArray<float> log_sum_exp_;
  std::vector<AttentionQuery> query_list_;
  std::vector<AttentionSequence> sequences_;
  std::unique_ptr<DeviceArray<std::byte>> plan_;
  std::unique_ptr<DeviceArray<uint32_t>> counters_;
  std::unique_ptr<DeviceArray<float>> partials_;
  kernels::GpuAttention attention_;
};

double SecondsOf(GpuRig& rig, BenchBatch& batch, uint32_t launches) {
  rig.Finish();
  const auto start = std::chrono::steady_clock::now();
  for (uint32_t i = 0; i < launches; ++i) batch.Launch();
  rig.Finish();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  return passed.count() / launches;
}

// Launches enough at once that giving them and waiting for the last costs next to nothing.
double Measure(GpuRig& rig, BenchBatch& batch, bool small) {
  const double once = SecondsOf(rig, batch, small ? 1 : 3);
  if (small) return once;
  const auto launches =
      static_cast<uint32_t>(std::clamp(kRoundSeconds / std::max(once, 1e-6), 5.0, 500.0));
  double best = once;
  for (uint32_t i = 0; i < kRounds; ++i) best = std::min(best, SecondsOf(rig, batch, launches));
  return best;
}

}  // namespace

Problem MeasureAttention(GpuRig& rig, bool small, std::vector<AttentionFigure>* figures) {
  const std::vector<BenchSize> sizes =
      small ? std::vector<BenchSize>{{2, 64}}
            : std::vector<BenchSize>{{1, 131072}, {8, 16384}, {8, 32768}, {64, 8192}};
  uint64_t tokens_max = 0;
  for (const BenchSize& size : sizes)
    tokens_max = std::max(tokens_max, size.sequences * size.tokens);
  for (const KvDtype dtype : {KvDtype::kBfloat16, KvDtype::kFloat8E4m3fn}) {
    const std::string dtype_name = dtype == KvDtype::kBfloat16 ? "bf16" : "fp8";
    BenchKv kv(&rig, dtype, tokens_max / kPageTokens);
    for (const BenchSize& size : sizes) {
      for (const uint32_t group : {1, 4, 8}) {
        BenchBatch batch(&rig, &kv, size, group);
        AttentionFigure figure;
        figure.dtype = dtype_name;
        figure.group = group;
        figure.name = dtype_name + " g" + std::to_string(group) + " " +
                      std::to_string(size.sequences) + "x" + std::to_string(size.tokens);
        figure.kv_bytes = kv.bytes() / tokens_max * size.sequences * size.tokens;
        figure.seconds = Measure(rig, batch, small);
        figures->push_back(figure);
      }
    }
  }
  return rig.TakeProblem();
}

}  // namespace cairn::gpu_check
