#include "tests/kernels/attention_case.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "kernels/attention/attention_runner.h"
#include "kernels/attention/reference.h"
#include "kernels/quantize.h"
#include "tests/kernels/gpu_attention.h"
#include "tests/kernels/spinning_pool.h"

namespace cairn::kernels {
namespace {

constexpr double kLogSumExpTolerance = 1e-4;

uint64_t PagesOf(const CaseOptions& options, uint64_t tokens) {
  return (tokens + options.shape.page_tokens - 1) / options.shape.page_tokens;
}

}  // namespace

CaseSequence OneQuery(uint64_t kv_tokens) { return {kv_tokens, {kv_tokens}, 0}; }

KvShape ShapeOf(KvDtype dtype, uint32_t kv_heads, uint32_t page_tokens, uint32_t dim) {
  KvShape shape;
  shape.kv_heads = kv_heads;
  shape.page_tokens = page_tokens;
  shape.key_dim = dim;
  shape.value_dim = dim;
  shape.dtype = dtype;
  shape.scales = KvScales::kNone;
  if (dtype == KvDtype::kFloat8E4m3fn) shape.scales = KvScales::kPerHead;
  if (dtype == KvDtype::kInt8 || dtype == KvDtype::kInt4) {
    shape.scales = KvScales::kPerTokenAndHead;
  }
  return shape;
}

AttentionCase::AttentionCase(const CaseOptions& options) : options_(options) {
  uint64_t pages = 0, queries = 0;
  for (const CaseSequence& sequence : options.sequences) {
    first_pages_.push_back(pages);
    pages += PagesOf(options, sequence.kv_tokens);
    queries += sequence.positions.size();
  }
  kv_ = std::make_unique<PagedKv>(options.shape, std::max(pages, options.pages_total), 1,
                                  options.seed);
  kv_->FillRandom(options.seed + 1, options.deviation, pages);
  const uint64_t elements = queries * options.query_heads * options.shape.key_dim;
  std::mt19937_64 random(options.seed + 2);
  std::normal_distribution<float> normal(0.0f, options.deviation);
  std::vector<float> numbers(elements);
  for (float& number : numbers) number = normal(random);
  queries_.resize(elements * BitsOf(options.query_dtype) / 8);
  Quantize(options.query_dtype, numbers.data(), elements, 1, queries_.data());

  batch_.shape = options.shape;
  batch_.query_heads = options.query_heads;
  batch_.latent_value_dim = options.latent_value_dim;
  batch_.query_dtype = options.query_dtype;
  batch_.softmax_scale = 1 / std::sqrt(static_cast<float>(options.shape.key_dim));
  batch_.logit_soft_cap = options.logit_soft_cap;
  batch_.window_tokens = options.window_tokens;
  batch_.sink_tokens = options.sink_tokens;
  batch_.regions = kv_->Regions(0);
  for (const CaseSequence& sequence : options.sequences) {
    for (uint64_t position : sequence.positions)
      query_list_.push_back({position, nullptr, nullptr, nullptr});
  }
  uint64_t first_query = 0;
  for (size_t i = 0; i < options.sequences.size(); ++i) {
    const CaseSequence& from = options.sequences[i];
    AttentionSequence sequence;
    sequence.pages = kv_->table().data() + first_pages_[i];
    sequence.page_count = PagesOf(options, from.kv_tokens);
    sequence.kv_tokens = from.kv_tokens;
    sequence.first_position = from.first_position;
    sequence.queries = query_list_.data() + first_query;
    sequence.query_count = from.positions.size();
    first_query += sequence.query_count;
    sequences_.push_back(sequence);
  }
}

AttentionResult AttentionCase::Start() {
  AttentionResult result;
  const uint64_t rows = query_list_.size() * options_.query_heads;
  result.dim = OutputDim(batch_);
  result.output.assign(rows * result.dim, std::numeric_limits<float>::quiet_NaN());
  result.log_sum_exp.assign(rows, std::numeric_limits<float>::quiet_NaN());
  const uint64_t query_bytes =
      uint64_t{options_.query_heads} * RowBytes(options_.query_dtype, options_.shape.key_dim);
  for (uint64_t i = 0; i < query_list_.size(); ++i) {
    query_list_[i].query = queries_.data() + i * query_bytes;
    query_list_[i].output = result.output.data() + i * options_.query_heads * result.dim;
    query_list_[i].log_sum_exp = result.log_sum_exp.data() + i * options_.query_heads;
  }
  batch_.sequences = sequences_.data();
  batch_.sequence_count = sequences_.size();
  return result;
}

AttentionResult AttentionCase::Run(const AttentionPath& path, uint32_t workers) {
  AttentionResult result = Start();
  EXPECT_EQ(path.run(*this, workers), "");
  return result;
}

AttentionResult AttentionCase::Reference() {
  AttentionResult result = Start();
  EXPECT_EQ(ReferenceAttention(batch_), "");
  return result;
}

AttentionPath PathOf(CpuPath path) {
  const auto run = [path](AttentionCase& a_case, uint32_t workers) {
    SpinningPool pool(workers);
    AttentionRunner runner(path, &pool);
    return runner.Run(a_case.batch());
  };
  const auto tolerance = [path](const KvShape& shape) {
    const bool is_exact = path != CpuPath::kAvx512Bf16 || shape.dtype == KvDtype::kFloat16 ||
                          shape.dtype == KvDtype::kFloat32;
    return is_exact ? 1e-5 : 4e-3;
  };
  return {NameOf(path), run, tolerance};
}

std::vector<AttentionPath> AvailablePaths() {
  std::vector<AttentionPath> paths;
  for (CpuPath path :
       {CpuPath::kBaseline, CpuPath::kPortable, CpuPath::kAvx2, CpuPath::kAvx512Bf16}) {
    if (IsAvailable(path)) paths.push_back(PathOf(path));
  }
  paths.push_back(EmulatedGpuPath());
  return paths;
}

void PrintTo(const AttentionPath& path, std::ostream* stream) { *stream << path.name; }

void ExpectClose(const AttentionResult& result, const AttentionResult& reference,
                 double tolerance) {
  ASSERT_EQ(result.output.size(), reference.output.size());
  for (size_t row = 0; row < reference.log_sum_exp.size(); ++row) {
    double difference = 0, size = 0;
    for (size_t d = row * reference.dim; d < (row + 1) * reference.dim; ++d) {
      const double delta = double{result.output[d]} - double{reference.output[d]};
      difference += delta * delta;
      size += double{reference.output[d]} * double{reference.output[d]};
    }
    ASSERT_LE(std::sqrt(difference), tolerance * std::sqrt(size)) << "row " << row;
    const float expected = reference.log_sum_exp[row];
    if (std::isinf(expected)) {
      ASSERT_EQ(result.log_sum_exp[row], expected) << "row " << row;
    } else {
      ASSERT_NEAR(result.log_sum_exp[row], expected, kLogSumExpTolerance) << "row " << row;
    }
  }
}

void ExpectIdentical(const AttentionResult& a, const AttentionResult& b) {
  ASSERT_EQ(a.output.size(), b.output.size());
  EXPECT_EQ(std::memcmp(a.output.data(), b.output.data(), a.output.size() * sizeof(float)), 0);
  EXPECT_EQ(
      std::memcmp(a.log_sum_exp.data(), b.log_sum_exp.data(), a.log_sum_exp.size() * sizeof(float)),
      0);
}

}  // namespace cairn::kernels
