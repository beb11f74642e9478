// Arguments from outside that do not fit: each is named, by the runner and the reference alike, and
// nothing is written.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <string>

#include "kernels/attention/reference.h"
#include "kernels/attention/attention_runner.h"
#include "tests/kernels/attention_case.h"

namespace cairn::kernels {
namespace {

using ::testing::HasSubstr;

CaseOptions SmallOptions() {
  CaseOptions options;
  options.shape = ShapeOf(KvDtype::kBfloat16, 2, 16, 64);
  options.query_heads = 4;
  options.sequences = {OneQuery(20), OneQuery(40)};
  return options;
}

// What both say after `spoil`.
std::string ProblemAfter(const std::function<void(AttentionCase*)>& spoil) {
  AttentionCase a_case(SmallOptions());
  (void)a_case.Run(
      PathOf(CpuPath::kBaseline));  // Sets pointers; a second run reads the spoilt batch.
  spoil(&a_case);
  InlinePool pool;
  AttentionRunner runner(CpuPath::kPortable, &pool);
  const std::string problem = runner.Run(a_case.batch());
  EXPECT_EQ(ReferenceAttention(a_case.batch()), problem);
  return problem;
}

TEST(AttentionValidationTest, ShapesAndOptions) {
  const auto after = [](const std::function<void(AttentionBatch*)>& spoil) {
    return ProblemAfter([&](AttentionCase* a_case) { spoil(&a_case->batch()); });
  };
  using Batch = AttentionBatch;
  EXPECT_THAT(after([](Batch* b) { b->query_heads = 5; }), HasSubstr("query_heads 5"));
  EXPECT_THAT(after([](Batch* b) { b->query_heads = 0; }), HasSubstr("query_heads 0"));
  EXPECT_THAT(after([](Batch* b) { b->shape.kv_heads = 0; }), HasSubstr("kv_heads 0"));
  EXPECT_THAT(after([](Batch* b) { b->shape.page_tokens = 0; }), HasSubstr("page_tokens 0"));
  EXPECT_THAT(after([](Batch* b) { b->shape.key_dim = 63; }), HasSubstr("key_dim 63"));
  EXPECT_THAT(after([](Batch* b) { b->shape.key_dim = 1 << 20; }), HasSubstr("key_dim 1048576"));
  EXPECT_THAT(after([](Batch* b) { b->shape.dtype = static_cast<KvDtype>(9); }),
              HasSubstr("dtype 9"));
  EXPECT_THAT(after([](Batch* b) { b->shape.scales = static_cast<KvScales>(7); }),
              HasSubstr("scales 7"));
  EXPECT_THAT(after([](Batch* b) { b->shape.dtype = KvDtype::kInt8; }), HasSubstr("needs scales"));
  EXPECT_THAT(after([](Batch* b) { b->query_dtype = KvDtype::kInt8; }),
              HasSubstr("query_dtype int8"));
  EXPECT_THAT(after([](Batch* b) { b->latent_value_dim = 64; }), HasSubstr("latent_value_dim 64"));
  EXPECT_THAT(after([](Batch* b) { b->softmax_scale = NAN; }), HasSubstr("softmax_scale"));
  EXPECT_THAT(after([](Batch* b) { b->logit_soft_cap = -1; }), HasSubstr("logit_soft_cap -1"));
  EXPECT_THAT(after([](Batch* b) { b->sink_tokens = 4; }), HasSubstr("sink_tokens 4"));
  EXPECT_THAT(after([](Batch* b) { b->regions.segment_offset = 32; }),
              HasSubstr("segment_offset 32"));
}

TEST(AttentionValidationTest, SequencesAndPages) {
  const auto after = [](const std::function<void(AttentionSequence*)>& spoil) {
    return ProblemAfter([&](AttentionCase* a_case) { spoil(&a_case->sequences()[1]); });
  };
  using Sequence = AttentionSequence;
  EXPECT_THAT(after([](Sequence* s) { s->kv_tokens = 49; }),
              testing::AllOf(HasSubstr("sequence 1"), HasSubstr("need 4 pages"),
                             HasSubstr("the table has 3")));
  EXPECT_THAT(after([](Sequence* s) { s->kv_tokens = ~uint64_t{0}; }), HasSubstr("kv_tokens"));
  EXPECT_THAT(after([](Sequence* s) { s->pages = nullptr; }), HasSubstr("pages"));
  EXPECT_THAT(after([](Sequence* s) { s->queries = nullptr; }), HasSubstr("queries is null"));
  EXPECT_THAT(after([](Sequence* s) { s->query_count = uint64_t{1} << 60; }),
              HasSubstr("are more than"));
}

TEST(AttentionValidationTest, PagesOutsideTheirRegion) {
  const auto after = [](KvPage page) {
    return ProblemAfter(
        [page](AttentionCase* a_case) { (*a_case->kv().mutable_table())[3] = page; });
  };
  EXPECT_THAT(after({1, 0}),
              testing::AllOf(HasSubstr("sequence 1: page 1"), HasSubstr("region 1")));
  EXPECT_THAT(after({0, 32}), HasSubstr("offset 32"));
  EXPECT_THAT(after({0, uint64_t{1} << 40}), HasSubstr("offset 1099511627776"));
  EXPECT_THAT(after({0, ~uint64_t{63}}), HasSubstr("offset"));  // Would wrap around.
}

TEST(AttentionValidationTest, AProblemWritesNothing) {
  AttentionCase a_case(SmallOptions());
  AttentionResult result = a_case.Run(PathOf(CpuPath::kPortable));
  const AttentionResult before = result;
  (*a_case.kv().mutable_table())[4] = {9, 9};
  InlinePool pool;
  AttentionRunner runner(CpuPath::kPortable, &pool);
  EXPECT_NE(runner.Run(a_case.batch()), "");
  ExpectIdentical(result, before);
}

TEST(AttentionValidationTest, PartialResultsAreBounded) {
  CaseOptions options;
  options.shape = ShapeOf(KvDtype::kBfloat16, 1, 128, 1024);
  options.query_heads = 64;
  options.sequences = {OneQuery(600)};
  AttentionCase a_case(options);
  AttentionResult result = a_case.Run(PathOf(CpuPath::kPortable));
  // The same query 1,000 times in three sequences: 192,000 rows, each two chunks of 4 KiB.
  AttentionBatch& batch = a_case.batch();
  const std::vector<AttentionQuery> queries(1000, *a_case.sequences()[0].queries);
  a_case.sequences()[0].queries = queries.data();
  a_case.sequences()[0].query_count = queries.size();
  const std::vector<AttentionSequence> sequences(3, a_case.sequences()[0]);
  batch.sequences = sequences.data();
  batch.sequence_count = sequences.size();
  InlinePool pool;
  AttentionRunner runner(CpuPath::kPortable, &pool);
  EXPECT_THAT(runner.Run(batch), HasSubstr("partial results of more than"));
}

}  // namespace
}  // namespace cairn::kernels
