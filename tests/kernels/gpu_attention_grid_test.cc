// Random batches on the emulated device against the float64 reference: all that attention.h allows,
// mixed by a seed that a failure names. How many is CAIRN_GPU_GRID_CASES, of the environment or of
// the build (the preset `cuda` has the full grid); with many there is a long sequence more.
#include <gmock/gmock.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tests/kernels/gpu_attention.h"

namespace cairn::kernels {
namespace {

using simt::emulated::LaneOrder;

constexpr uint64_t kCasesOfATest = 10;
constexpr uint64_t kManyCases = 200;

uint64_t CaseCount() {
  const char* const count = std::getenv("CAIRN_GPU_GRID_CASES");
  return count == nullptr ? CAIRN_GPU_GRID_CASES : std::strtoull(count, nullptr, 10);
}

class RandomCase {
 public:
  explicit RandomCase(uint64_t seed) : random_(seed) {
    options_.seed = seed;
    MakeShape();
    options_.query_dtype =
        Pick<KvDtype>({KvDtype::kFloat16, KvDtype::kBfloat16, KvDtype::kFloat32});
    options_.logit_soft_cap = Pick<float>({0, 0, 0, 5});
    options_.window_tokens = Pick<uint64_t>({0, 0, 1, 20, 300});
    if (options_.window_tokens != 0) options_.sink_tokens = Pick<uint64_t>({0, 1, 5, 40});
    options_.deviation = Pick<float>({1, 1, 0.01f});
    const uint64_t count = Pick<uint64_t>({1, 2, 3, 5});
    for (uint64_t i = 0; i < count; ++i) options_.sequences.push_back(MakeSequence());
  }

  const CaseOptions& options() const { return options_; }
  EmulatedRun run() {
    return {Pick<LaneOrder>({LaneOrder::kForward, LaneOrder::kReverse, LaneOrder::kRandom}),
            options_.seed, Pick<uint32_t>({0, 0, 1, 3})};
  }

  std::string Text() const {
    const KvShape& shape = options_.shape;
    std::string text = "seed " + std::to_string(options_.seed) + " " + NameOf(shape.dtype) +
                       " scales " + std::to_string(static_cast<uint32_t>(shape.scales)) + " page " +
                       std::to_string(shape.page_tokens) + " dims " +
                       std::to_string(shape.key_dim) + " " + std::to_string(shape.value_dim) +
                       " heads " + std::to_string(options_.query_heads) + "/" +
                       std::to_string(shape.kv_heads) + " window " +
                       std::to_string(options_.window_tokens) + " tokens";
    for (const CaseSequence& sequence : options_.sequences) {
      text += " " + std::to_string(sequence.kv_tokens) + "x" +
              std::to_string(sequence.positions.size());
    }
    return text;
  }

 private:
  template <class T>
  T Pick(const std::vector<T>& from) {
    return from[random_() % from.size()];
  }

  void MakeShape() {
    KvShape& shape = options_.shape;
    shape.dtype = Pick<KvDtype>({KvDtype::kFloat16, KvDtype::kBfloat16, KvDtype::kBfloat16,
                                 KvDtype::kFloat32, KvDtype::kFloat8E4m3fn, KvDtype::kFloat8E4m3fn,
                                 KvDtype::kInt8, KvDtype::kInt4});
    shape.scales =
        Pick<KvScales>({KvScales::kNone, KvScales::kPerHead, KvScales::kPerTokenAndHead});
    const bool needs_scales = shape.dtype == KvDtype::kInt8 || shape.dtype == KvDtype::kInt4;
    if (needs_scales && shape.scales == KvScales::kNone) {
      shape.scales = KvScales::kPerTokenAndHead;
    }
    shape.page_tokens = Pick<uint32_t>({1, 2, 7, 8, 16, 16, 16, 24, 32, 48, 128});
    shape.kv_heads = Pick<uint32_t>({1, 2, 5});
    options_.query_heads = shape.kv_heads * Pick<uint32_t>({1, 2, 3, 4, 7, 8, 9, 16, 17, 33});
    shape.key_dim = Pick<uint32_t>({2, 10, 64, 64, 72, 80, 96, 128, 128, 192, 256, 320});
    shape.value_dim = random_() % 4 != 0 ? shape.key_dim : Pick<uint32_t>({16, 64, 128, 250});
    if (random_() % 8 != 0) return;
    shape.value_dim = 0;
    shape.key_dim = Pick<uint32_t>({96, 320, 576, 640});
    options_.latent_value_dim = Pick<uint32_t>({64, 96});
    if (shape.key_dim >= 576) options_.latent_value_dim = 512;
  }

  CaseSequence MakeSequence() {
    CaseSequence sequence;
    sequence.kv_tokens = Pick<uint64_t>({0, 1, 15, 16, 17, 64, 130, 511, 512, 513, 900});
    sequence.first_position = Pick<uint64_t>({0, 0, 0, 3, 100});
    const uint64_t queries = Pick<uint64_t>({1, 1, 1, 2, 4, 6});
    for (uint64_t q = 0; q < queries; ++q) {
      const uint64_t end = sequence.first_position + sequence.kv_tokens;
      sequence.positions.push_back(
          Pick<uint64_t>({end, end + q, end / 2, end + 1000, random_() % (end + 1)}));
    }
    return sequence;
  }

  std::mt19937_64 random_;
  CaseOptions options_;
};

class GpuAttentionGridTest : public testing::TestWithParam<uint64_t> {};

INSTANTIATE_TEST_SUITE_P(Tens, GpuAttentionGridTest,
                         testing::Range(uint64_t{0}, (CaseCount() + 9) / kCasesOfATest));

TEST_P(GpuAttentionGridTest, RandomBatchesAreAsTheReference) {
  for (uint64_t i = 1; i <= kCasesOfATest; ++i) {
    RandomCase random(GetParam() * kCasesOfATest + i);
    SCOPED_TRACE(random.Text());
    AttentionCase a_case(random.options());
    const AttentionPath path = EmulatedGpuPath(random.run());
    ExpectClose(a_case.Run(path), a_case.Reference(), path.tolerance(random.options().shape));
    ASSERT_FALSE(HasFailure());
  }
}

TEST(GpuAttentionLengthTest, LongSequences) {
  std::vector<uint64_t> lengths = {33000, 131072};
  if (CaseCount() >= kManyCases) lengths.push_back(1 << 20);
  for (uint64_t tokens : lengths) {
    SCOPED_TRACE(tokens);
    CaseOptions options;
    options.shape = ShapeOf(KvDtype::kBfloat16, 1, 16, 64);
    options.query_heads = 1;
    options.sequences = {OneQuery(tokens)};
    AttentionCase a_case(options);
    const AttentionPath path = EmulatedGpuPath();
    ExpectClose(a_case.Run(path), a_case.Reference(), path.tolerance(options.shape));
  }
}

}  // namespace
}  // namespace cairn::kernels
