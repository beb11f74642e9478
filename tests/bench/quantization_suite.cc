// What a dtype costs in quality: attention over KV rounded to it, against the same KV in float32.
//
// Keys have outlier channels (every 16th, eight times as large, as real models have) and contexts
// up to 128 k tokens; queries lean towards some keys, so that attention has something to find.
// Scales are one a token and head, and one a head and page for float8, as writers make them. Prints
// a table.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/quantize.h"
#include "tests/bench/suites.h"

namespace cairn::bench {
namespace {

using kernels::KvDtype;

constexpr uint64_t kDim = 128;
constexpr uint64_t kPageTokens = 16;
constexpr int kQueries = 4;
constexpr size_t kTop = 16;
constexpr uint64_t kContexts[] = {1024, 8192, 32768, 131072};

struct Format {
  const char* name;
  KvDtype dtype;
  uint64_t scale_tokens;  // Rows that share a scale; 0: no scale.
};

constexpr Format kFormats[] = {
    {"bf16", KvDtype::kBfloat16, 0},
    {"fp16", KvDtype::kFloat16, 0},
    {"fp8_head", KvDtype::kFloat8E4m3fn, kPageTokens},
    {"fp8_token", KvDtype::kFloat8E4m3fn, 1},
    {"int8_token", KvDtype::kInt8, 1},
    {"int4_token", KvDtype::kInt4, 1},
};

std::vector<float> Rounded(const Format& format, const std::vector<float>& rows) {
  const uint64_t run = std::max<uint64_t>(format.scale_tokens, 1) * kDim;
  std::vector<float> rounded(rows.size());
  std::vector<std::byte> codes(run * sizeof(float));
  for (uint64_t i = 0; i < rows.size(); i += run) {
    const float scale =
        format.scale_tokens == 0 ? 1 : kernels::ScaleFor(format.dtype, &rows[i], run);
    kernels::Quantize(format.dtype, &rows[i], run, scale, codes.data());
    kernels::Dequantize(format.dtype, codes.data(), run, scale, &rounded[i]);
  }
  return rounded;
}

struct Attention {
  std::vector<double> weights;  // Not normalised.
  std::vector<double> output = std::vector<double>(kDim, 0.0);
};

Attention Attend(const float* query, const std::vector<float>& keys,
                 const std::vector<float>& values) {
  Attention attention;
  const uint64_t tokens = keys.size() / kDim;
  attention.weights.resize(tokens);
  double most = -INFINITY, sum = 0;
  for (uint64_t t = 0; t < tokens; ++t) {
    float dot = 0;
    for (uint64_t d = 0; d < kDim; ++d) dot += query[d] * keys[t * kDim + d];
    attention.weights[t] = double{dot} / std::sqrt(static_cast<double>(kDim));
    most = std::max(most, attention.weights[t]);
  }
  for (double& weight : attention.weights) sum += weight = std::exp(weight - most);
  for (uint64_t t = 0; t < tokens; ++t) {
    for (uint64_t d = 0; d < kDim; ++d) {
      attention.output[d] += attention.weights[t] / sum * double{values[t * kDim + d]};
    }
  }
  return attention;
}

std::vector<size_t> TopOf(const std::vector<double>& weights) {
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::partial_sort(order.begin(), order.begin() + kTop, order.end(),
                    [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  order.resize(kTop);
  std::sort(order.begin(), order.end());
  return order;
}

struct Quality {
  double output_error = 0;   // Relative, in the 2-norm.
  double top_agreement = 0;  // Share of the most attended positions that stay so.
};

void Compare(const Attention& exact, const Attention& rounded, Quality* quality) {
  double error = 0, size = 0;
  for (uint64_t d = 0; d < kDim; ++d) {
    error += std::pow(rounded.output[d] - exact.output[d], 2);
    size += std::pow(exact.output[d], 2);
  }
  const std::vector<size_t> a = TopOf(exact.weights), b = TopOf(rounded.weights);
  std::vector<size_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  quality->output_error += std::sqrt(error / size) / kQueries;
  quality->top_agreement += static_cast<double>(both.size()) / static_cast<double>(kTop) / kQueries;
}

struct Context {
  std::vector<float> keys, values, queries;

  explicit Context(uint64_t tokens)
      : keys(tokens * kDim), values(tokens * kDim), queries(kQueries * kDim) {
    std::mt19937_64 random(tokens);
    std::normal_distribution<float> normal;
    for (uint64_t i = 0; i < keys.size(); ++i) {
      keys[i] = normal(random) * (i % 16 == 3 ? 8.0f : 1.0f);
      values[i] = normal(random);
    }
    for (uint64_t q = 0; q < kQueries; ++q) {
      const uint64_t like = random() % tokens * kDim;
      for (uint64_t d = 0; d < kDim; ++d) {
        const float key = keys[like + d] / (d % 16 == 3 ? 16.0f : 1.0f);
        queries[q * kDim + d] = key * 0.7f + normal(random) * (d % 16 == 3 ? 0.1f : 0.7f);
      }
    }
  }
};

}  // namespace

absl::Status RunQuantizationSuite(const SuiteOptions&, JsonReport* report) {
  std::printf("%-11s %8s %14s %14s\n", "dtype", "tokens", "output error", "top-16 kept");
  for (uint64_t tokens : kContexts) {
    const Context context(tokens);
    std::vector<Attention> exact;
    for (int q = 0; q < kQueries; ++q) {
      exact.push_back(
          Attend(&context.queries[static_cast<size_t>(q) * kDim], context.keys, context.values));
    }
    for (const Format& format : kFormats) {
      const std::vector<float> keys = Rounded(format, context.keys);
      const std::vector<float> values = Rounded(format, context.values);
      Quality quality;
      for (size_t q = 0; q < kQueries; ++q) {
        Compare(exact[q], Attend(&context.queries[q * kDim], keys, values), &quality);
      }
      std::printf("%-11s %8llu %14.5f %14.3f\n", format.name,
                  static_cast<unsigned long long>(tokens), quality.output_error,
                  quality.top_agreement);
      const std::string key = absl::StrCat(format.name, "_", tokens / 1024, "k");
      report->Add(absl::StrCat(key, "_output_error"), quality.output_error);
      report->Add(absl::StrCat(key, "_top16_kept"), quality.top_agreement);
    }
  }
  return absl::OkStatus();
}

}  // namespace cairn::bench
