// What must hold to the bit, or at the edges of numbers and memory: bytes that nobody sees, extreme
// logits, far offsets, batch mates, threads, and every code of a dtype.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>

#include "kernels/attention/merge.h"
#include "kernels/decode_element.h"
#include "tests/kernels/attention_case.h"

namespace cairn::kernels {
namespace {

using ::testing::Each;

class EdgesTest : public testing::TestWithParam<AttentionPath> {};

INSTANTIATE_TEST_SUITE_P(Paths, EdgesTest, testing::ValuesIn(AvailablePaths()),
                         [](const auto& info) { return info.param.name; });

// Sets every row and scale of tokens [begin, end of its page) of sequence 0 to a poison: scales to
// that number, rows by `fill`. Keys and values are of one size.
void Poison(AttentionCase* a_case, uint64_t begin, float poison,
            const std::function<void(std::byte* row)>& fill) {
  PagedKv& kv = a_case->kv();
  const KvShape& shape = kv.shape();
  const uint64_t end = (begin / shape.page_tokens + 1) * shape.page_tokens;
  for (uint32_t head = 0; head < shape.kv_heads; ++head) {
    for (uint64_t token = begin; token < end; ++token) {
      fill(kv.KeyRow(token, head));
      fill(kv.ValueRow(token, head));
      std::byte* const at = kv.SegmentOfPage(kv.table()[token / shape.page_tokens], 0);
      const uint64_t row = uint64_t{head} * shape.page_tokens + token % shape.page_tokens;
      std::memcpy(at + kv.segment().key_scales + row * 4, &poison, 4);
      std::memcpy(at + kv.segment().value_scales + row * 4, &poison, 4);
    }
  }
}

void PoisonBfloat16(AttentionCase* a_case, uint64_t begin, float poison) {
  const uint16_t code = Bfloat16OfFloat(poison);
  const uint32_t dim = a_case->kv().shape().key_dim;
  Poison(a_case, begin, poison, [code, dim](std::byte* row) {
    for (uint32_t d = 0; d < dim; ++d) std::memcpy(row + d * 2, &code, 2);
  });
}

TEST_P(EdgesTest, UnusedTailSlotsDoNotMatter) {
  for (uint64_t tokens : {1, 7, 8, 13, 33, 70}) {
    CaseOptions options;
    options.shape = ShapeOf(KvDtype::kBfloat16, 2, 16, 64);
    options.shape.scales = KvScales::kPerTokenAndHead;
    options.query_heads = 8;
    options.sequences = {OneQuery(tokens)};
    AttentionCase a_case(options);
    const AttentionResult clean = a_case.Run(GetParam());
    for (float poison : {std::numeric_limits<float>::quiet_NaN(), 1e3f, INFINITY}) {
      PoisonBfloat16(&a_case, tokens, poison);
      ExpectIdentical(a_case.Run(GetParam()), clean);
    }
  }
}

// Codes of all ones are NaN in each float format, of 0x7f large numbers or NaN.
TEST_P(EdgesTest, UnusedTailSlotsDoNotMatterInAnyDtype) {
  constexpr uint64_t kTokens = 21;
  for (const KvDtype dtype : {KvDtype::kFloat16, KvDtype::kBfloat16, KvDtype::kFloat32,
                              KvDtype::kFloat8E4m3fn, KvDtype::kInt8, KvDtype::kInt4}) {
    SCOPED_TRACE(NameOf(dtype));
    CaseOptions options;
    options.shape = ShapeOf(dtype, 2, 16, 64);
    options.shape.scales = KvScales::kPerTokenAndHead;
    options.query_heads = 8;
    options.sequences = {OneQuery(kTokens)};
    AttentionCase a_case(options);
    const AttentionResult clean = a_case.Run(GetParam());
    const KvShape& shape = a_case.kv().shape();
    for (const int code : {0xff, 0x7f}) {
      Poison(&a_case, kTokens, std::numeric_limits<float>::quiet_NaN(),
             [&](std::byte* row) { std::memset(row, code, RowBytes(dtype, shape.key_dim)); });
      ExpectIdentical(a_case.Run(GetParam()), clean);
    }
  }
}

TEST_P(EdgesTest, PagesBehindTheWindowMayBeGone) {
  CaseOptions options;
  options.shape = ShapeOf(KvDtype::kFloat32, 1, 16, 64);
  options.query_heads = 2;
  options.window_tokens = 40;
  options.sequences = {OneQuery(200)};
  AttentionCase a_case(options);
  const AttentionResult all = a_case.Run(GetParam());
  // The query sees positions 161 to 199: pages 0 to 9 may be anything.
  std::vector<KvPage>& table = *a_case.kv().mutable_table();
  for (size_t i = 0; i < 10; ++i) table[i] = {77, 12345};
  ExpectIdentical(a_case.Run(GetParam()), all);
}

// All keys `key` in element 0, all values one; the query is 1 in element 0.
AttentionResult RunAtLogit(const AttentionPath& path, float key, uint64_t tokens) {
  CaseOptions options;
  options.shape = ShapeOf(KvDtype::kFloat32, 1, 16, 64);
  options.query_heads = 1;
  options.query_dtype = KvDtype::kFloat32;
  options.sequences = {OneQuery(tokens)};
  AttentionCase a_case(options);
  a_case.batch().softmax_scale = 1;
  std::memset(a_case.queries().data(), 0, a_case.queries().size());
  const float one = 1;
  std::memcpy(a_case.queries().data(), &one, sizeof(one));
  for (uint64_t token = 0; token < tokens; ++token) {
    std::memcpy(a_case.kv().KeyRow(token, 0), &key, sizeof(key));
    for (uint32_t d = 0; d < 64; ++d) {
      std::memcpy(a_case.kv().ValueRow(token, 0) + d * 4, &one, sizeof(one));
    }
  }
  return a_case.Run(path);
}

TEST_P(EdgesTest, LogitsFarBelowAnySentinelAreLogits) {
  for (float logit : {-524288.0f, -5.1e4f, -1e30f, 524288.0f}) {
    const AttentionResult result = RunAtLogit(GetParam(), logit, 2);
    EXPECT_THAT(result.output, Each(1.0f)) << logit;
    EXPECT_NEAR(result.log_sum_exp[0], logit + std::log(2.0f), std::fabs(logit) * 1e-6) << logit;
  }
  EXPECT_NEAR(RunAtLogit(GetParam(), 0, 1024).log_sum_exp[0], std::log(1024.0), 1e-5);
}

TEST_P(EdgesTest, RowsThatSeeNothingAreZerosAndMinusInfinity) {
  CaseOptions options;
  options.shape = ShapeOf(KvDtype::kBfloat16, 2, 16, 64);
  options.query_heads = 4;
  options.window_tokens = 8;
  // No tokens; all behind the window; a query before what is stored; one that sees nothing beside
  // one that does.
  options.sequences = {OneQuery(0), {100, {500}, 0}, {100, {3}, 50}, {100, {40, 500}, 0}};
  AttentionCase a_case(options);
  const AttentionResult result = a_case.Run(GetParam());
  const AttentionResult reference = a_case.Reference();
  ExpectClose(result, reference, GetParam().tolerance(options.shape));
  for (size_t row : {0, 4, 8, 16}) {
    EXPECT_EQ(result.log_sum_exp[row], -INFINITY);
    EXPECT_EQ(result.output[row * 64], 0.0f);
  }
  EXPECT_TRUE(std::isfinite(result.log_sum_exp[12]));
}

TEST_P(EdgesTest, AnEmptyBatchAndSequencesWithoutQueriesAreNothingToDo) {
  CaseOptions options;
  options.shape = ShapeOf(KvDtype::kBfloat16, 2, 16, 64);
  options.query_heads = 2;
  EXPECT_TRUE(AttentionCase(options).Run(GetParam()).output.empty());
  options.sequences = {{40, {}, 0}, OneQuery(20), {0, {}, 0}};
  AttentionCase a_case(options);
  ExpectClose(a_case.Run(GetParam()), a_case.Reference(), GetParam().tolerance(options.shape));
}

TEST_P(EdgesTest, OffsetsBeyondFourGigabytes) {
  CaseOptions options;
  options.shape = ShapeOf(KvDtype::kBfloat16, 8, 128, 128);
  options.query_heads = 8;
  options.pages_total = 20000;  // Of 512 KiB, most of them never touched.
  options.sequences = {OneQuery(300), OneQuery(150)};
  AttentionCase a_case(options);
  uint64_t farthest = 0;
  for (size_t i = 0; i < 5; ++i) farthest = std::max(farthest, a_case.kv().table()[i].offset);
  ASSERT_GT(farthest, uint64_t{1} << 32);
  ExpectClose(a_case.Run(GetParam()), a_case.Reference(), GetParam().tolerance(options.shape));
}

TEST_P(EdgesTest, ThreadsAndBatchMatesDoNotChangeABit) {
  CaseOptions options;
  options.shape = ShapeOf(KvDtype::kBfloat16, 4, 16, 64);
  options.query_heads = 8;
  for (uint64_t tokens : {5, 2000, 0, 600, 17, 130}) {
    options.sequences.push_back(OneQuery(tokens));
  }
  AttentionCase a_case(options);
  const AttentionResult together = a_case.Run(GetParam());
  for (uint32_t workers : {2, 3, 7}) ExpectIdentical(a_case.Run(GetParam(), workers), together);

  const std::vector<AttentionSequence> sequences = a_case.sequences();
  for (size_t i = 0; i < sequences.size(); ++i) {
    a_case.sequences() = {sequences[i]};
    const AttentionResult alone = a_case.Run(GetParam());
    for (size_t row = i * 8; row < (i + 1) * 8; ++row) {
      EXPECT_EQ(alone.log_sum_exp[row], together.log_sum_exp[row]);
      EXPECT_EQ(std::memcmp(&alone.output[row * 64], &together.output[row * 64], 64 * 4), 0);
    }
  }
}

TEST_P(EdgesTest, CascadeEqualsOnePass) {
  for (uint64_t prefix : {128, 512, 2048}) {
    for (uint64_t suffix : {17, 37}) {
      CaseOptions options;
      options.shape = ShapeOf(KvDtype::kFloat32, 2, 1, 64);
      options.query_heads = 4;
      options.query_dtype = KvDtype::kFloat32;
      options.sequences = {OneQuery(prefix + suffix)};
      AttentionCase a_case(options);
      const AttentionResult whole = a_case.Run(GetParam());
      AttentionSequence& sequence = a_case.sequences()[0];
      sequence.kv_tokens = prefix;
      const AttentionResult first = a_case.Run(GetParam());
      sequence.pages += prefix;
      sequence.page_count -= prefix;
      sequence.kv_tokens = suffix;
      sequence.first_position = prefix;
      const AttentionResult second = a_case.Run(GetParam());
      const PartialResult parts[] = {{first.output.data(), first.log_sum_exp.data()},
                                     {second.output.data(), second.log_sum_exp.data()}};
      AttentionResult merged = whole;
      MergePartials(parts, 2, 4, 64, merged.output.data(), merged.log_sum_exp.data());
      ExpectClose(merged, whole, 1e-5);
    }
  }
}

// One visible token: the output is its value, exactly, for every code.
TEST_P(EdgesTest, EveryCodeIsReadExactly) {
  for (KvDtype dtype : {KvDtype::kFloat8E4m3fn, KvDtype::kInt8, KvDtype::kInt4}) {
    CaseOptions options;
    options.shape = ShapeOf(dtype, 1, 16, 256);
    options.query_heads = 1;
    options.sequences = {OneQuery(1)};
    AttentionCase a_case(options);
    std::byte* const row = a_case.kv().ValueRow(0, 0);
    const uint64_t bytes = RowBytes(dtype, 256);
    for (uint64_t i = 0; i < bytes; ++i) {
      row[i] = static_cast<std::byte>(dtype == KvDtype::kInt4 ? i * 2 + 1 : i);
    }
    const float one = 1;
    std::memcpy(
        a_case.kv().SegmentOfPage(a_case.kv().table()[0], 0) + a_case.kv().segment().value_scales,
        &one, sizeof(one));
    const AttentionResult result = a_case.Run(GetParam());
    for (uint32_t d = 0; d < 256; ++d) {
      const float expected = DecodeElement(dtype, row, d);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(result.output[d])) << NameOf(dtype) << " " << d;
      } else {
        EXPECT_EQ(result.output[d], expected) << NameOf(dtype) << " " << d;
      }
    }
  }
}

TEST_P(EdgesTest, ANanQueryHarmsItsOwnRowsOnly) {
  CaseOptions options;
  options.shape = ShapeOf(KvDtype::kBfloat16, 1, 16, 64);
  options.query_heads = 4;
  options.sequences = {{100, {100, 101}, 0}};
  AttentionCase a_case(options);
  const AttentionResult clean = a_case.Run(GetParam());
  const uint16_t nan = 0x7fc0;
  std::memcpy(a_case.queries().data(), &nan, sizeof(nan));
  const AttentionResult result = a_case.Run(GetParam());
  EXPECT_TRUE(std::isnan(result.output[0]));
  EXPECT_TRUE(std::isnan(result.log_sum_exp[0]));
  EXPECT_EQ(std::memcmp(&result.output[64], &clean.output[64], 7 * 64 * sizeof(float)), 0);
}

TEST_P(EdgesTest, PagesMayBeShared) {
  CaseOptions options;
  options.shape = ShapeOf(KvDtype::kBfloat16, 2, 16, 64);
  options.query_heads = 2;
  options.sequences = {OneQuery(64), OneQuery(64)};
  AttentionCase a_case(options);
  std::vector<KvPage>& table = *a_case.kv().mutable_table();
  table[4] = table[0];  // The second sequence begins with pages of the first, one of them twice.
  table[5] = table[1];
  table[6] = table[1];
  ExpectClose(a_case.Run(GetParam()), a_case.Reference(), GetParam().tolerance(options.shape));
}

}  // namespace
}  // namespace cairn::kernels
