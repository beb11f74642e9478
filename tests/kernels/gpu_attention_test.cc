// What the device's kernels promise beyond right numbers: bits that no order of lanes or blocks
// changes, KV read once, no bank twice, plans that replay, and problems in words. On the grid
// executor.
#include "tests/kernels/gpu_attention.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/gpu/attention.h"
#include "kernels/gpu/attention_launch.h"

namespace cairn::kernels {
namespace {

using simt::emulated::LaneOrder;
using simt::emulated::LaunchReport;
using ::testing::HasSubstr;

constexpr KvDtype kDtypes[] = {KvDtype::kFloat16,      KvDtype::kBfloat16, KvDtype::kFloat32,
                               KvDtype::kFloat8E4m3fn, KvDtype::kInt8,     KvDtype::kInt4};

CaseOptions OptionsOf(KvDtype dtype, uint32_t page_tokens, uint32_t dim, uint32_t group) {
  CaseOptions options;
  options.shape = ShapeOf(dtype, 2, page_tokens, dim);
  options.query_heads = 2 * group;
  return options;
}

// Shapes that take every way through the kernels: of each dtype, rows for one warp and for all,
// pages that hold units and pages that do not, several chunks, latent values.
std::vector<CaseOptions> CasesOfEveryWay() {
  std::vector<CaseOptions> cases;
  for (KvDtype dtype : kDtypes) {
    for (uint32_t group : {1, 12, 20}) {
      cases.push_back(OptionsOf(dtype, group == 12 ? 10 : 32, 64, group));
      cases.back().sequences = {OneQuery(600), {90, {80, 89}, 0}, OneQuery(0)};
    }
    cases.push_back(OptionsOf(dtype, 16, 576, 3));
    cases.back().shape.kv_heads = 1;
    cases.back().shape.value_dim = 0;
    cases.back().latent_value_dim = 512;
    cases.back().sequences = {OneQuery(530)};
  }
  return cases;
}

TEST(GpuAttentionTest, NoOrderOfLanesChangesABit) {
  for (const CaseOptions& options : CasesOfEveryWay()) {
    SCOPED_TRACE(testing::Message()
                 << NameOf(options.shape.dtype) << " page " << options.shape.page_tokens
                 << " heads " << options.query_heads);
    AttentionCase a_case(options);
    const AttentionResult forward = a_case.Run(EmulatedGpuPath());
    ExpectIdentical(a_case.Run(EmulatedGpuPath({LaneOrder::kReverse})), forward);
    ExpectIdentical(a_case.Run(EmulatedGpuPath({LaneOrder::kRandom, 7})), forward);
  }
}

TEST(GpuAttentionTest, NoNumberOfBlocksChangesABit) {
  CaseOptions options = OptionsOf(KvDtype::kBfloat16, 16, 64, 4);
  options.sequences = {OneQuery(1500), OneQuery(33), {700, {690, 699}, 0}};
  AttentionCase a_case(options);
  const AttentionResult one_an_item = a_case.Run(EmulatedGpuPath());
  for (uint32_t blocks : {1, 2, 5, 40}) {
    ExpectIdentical(a_case.Run(EmulatedGpuPath({LaneOrder::kForward, 1, blocks})), one_an_item);
  }
}

// 163 KiB are those of compute capability 8.0: two units; then one.
TEST(GpuAttentionTest, ABlockWithLessSharedMemoryTakesFewerUnitsAtOnce) {
  for (uint32_t kibibytes : {163, 104}) {
    for (uint32_t heads : {4, 20}) {
      SCOPED_TRACE(testing::Message() << kibibytes << " KiB, heads " << heads);
      CaseOptions options = OptionsOf(KvDtype::kBfloat16, 16, 576, heads);
      options.shape.kv_heads = 1;
      options.shape.value_dim = 0;
      options.latent_value_dim = 512;
      options.sequences = {OneQuery(200)};
      AttentionCase a_case(options);
      const AttentionPath path = EmulatedGpuPath({LaneOrder::kForward, 1, 0, kibibytes << 10});
      ExpectClose(a_case.Run(path), a_case.Reference(), path.tolerance(options.shape));
    }
  }
}

TEST(GpuAttentionTest, WhatADeviceDoesNotOfferIsAProblem) {
  LaunchReport report;
  CaseOptions options = OptionsOf(KvDtype::kBfloat16, 16, 256, 1);
  options.sequences = {OneQuery(40)};
  AttentionCase large_heads(options);
  (void)large_heads.Run(EmulatedGpuPath());  // Sets pointers.
  EXPECT_THAT(RunEmulated(large_heads, {LaneOrder::kForward, 1, 0, 163 << 10}, &report),
              HasSubstr("heads of 256 and 256 are compiled for compute capability 9.0 only"));
  options.shape = ShapeOf(KvDtype::kFloat32, 2, 16, 1024);
  AttentionCase plain(options);
  (void)plain.Run(EmulatedGpuPath());
  EXPECT_THAT(RunEmulated(plain, {LaneOrder::kForward, 1, 0, 163 << 10}, &report),
              HasSubstr("bytes of shared memory a block, the device has 166912"));
}

// A captured launch has the blocks, buffers and parameters of its largest batch.
TEST(GpuAttentionTest, ALaunchIsReplayedWithOtherPlansInItsBuffers) {
  CaseOptions large = OptionsOf(KvDtype::kFloat8E4m3fn, 16, 64, 4);
  large.sequences = {OneQuery(1300), OneQuery(900), OneQuery(40)};
  AttentionCase largest(large);
  const AttentionResult expected = largest.Run(EmulatedGpuPath());
  GpuAttentionSizes sizes;
  ASSERT_EQ(GpuAttentionSizesOf(largest.batch(), &sizes), "");
  EmulatedAttention captured(sizes, {});
  const AttentionPath replay{
      "replay", [&](AttentionCase& a_case, uint32_t) { return captured.Run(a_case); }, nullptr};
  ExpectIdentical(largest.Run(replay), expected);
  CaseOptions small = large;
  // Padding of a smaller batch is sequences without tokens.
  small.sequences = {OneQuery(700), OneQuery(0), OneQuery(0)};
  AttentionCase smaller(small);
  const AttentionResult alone = smaller.Run(EmulatedGpuPath());
  ExpectIdentical(smaller.Run(replay), alone);
  for (size_t row = 8; row < 24; ++row) {
    EXPECT_EQ(alone.log_sum_exp[row], -INFINITY);
    EXPECT_EQ(alone.output[row * 64], 0.0f);
  }
  ExpectIdentical(largest.Run(replay), expected);
}

uint64_t LoadedBytes(const CaseOptions& options) {
  AttentionCase a_case(options);
  LaunchReport report;
  const AttentionPath path{
      "count", [&](AttentionCase& counted, uint32_t) { return RunEmulated(counted, {}, &report); },
      nullptr};
  (void)a_case.Run(path);
  EXPECT_EQ(report.wide_bank_conflicts, 0u);
  return report.global_loaded_bytes;
}

// A page more costs its K and V, its scales and its address, however many rows there are.
TEST(GpuAttentionTest, KvIsReadOnce) {
  for (KvDtype dtype : {KvDtype::kFloat16, KvDtype::kBfloat16, KvDtype::kFloat8E4m3fn,
                        KvDtype::kInt8, KvDtype::kInt4}) {
    for (uint32_t group : {1, 8, 32}) {
      SCOPED_TRACE(testing::Message() << NameOf(dtype) << " " << group);
      CaseOptions options = OptionsOf(dtype, 16, 128, group);
      options.shape.scales = dtype == KvDtype::kInt8 ? KvScales::kPerTokenAndHead : KvScales::kNone;
      if (dtype == KvDtype::kInt4) options.shape.scales = KvScales::kPerTokenAndHead;
      options.sequences = {OneQuery(160)};
      const uint64_t fewer = LoadedBytes(options);
      options.sequences = {OneQuery(176)};
      const uint64_t scales = options.shape.scales == KvScales::kNone ? 0 : 2 * 16 * 4;
      const uint64_t tiles = 2 * 16 * RowBytes(dtype, 128);
      EXPECT_EQ(LoadedBytes(options) - fewer, 2 * (tiles + scales + 8));
    }
  }
}

TEST(GpuAttentionTest, QueriesOfManyCallersReadTheirPrefixOnce) {
  CaseOptions options = OptionsOf(KvDtype::kBfloat16, 16, 128, 4);
  options.sequences = {{160, std::vector<uint64_t>(8, 2000), 0}};  // 32 rows of each KV head.
  const uint64_t fewer = LoadedBytes(options);
  options.sequences[0].kv_tokens = 176;
  EXPECT_EQ(LoadedBytes(options) - fewer, 2 * (2 * 16 * 256 + 8));
}

// Scales of values span 2^80; weights in between are 16-bit floats.
TEST(GpuAttentionTest, ScalesOfAnySizeKeepTheirPrecision) {
  for (KvDtype dtype : {KvDtype::kInt8, KvDtype::kFloat8E4m3fn, KvDtype::kBfloat16}) {
    for (int spread : {0, 40}) {
      SCOPED_TRACE(testing::Message() << NameOf(dtype) << " " << spread);
      CaseOptions options = OptionsOf(dtype, 16, 64, 4);
      options.shape.scales = KvScales::kPerTokenAndHead;
      options.sequences = {OneQuery(200)};
      AttentionCase a_case(options);
      PagedKv& kv = a_case.kv();
      for (uint64_t i = 0; i < kv.segment().value_scales_bytes * kv.table().size(); i += 4) {
        const KvPage& page = kv.table()[i / kv.segment().value_scales_bytes];
        std::byte* const at = kv.SegmentOfPage(page, 0) + kv.segment().value_scales +
                              i % kv.segment().value_scales_bytes;
        const int exponent = spread == 0 ? -60 : static_cast<int>(i / 4 * 29 % 81) - spread;
        const float scale = std::ldexp(i % 3 == 0 ? -1.25f : 1.0f, exponent);
        std::memcpy(at, &scale, sizeof(scale));
      }
      const AttentionPath path = EmulatedGpuPath();
      ExpectClose(a_case.Run(path), a_case.Reference(), path.tolerance(options.shape));
    }
  }
}

TEST(GpuAttentionTest, QueriesFarFromOneKeepTheirPrecision) {
  for (float deviation : {1e-6f, 300.0f}) {
    CaseOptions options = OptionsOf(KvDtype::kFloat8E4m3fn, 16, 64, 4);
    options.query_dtype = KvDtype::kFloat32;
    options.sequences = {OneQuery(70)};
    AttentionCase a_case(options);
    std::vector<float> queries(a_case.queries().size() / sizeof(float));
    std::memcpy(queries.data(), a_case.queries().data(), a_case.queries().size());
    for (float& element : queries) element *= deviation * 1e4f;
    std::memcpy(a_case.queries().data(), queries.data(), a_case.queries().size());
    a_case.batch().softmax_scale /= deviation * 1e4f;
    const AttentionPath path = EmulatedGpuPath();
    ExpectClose(a_case.Run(path), a_case.Reference(), path.tolerance(options.shape));
  }
}

TEST(GpuAttentionTest, APlanThatDoesNotFitIsAProblem) {
  CaseOptions options = OptionsOf(KvDtype::kBfloat16, 16, 64, 4);
  options.sequences = {OneQuery(40)};
  AttentionCase a_case(options);
  (void)a_case.Run(EmulatedGpuPath());  // Sets pointers.
  GpuAttentionSizes sizes;
  ASSERT_EQ(GpuAttentionSizesOf(a_case.batch(), &sizes), "");
  std::vector<GpuAttentionSizes> buffer(sizes.plan_bytes / sizeof(GpuAttentionSizes) + 1);
  auto* const plan = reinterpret_cast<std::byte*>(buffer.data());
  EXPECT_THAT(PlanGpuAttention(a_case.batch(), plan, sizes.plan_bytes - 1),
              HasSubstr("does not fit into " + std::to_string(sizes.plan_bytes - 1)));
  (*a_case.kv().mutable_table())[1] = {0, uint64_t{1} << 40};
  EXPECT_THAT(PlanGpuAttention(a_case.batch(), plan, sizes.plan_bytes), HasSubstr("sequence 0"));
}

TEST(GpuAttentionTest, TokensBeyondTheDeviceAreAProblem) {
  CaseOptions options = OptionsOf(KvDtype::kInt4, 1 << 14, 2, 1);
  options.sequences = {OneQuery(40)};
  AttentionCase a_case(options);
  (void)a_case.Run(EmulatedGpuPath());
  const std::vector<KvPage> table((kGpuKvTokensMax >> 14) + 1, a_case.kv().table()[0]);
  AttentionSequence& sequence = a_case.sequences()[0];
  sequence.pages = table.data();
  sequence.page_count = table.size();
  sequence.kv_tokens = kGpuKvTokensMax;
  GpuAttentionSizes sizes;
  EXPECT_EQ(GpuAttentionSizesOf(a_case.batch(), &sizes), "");
  ++sequence.kv_tokens;
  EXPECT_THAT(GpuAttentionSizesOf(a_case.batch(), &sizes), HasSubstr("kv_tokens 2147483649"));
}

TEST(GpuAttentionTest, ALaunchWithoutItsBuffersIsAProblem) {
  CaseOptions options = OptionsOf(KvDtype::kBfloat16, 16, 64, 4);
  AttentionCase a_case(options);
  GpuAttention attention = GpuAttentionOf(a_case.batch());
  const simt::LaunchTarget nowhere;
  EXPECT_THAT(LaunchAttention(attention, nowhere), HasSubstr("plan is null"));
  alignas(16) const std::byte plan[32] = {};
  attention.plan = plan + 8;
  EXPECT_THAT(LaunchAttention(attention, nowhere), HasSubstr("not aligned to 16 bytes"));
  attention.plan = plan;
  EXPECT_THAT(LaunchAttention(attention, nowhere), HasSubstr("blocks is 0"));
  attention.blocks = 1;
  attention.query_heads = 3;
  EXPECT_THAT(LaunchAttention(attention, nowhere), HasSubstr("query_heads 3"));
}

TEST(GpuAttentionTest, ALaunchWithValuesOfNoShapeIsAProblem) {
  CaseOptions options = OptionsOf(KvDtype::kBfloat16, 16, 64, 4);
  AttentionCase a_case(options);
  GpuAttention attention = GpuAttentionOf(a_case.batch());
  alignas(16) const std::byte plan[16] = {};
  attention.plan = plan;
  const simt::LaunchTarget nowhere;
  attention.latent_value_dim = 64;
  EXPECT_THAT(LaunchAttention(attention, nowhere), HasSubstr("latent_value_dim 64"));
  attention.shape.value_dim = 0;
  for (const uint32_t wrong : {0u, 63u, 66u}) {
    attention.latent_value_dim = wrong;
    EXPECT_THAT(LaunchAttention(attention, nowhere),
                HasSubstr("latent_value_dim " + std::to_string(wrong) + " does not go with"));
  }
  attention.latent_value_dim = 64;
  EXPECT_THAT(LaunchAttention(attention, nowhere), HasSubstr("blocks is 0"));
}

}  // namespace
}  // namespace cairn::kernels
