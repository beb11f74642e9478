// Paged decode attention on the CPU against reading the same memory.
//
// KV of 32 layers of 8 KV heads of 128 in pages of 16 tokens, a slot a page, pages in random order;
// a step goes through all layers, one call a layer. Two floors, in the same rounds with two
// threads: the same segments in the order of the page table (what must be read, as fast as it can
// be), and all of the pool from end to end. Time is the sum over layers of each layer's fastest
// round.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "kernels/attention/attention_runner.h"
#include "kernels/quantize.h"
#include "tests/bench/kernel_dot_floor.h"
#include "tests/bench/kernel_read_floor.h"
#include "tests/bench/suites.h"
#include "tests/kernels/paged_kv.h"
#include "tests/kernels/spinning_pool.h"

namespace cairn::bench {
namespace {

using kernels::AttentionBatch;
using kernels::AttentionQuery;
using kernels::AttentionRunner;
using kernels::AttentionSequence;
using kernels::CpuPath;
using kernels::KvDtype;
using kernels::KvScales;
using kernels::KvShape;

constexpr uint64_t kLayers = 32;
constexpr uint64_t kTokens = 8192;
constexpr uint64_t kSequences = 4;
constexpr uint32_t kWorkers = 2;
constexpr uint64_t kSharers = 16;
constexpr int kRoundsMin = 5;
constexpr int kRoundsMax = 12;
constexpr double kUndisturbedShare = 0.97;

double ProcessorSeconds() {
  timespec now = {};
  CAIRN_CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

using Step = std::function<void(uint64_t layer)>;

// One layer of one step over the rounds. The pool's threads spin while they wait, so a run that had
// both of its processors all the time used twice its time; others were disturbed and count only
// where there is nothing better.
struct LayerTime {
  double undisturbed = INFINITY;
  double any = INFINITY;

  void Run(const Step& step, uint64_t layer) {
    const double processor_start = ProcessorSeconds();
    const auto start = std::chrono::steady_clock::now();
    step(layer);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double share = (ProcessorSeconds() - processor_start) / (seconds * kWorkers);
    any = std::min(any, seconds);
    if (share >= kUndisturbedShare) undisturbed = std::min(undisturbed, seconds);
  }
  bool IsUndisturbed() const { return std::isfinite(undisturbed); }
  double Seconds() const { return IsUndisturbed() ? undisturbed : any; }
};

struct Timing {
  std::vector<double> seconds;  // Of each step, over all layers.
  double undisturbed = 0;       // Share of (step, layer) that had an undisturbed run.
};

// All steps take part in every round, so that what disturbs one disturbs the others too; each is at
// another layer, so that none finds in a cache what another read. Rounds end when every layer of
// every step had an undisturbed run, or with kRoundsMax.
Timing Measure(const std::vector<Step>& steps) {
  std::vector<std::vector<LayerTime>> times(steps.size(), std::vector<LayerTime>(kLayers));
  const double count = static_cast<double>(steps.size() * kLayers);
  Timing timing;
  for (int round = 0; round < kRoundsMin || (round < kRoundsMax && timing.undisturbed < 1);
       ++round) {
    for (uint64_t i = 0; i < kLayers; ++i) {
      for (size_t s = 0; s < steps.size(); ++s) {
        const uint64_t layer = (i + s * kLayers / steps.size()) % kLayers;
        times[s][layer].Run(steps[s], layer);
      }
    }
    double undisturbed = 0;
    for (const auto& layers : times) {
      for (const LayerTime& layer : layers) undisturbed += layer.IsUndisturbed() ? 1 : 0;
    }
    timing.undisturbed = undisturbed / count;
  }
  for (const auto& layers : times) {
    double sum = 0;
    for (const LayerTime& layer : layers) sum += layer.Seconds();
    timing.seconds.push_back(sum);
  }
  return timing;
}

struct Workload {
  KvShape shape;
  uint32_t group = 1;  // Query heads of a KV head.
  uint32_t latent_value_dim = 0;
  uint64_t tokens = kTokens;
  uint64_t sequences = kSequences;
  uint64_t queries = 1;  // Of a sequence.
};

KvShape ShapeOf(KvDtype dtype) {
  KvShape shape;
  shape.kv_heads = 8;
  shape.page_tokens = 16;
  shape.key_dim = shape.value_dim = 128;
  shape.dtype = dtype;
  if (dtype == KvDtype::kFloat8E4m3fn) shape.scales = KvScales::kPerHead;
  if (dtype == KvDtype::kInt8 || dtype == KvDtype::kInt4) {
    shape.scales = KvScales::kPerTokenAndHead;
  }
  return shape;
}

// A batch over a pool, and its results.
class Decode {
 public:
  Decode(const Workload& work, const kernels::PagedKv& kv, CpuPath path, kernels::WorkerPool* pool)
      : kv_(kv), runner_(path, pool) {
    batch_.shape = work.shape;
    batch_.query_heads = work.shape.kv_heads * work.group;
    batch_.latent_value_dim = work.latent_value_dim;
    batch_.query_dtype = KvDtype::kBfloat16;
    batch_.softmax_scale = 1 / std::sqrt(128.0f);
    const uint64_t row = uint64_t{batch_.query_heads} * work.shape.key_dim;
    const uint64_t output_row = uint64_t{batch_.query_heads} * OutputDim(batch_);
    const uint64_t count = work.sequences * work.queries;
    std::mt19937_64 random(7);
    std::normal_distribution<float> normal;
    std::vector<float> numbers(count * row);
    for (float& number : numbers) number = normal(random);
    rows_.resize(numbers.size() * 2);
    kernels::Quantize(KvDtype::kBfloat16, numbers.data(), numbers.size(), 1, rows_.data());
    output_.resize(count * output_row);
    log_sum_exp_.resize(count * batch_.query_heads);
    for (uint64_t i = 0; i < count; ++i) {
      queries_.push_back({work.tokens, rows_.data() + i * row * 2, output_.data() + i * output_row,
                          log_sum_exp_.data() + i * batch_.query_heads});
    }
    const uint64_t pages = kv.table().size() / work.sequences;
    for (uint64_t s = 0; s < work.sequences; ++s) {
      sequences_.push_back({kv.table().data() + s * pages, pages, pages * work.shape.page_tokens, 0,
                            queries_.data() + s * work.queries, work.queries});
    }
    batch_.sequences = sequences_.data();
    batch_.sequence_count = sequences_.size();
  }

  void Run(uint64_t layer) {
    batch_.regions = kv_.Regions(layer);
    const kernels::Problem problem = runner_.Run(batch_);
    CAIRN_CHECK(problem.empty());
  }

 private:
  const kernels::PagedKv& kv_;
  AttentionRunner runner_;
  AttentionBatch batch_;
  std::vector<std::byte> rows_;
  std::vector<float> output_;
  std::vector<float> log_sum_exp_;
  std::vector<AttentionQuery> queries_;
  std::vector<AttentionSequence> sequences_;
};

std::unique_ptr<kernels::PagedKv> PoolOf(const Workload& work) {
  auto kv = std::make_unique<kernels::PagedKv>(work.shape, work.tokens / work.shape.page_tokens,
                                               kLayers, 1);
  kv->FillRandom(2, 1.0f, kv->table().size());
  return kv;
}

Step StepOf(Decode* decode) {
  return [decode](uint64_t layer) { decode->Run(layer); };
}

// The floors: the same segments, and as many bytes from end to end.
std::vector<Step> FloorsOf(const kernels::PagedKv& kv, kernels::WorkerPool* pool) {
  const uint64_t layer_bytes = kv.bytes() / kLayers / 64 * 64;
  return {[&kv, pool](uint64_t layer) { ReadSegments(kv, layer, pool); },
          [&kv, pool, layer_bytes](uint64_t layer) {
            ReadInOrder(kv.base() + layer * layer_bytes, layer_bytes, pool);
          }};
}

// `timing` begins with FloorsOf.
void Report(const std::string& name, const kernels::PagedKv& kv, const Timing& timing, size_t index,
            JsonReport* report) {
  const std::vector<double>& seconds = timing.seconds;
  const double tokens = static_cast<double>(kTokens * kLayers);
  report->Add(absl::StrCat(name, "_ratio"), seconds[0] / seconds[index]);
  report->Add(absl::StrCat(name, "_over_in_order_ratio"), seconds[1] / seconds[index]);
  report->Add(absl::StrCat(name, "_layer_tokens_per_second"), tokens / seconds[index]);
  report->Add(absl::StrCat(name, "_gigabytes_per_second"),
              static_cast<double>(kv.bytes()) / seconds[index] / 1e9);
  report->Add(absl::StrCat(name, "_undisturbed_share"), timing.undisturbed);
}

void MeasureBfloat16(const kernels::PagedKv& kv, CpuPath best, kernels::WorkerPool* pool,
                     JsonReport* report) {
  Workload work;
  work.shape = ShapeOf(KvDtype::kBfloat16);
  std::vector<std::unique_ptr<Decode>> decodes;
  std::vector<std::string> names;
  for (uint32_t group : {1, 4, 8}) {
    work.group = group;
    decodes.push_back(std::make_unique<Decode>(work, kv, best, pool));
    names.push_back(absl::StrCat("bf16_g", group));
  }
  if (IsAvailable(CpuPath::kAvx2)) {
    work.group = 4;
    decodes.push_back(std::make_unique<Decode>(work, kv, CpuPath::kAvx2, pool));
    names.push_back("avx2_bf16_g4");
  }
  std::vector<Step> steps = FloorsOf(kv, pool);
  for (const auto& decode : decodes) steps.push_back(StepOf(decode.get()));
  const Timing timing = Measure(steps);
  const std::vector<double>& seconds = timing.seconds;
  for (size_t i = 0; i < names.size(); ++i) Report(names[i], kv, timing, i + 2, report);
  const double gigabytes = static_cast<double>(kv.bytes()) / 1e9;
  report->Add("floor_same_segments_gigabytes_per_second", gigabytes / seconds[0]);
  report->Add("floor_in_order_gigabytes_per_second", gigabytes / seconds[1]);
}

// Sixteen queries over one prefix: one pass, against one query after the other.
void MeasureSharedPrefix(const kernels::PagedKv& kv, CpuPath best, kernels::WorkerPool* pool,
                         JsonReport* report) {
  Workload work;
  work.shape = ShapeOf(KvDtype::kBfloat16);
  work.sequences = 1;
  std::vector<std::unique_ptr<Decode>> decodes;
  std::vector<Step> steps;
  for (uint32_t group : {1, 4}) {
    for (uint64_t queries : {uint64_t{1}, kSharers}) {
      work.group = group;
      work.queries = queries;
      decodes.push_back(std::make_unique<Decode>(work, kv, best, pool));
      steps.push_back(StepOf(decodes.back().get()));
    }
  }
  const Timing timing = Measure(steps);
  const std::vector<double>& seconds = timing.seconds;
  report->Add("shared_prefix_undisturbed_share", timing.undisturbed);
  const double sharers = static_cast<double>(kSharers);
  report->Add("shared_prefix_speedup", sharers * seconds[0] / seconds[1]);
  report->Add("shared_prefix_speedup_g4", sharers * seconds[2] / seconds[3]);
}

// Another dtype at four heads a group, beside bfloat16.
void MeasureDtype(const std::string& name, KvDtype dtype, const kernels::PagedKv& bf16_kv,
                  CpuPath best, kernels::WorkerPool* pool, JsonReport* report) {
  Workload work;
  work.group = 4;
  work.shape = ShapeOf(KvDtype::kBfloat16);
  Decode bf16(work, bf16_kv, best, pool);
  work.shape = ShapeOf(dtype);
  const auto kv = PoolOf(work);
  Decode decode(work, *kv, best, pool);
  std::vector<Step> steps = FloorsOf(*kv, pool);
  steps.push_back(StepOf(&decode));
  steps.push_back(StepOf(&bf16));
  const Timing timing = Measure(steps);
  Report(absl::StrCat(name, "_g4"), *kv, timing, 2, report);
  report->Add(absl::StrCat(name, "_tokens_over_bf16"), timing.seconds[3] / timing.seconds[2]);
}

void MeasureLatent(CpuPath best, kernels::WorkerPool* pool, JsonReport* report) {
  Workload work;
  work.shape = ShapeOf(KvDtype::kBfloat16);
  work.shape.kv_heads = 1;
  work.shape.page_tokens = 64;
  work.shape.key_dim = 576;
  work.shape.value_dim = 0;
  work.latent_value_dim = 512;
  work.group = 64;
  const auto kv = PoolOf(work);
  Decode decode(work, *kv, best, pool);
  std::vector<Step> steps = FloorsOf(*kv, pool);
  steps.push_back(StepOf(&decode));
  // So many heads over one: computing bounds it, and reading is no floor.
  const uint64_t flops = kTokens * work.group * 2 * (work.shape.key_dim + work.latent_value_dim);
  if (best == CpuPath::kAvx512Bf16) {
    steps.push_back([flops, pool](uint64_t) { DotInRegisters(flops, pool); });
  }
  const Timing timing = Measure(steps);
  Report("latent_h64", *kv, timing, 2, report);
  const double gigaflops = static_cast<double>(flops * kLayers) / 1e9;
  report->Add("latent_h64_gigaflops", gigaflops / timing.seconds[2]);
  if (best != CpuPath::kAvx512Bf16) return;
  report->Add("floor_dots_gigaflops", gigaflops / timing.seconds[3]);
  report->Add("latent_h64_over_dots_ratio", timing.seconds[3] / timing.seconds[2]);
}

}  // namespace

absl::Status RunDecodeSuite(const SuiteOptions&, JsonReport* report) {
  kernels::SpinningPool pool(kWorkers);
  const CpuPath best = kernels::BestCpuPath();
  report->Add("path", kernels::NameOf(best));
  Workload work;
  work.shape = ShapeOf(KvDtype::kBfloat16);
  const auto kv = PoolOf(work);
  MeasureBfloat16(*kv, best, &pool, report);
  MeasureSharedPrefix(*kv, best, &pool, report);
  MeasureDtype("fp8", KvDtype::kFloat8E4m3fn, *kv, best, &pool, report);
  MeasureDtype("int8", KvDtype::kInt8, *kv, best, &pool, report);
  MeasureDtype("int4", KvDtype::kInt4, *kv, best, &pool, report);
  MeasureDtype("fp16", KvDtype::kFloat16, *kv, best, &pool, report);
  MeasureLatent(best, &pool, report);
  return absl::OkStatus();
}

}  // namespace cairn::bench
