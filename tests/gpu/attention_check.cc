#include "tests/gpu/attention_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "kernels/attention/reference.h"
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
using kernels::KvScales;
using kernels::KvShape;

constexpr double kMatrixTolerance = 4e-3;  // Weights are rounded to 16 bits.
constexpr double kPlainTolerance = 1e-5;
constexpr double kLogSumExpTolerance = 1e-4;

std::string Describe(const AttentionSetup& setup) {
  const KvShape& shape = setup.shape;
  return std::string("attention ") + NameOf(shape.dtype) + ", queries " +
         NameOf(setup.query_dtype) + ", page " + std::to_string(shape.page_tokens) + ", dims " +
         std::to_string(shape.key_dim) + " and " + std::to_string(shape.value_dim) + ", heads " +
         std::to_string(setup.query_heads) + " of " + std::to_string(shape.kv_heads);
}

// A batch's memory on the host and, at the same offsets, on the device.
class AttentionMemory {
 public:
  AttentionMemory(GpuRig* rig, const AttentionSetup& setup)
      : setup_(setup), segment_(SegmentOf(setup.shape)), random_(setup.seed) {
    MakePages();
    MakeQueries();
    device_kv_ = std::make_unique<DeviceArray<Line>>(rig, kv_);
    device_queries_ = std::make_unique<DeviceArray<std::byte>>(rig, queries_);
    rows_ = query_count_ * setup.query_heads;
    dim_ = setup.shape.value_dim == 0 ? setup.latent_value_dim : setup.shape.value_dim;
    device_output_ = std::make_unique<DeviceArray<float>>(rig, rows_ * dim_);
    device_log_sum_exp_ = std::make_unique<DeviceArray<float>>(rig, rows_);
    host_ =
        MakeBatch(reinterpret_cast<const std::byte*>(kv_.data()), queries_.data(), &host_lists_);
    device_ = MakeBatch(device_kv_->bytes(), device_queries_->data(), &device_lists_);
  }

  uint64_t rows() const { return rows_; }
  uint64_t dim() const { return dim_; }

  const AttentionBatch& HostBatch(float* output, float* log_sum_exp) {
    SetResults(output, log_sum_exp, &host_lists_);
    return host_;
  }
  const AttentionBatch& DeviceBatch() {
    SetResults(device_output_->data(), device_log_sum_exp_->data(), &device_lists_);
    return device_;
  }
  void ClearResults() {
    device_output_->Write(std::vector<float>(rows_ * dim_, NAN));
    device_log_sum_exp_->Write(std::vector<float>(rows_, NAN));
  }
  std::vector<float> ReadOutput() { return device_output_->Read(); }
  std::vector<float> ReadLogSumExp() { return device_log_sum_exp_->Read(); }

 private:
  // What regions are aligned to.
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  struct Lists {
    KvRegion region;
    std::vector<AttentionQuery> queries;
    std::vector<AttentionSequence> sequences;
  };

  // Pages in random order; what no token stands in is NaN.
  void MakePages() {
    for (const AttentionSpan& span : setup_.spans) {
      const uint64_t pages =
          (span.kv_tokens + setup_.shape.page_tokens - 1) / setup_.shape.page_tokens;
      for (uint64_t i = 0; i < pages; ++i) {
        table_.push_back({0, table_.size() * segment_.bytes});
      }
      query_count_ += span.positions.size();
    }
    std::shuffle(table_.begin(), table_.end(), random_);
    // Segments are multiples of a line.
    kv_.resize(std::max<uint64_t>(table_.size() * segment_.bytes / sizeof(Line), 1));
    std::memset(kv_.data(), 0xff, kv_.size() * sizeof(Line));
    std::byte* const kv = reinterpret_cast<std::byte*>(kv_.data());
    const KvPage* page = table_.data();
    for (const AttentionSpan& span : setup_.spans) {
      for (uint64_t token = 0; token < span.kv_tokens; ++token) {
        FillToken(kv + page[token / setup_.shape.page_tokens].offset,
                  token % setup_.shape.page_tokens);
      }
      page += (span.kv_tokens + setup_.shape.page_tokens - 1) / setup_.shape.page_tokens;
    }
  }

  void FillToken(std::byte* at, uint64_t slot) {
    const KvShape& shape = setup_.shape;
    for (uint32_t head = 0; head < shape.kv_heads; ++head) {
      const uint64_t row = uint64_t{head} * shape.page_tokens + slot;
      FillRow(shape.key_dim, at + segment_.key + row * RowBytes(shape.dtype, shape.key_dim));
      FillRow(shape.value_dim, at + segment_.value + row * RowBytes(shape.dtype, shape.value_dim));
      if (shape.scales == KvScales::kNone) continue;
      const uint64_t scale = shape.scales == KvScales::kPerHead ? head : row;
      FillScale(at + segment_.key_scales + scale * sizeof(float), 1);
      if (shape.value_dim != 0) FillScale(at + segment_.value_scales + scale * sizeof(float), 2);
    }
  }

  void FillRow(uint32_t dim, std::byte* to) {
    const KvDtype dtype = setup_.shape.dtype;
    std::vector<std::byte> row;
    if (kernels::IsWideFloat(dtype)) {
      row = MakeNumbers(dtype, dim, false, &random_);
    } else {
      std::normal_distribution<float> normal(0, 1);
      for (uint64_t i = 0; i < RowBytes(dtype, dim); ++i) {
        const auto code = dtype == KvDtype::kFloat8E4m3fn ? kernels::Float8OfFloat(normal(random_))
                                                          : static_cast<uint8_t>(random_());
        row.push_back(static_cast<std::byte>(code));
      }
    }
    if (!row.empty()) std::memcpy(to, row.data(), row.size());
  }

  // Codes of integers have values of ordinary size with it.
  void FillScale(std::byte* to, float factor) {
    std::uniform_real_distribution<float> uniform(0.5f, 1.5f);
    float scale = factor * uniform(random_);
    if (setup_.shape.dtype == KvDtype::kInt8) scale /= 40;
    if (setup_.shape.dtype == KvDtype::kInt4) scale /= 3;
    std::memcpy(to, &scale, sizeof(scale));
  }

  void MakeQueries() {
    const uint64_t elements =
        std::max<uint64_t>(query_count_, 1) * setup_.query_heads * setup_.shape.key_dim;
    queries_ = MakeNumbers(setup_.query_dtype, elements, false, &random_);
  }

  AttentionBatch MakeBatch(const std::byte* kv, const std::byte* queries, Lists* lists) {
    AttentionBatch batch;
    batch.shape = setup_.shape;
    batch.query_heads = setup_.query_heads;
    batch.latent_value_dim = setup_.latent_value_dim;
    batch.query_dtype = setup_.query_dtype;
    batch.softmax_scale = 0.25f / std::sqrt(static_cast<float>(setup_.shape.key_dim));
    batch.logit_soft_cap = setup_.logit_soft_cap;
    batch.window_tokens = setup_.window_tokens;
    batch.sink_tokens = setup_.sink_tokens;
    lists->region = {kv, kv_.size() * sizeof(Line)};
    batch.regions = {&lists->region, 1, 0};
    const uint64_t query_bytes =
        setup_.query_heads * RowBytes(setup_.query_dtype, setup_.shape.key_dim);
    for (const AttentionSpan& span : setup_.spans) {
      for (uint64_t position : span.positions) {
        lists->queries.push_back(
            {position, queries + lists->queries.size() * query_bytes, nullptr, nullptr});
      }
    }
    const KvPage* page = table_.data();
    const AttentionQuery* query = lists->queries.data();
    for (const AttentionSpan& span : setup_.spans) {
      AttentionSequence sequence;
      sequence.pages = page;
      sequence.page_count =
          (span.kv_tokens + setup_.shape.page_tokens - 1) / setup_.shape.page_tokens;
      sequence.kv_tokens = span.kv_tokens;
      sequence.first_position = span.first_position;
      sequence.queries = query;
      sequence.query_count = span.positions.size();
      page += sequence.page_count;
      query += sequence.query_count;
      lists->sequences.push_back(sequence);
    }
    batch.sequences = lists->sequences.data();
    batch.sequence_count = lists->sequences.size();
    return batch;
  }

  void SetResults(float* output, float* log_sum_exp, Lists* lists) const {
    for (size_t i = 0; i < lists->queries.size(); ++i) {
      lists->queries[i].output = output + i * setup_.query_heads * dim_;
      lists->queries[i].log_sum_exp = log_sum_exp + i * setup_.query_heads;
    }
  }

  const AttentionSetup& setup_;
  const kernels::KvSegment segment_;
  std::mt19937_64 random_;
  uint64_t query_count_ = 0;
  uint64_t rows_ = 0;
  uint64_t dim_ = 0;
  std::vector<KvPage> table_;
  std::vector<Line> kv_;
  std::vector<std::byte> queries_;
  std::unique_ptr<DeviceArray<Line>> device_kv_;
  std::unique_ptr<DeviceArray<std::byte>> device_queries_;
  std::unique_ptr<DeviceArray<float>> device_output_;
  std::unique_ptr<DeviceArray<float>> device_log_sum_exp_;
  Lists host_lists_;
  Lists device_lists_;
  AttentionBatch host_;
  AttentionBatch device_;
};

struct Results {
  std::vector<float> output;
  std::vector<float> log_sum_exp;
};

Problem Compare(const Results& got, const Results& expected, uint64_t dim, double tolerance) {
  for (size_t row = 0; row < expected.log_sum_exp.size(); ++row) {
    double difference = 0, size = 0;
    for (size_t d = row * dim; d < (row + 1) * dim; ++d) {
      const double delta = double{got.output[d]} - double{expected.output[d]};
      difference += delta * delta;
      size += double{expected.output[d]} * double{expected.output[d]};
    }
    if (!(std::sqrt(difference) <= tolerance * std::sqrt(size))) {
      return "row " + std::to_string(row) + " is off by " + std::to_string(std::sqrt(difference)) +
             " of " + std::to_string(std::sqrt(size));
    }
    const float wanted = expected.log_sum_exp[row];
    const bool is_close = std::isinf(wanted)
                              ? got.log_sum_exp[row] == wanted
                              : std::fabs(got.log_sum_exp[row] - wanted) <= kLogSumExpTolerance;
    if (!is_close) {
      return "log-sum-exp of row " + std::to_string(row) + " is " +
             std::to_string(got.log_sum_exp[row]) + ", not " + std::to_string(wanted);
    }
  }
  return "";
}

// `blocks` 0: one an item.
Results RunOnDevice(GpuRig& rig, AttentionMemory& memory, uint32_t blocks) {
  const AttentionBatch& batch = memory.DeviceBatch();
  kernels::GpuAttentionSizes sizes;
  rig.Note(GpuAttentionSizesOf(batch, &sizes));
  std::vector<std::byte> plan(sizes.plan_bytes);
  rig.Note(PlanGpuAttention(batch, plan.data(), plan.size()));
  DeviceArray<std::byte> device_plan(&rig, plan);
  DeviceArray<uint32_t> counters(
      &rig, std::vector<uint32_t>(sizes.counter_bytes / sizeof(uint32_t) + 1, 0));
  DeviceArray<float> partials(&rig,
                              std::vector<float>(sizes.partial_bytes / sizeof(float) + 1, NAN));
  memory.ClearResults();
  kernels::GpuAttention attention = GpuAttentionOf(batch);
  attention.plan = device_plan.data();
  attention.counters = counters.data();
  attention.partials = partials.data();
  attention.blocks =
      blocks != 0 ? blocks : static_cast<uint32_t>(std::max<uint64_t>(sizes.items, 1));
  rig.Note(rig.kernels()->Attention(attention, rig.stream()));
  Results results{memory.ReadOutput(), memory.ReadLogSumExp()};
  for (const uint32_t counter : counters.Read()) {
    if (counter != 0) rig.Note("a counter is left at " + std::to_string(counter));
  }
  return results;
}

}  // namespace

Problem CheckAttention(GpuRig& rig, const AttentionSetup& setup) {
  AttentionMemory memory(&rig, setup);
  Results expected;
  expected.output.resize(memory.rows() * memory.dim());
  expected.log_sum_exp.resize(memory.rows());
  rig.Note(
      ReferenceAttention(memory.HostBatch(expected.output.data(), expected.log_sum_exp.data())));
  const Results got = RunOnDevice(rig, memory, 0);
  const bool is_exact = setup.shape.dtype == KvDtype::kFloat32;
  rig.Note(Compare(got, expected, memory.dim(), is_exact ? kPlainTolerance : kMatrixTolerance));
  const Results again = RunOnDevice(rig, memory, 3);
  rig.Note(Difference("output with three blocks", again.output.data(), got.output.data(),
                      got.output.size() * sizeof(float)));
  rig.Note(Difference("log-sum-exp with three blocks", again.log_sum_exp.data(),
                      got.log_sum_exp.data(), got.log_sum_exp.size() * sizeof(float)));
  const Problem problem = rig.TakeProblem();
  return problem.empty() ? "" : Describe(setup) + ": " + problem;
}

}  // namespace cairn::gpu_check
