// Every path against the float64 reference, over dtypes, shapes and lengths; each case is a batch
// of mixed sequences over shuffled pages.
#include <gmock/gmock.h>

#include <string>

#include "tests/kernels/attention_case.h"

namespace cairn::kernels {
namespace {

constexpr KvDtype kDtypes[] = {KvDtype::kFloat16,      KvDtype::kBfloat16, KvDtype::kFloat32,
                               KvDtype::kFloat8E4m3fn, KvDtype::kInt8,     KvDtype::kInt4};

class EachPathTest : public testing::TestWithParam<AttentionPath> {
 protected:
  void ExpectLikeReference(const CaseOptions& options) {
    AttentionCase a_case(options);
    ExpectClose(a_case.Run(GetParam()), a_case.Reference(), GetParam().tolerance(options.shape));
  }
};

INSTANTIATE_TEST_SUITE_P(Paths, EachPathTest, testing::ValuesIn(AvailablePaths()),
                         [](const auto& info) { return info.param.name; });

TEST_P(EachPathTest, EveryDtypeAtLengthsAroundAPageAndBeyondAChunk) {
  for (KvDtype dtype : kDtypes) {
    SCOPED_TRACE(NameOf(dtype));
    CaseOptions options;
    options.shape = ShapeOf(dtype, 2, 16, 128);
    options.query_heads = 8;
    for (uint64_t tokens : {0, 1, 15, 16, 17, 64, 65, 1100}) {
      options.sequences.push_back(OneQuery(tokens));
    }
    ExpectLikeReference(options);
  }
}

TEST_P(EachPathTest, AnyNumberOfHeadsInAGroup) {
  for (uint32_t group : {1, 2, 3, 5, 8, 12, 16, 33, 64}) {
    SCOPED_TRACE(group);
    CaseOptions options;
    options.shape = ShapeOf(KvDtype::kBfloat16, group > 16 ? 1 : 2, 16, 64);
    options.query_heads = options.shape.kv_heads * group;
    options.sequences = {OneQuery(100), OneQuery(37)};
    ExpectLikeReference(options);
  }
}

TEST_P(EachPathTest, HeadSizesThatVectorsDivideAndOthers) {
  for (uint32_t dim : {64, 80, 96, 128, 192, 256}) {
    for (KvDtype dtype : {KvDtype::kBfloat16, KvDtype::kFloat32, KvDtype::kInt4}) {
      SCOPED_TRACE(testing::Message() << dim << " " << NameOf(dtype));
      CaseOptions options;
      options.shape = ShapeOf(dtype, 2, 16, dim);
      options.query_heads = 4;
      options.sequences = {OneQuery(90)};
      ExpectLikeReference(options);
    }
  }
}

TEST_P(EachPathTest, KeysAndValuesOfDifferentSize) {
  for (KvDtype dtype : {KvDtype::kBfloat16, KvDtype::kFloat8E4m3fn}) {
    CaseOptions options;
    options.shape = ShapeOf(dtype, 2, 16, 192);
    options.shape.value_dim = 128;
    options.query_heads = 4;
    options.sequences = {OneQuery(90)};
    ExpectLikeReference(options);
  }
}

TEST_P(EachPathTest, PagesOfAnySize) {
  for (uint32_t page : {1, 8, 12, 16, 20, 64, 128}) {
    for (KvDtype dtype : {KvDtype::kBfloat16, KvDtype::kInt8}) {
      SCOPED_TRACE(testing::Message() << page << " " << NameOf(dtype));
      CaseOptions options;
      options.shape = ShapeOf(dtype, 2, page, 64);
      options.query_heads = 4;
      options.sequences = {OneQuery(page), OneQuery(page + 1), OneQuery(2 * page + 77)};
      ExpectLikeReference(options);
    }
  }
}

TEST_P(EachPathTest, LatentAttentionReadsValuesOutOfKeys) {
  for (KvDtype dtype : {KvDtype::kBfloat16, KvDtype::kFloat8E4m3fn, KvDtype::kFloat32}) {
    for (uint32_t heads : {4, 20}) {
      SCOPED_TRACE(testing::Message() << NameOf(dtype) << " " << heads);
      CaseOptions options;
      options.shape = ShapeOf(dtype, 1, 64, 576);
      options.shape.value_dim = 0;
      options.latent_value_dim = 512;
      options.query_heads = heads;
      options.sequences = {OneQuery(130)};
      ExpectLikeReference(options);
    }
  }
}

TEST_P(EachPathTest, QueriesOfEveryFloat) {
  for (KvDtype query : {KvDtype::kFloat32, KvDtype::kFloat16, KvDtype::kBfloat16}) {
    for (uint32_t heads : {4, 24}) {
      SCOPED_TRACE(testing::Message() << NameOf(query) << " " << heads);
      CaseOptions options;
      options.shape = ShapeOf(KvDtype::kBfloat16, 2, 16, 128);
      options.query_heads = heads;
      options.query_dtype = query;
      options.sequences = {OneQuery(1), OneQuery(70)};
      ExpectLikeReference(options);
    }
  }
}

TEST_P(EachPathTest, ScalesOfEveryKindWithEveryDtype) {
  for (KvDtype dtype : kDtypes) {
    for (KvScales scales : {KvScales::kPerHead, KvScales::kPerTokenAndHead}) {
      CaseOptions options;
      options.shape = ShapeOf(dtype, 2, 8, 64);
      options.shape.scales = scales;
      options.query_heads = 2;
      options.sequences = {OneQuery(75)};
      ExpectLikeReference(options);
    }
  }
}

TEST_P(EachPathTest, NewPositionsAreCausalAmongThemselves) {
  for (KvDtype dtype : {KvDtype::kBfloat16, KvDtype::kFloat32}) {
    CaseOptions options;
    options.shape = ShapeOf(dtype, 2, 16, 64);
    options.query_heads = 6;
    // The last four stored tokens are those of the four queries; a query before all of them.
    options.sequences = {{200, {196, 197, 198, 199}, 0}, {5, {0, 1, 4}, 0}, {64, {9}, 10}};
    ExpectLikeReference(options);
  }
}

TEST_P(EachPathTest, WindowWithSinksAndSoftCap) {
  for (uint64_t sinks : {0, 4, 70}) {
    for (float cap : {0.0f, 2.5f}) {
      SCOPED_TRACE(testing::Message() << sinks << " " << cap);
      CaseOptions options;
      options.shape = ShapeOf(KvDtype::kBfloat16, 1, 16, 64);
      options.query_heads = 3;
      options.window_tokens = 50;
      options.sink_tokens = sinks;
      options.logit_soft_cap = cap;
      // Within the window; windows that begin within a page; far behind all that is stored; a
      // stored part that begins after the sinks.
      options.sequences = {
          {30, {30}, 0}, {700, {690, 699, 700}, 0}, {300, {1000}, 0}, {300, {340, 360}, 100}};
      ExpectLikeReference(options);
    }
  }
}

TEST_P(EachPathTest, QueriesOfManyCallersOverOnePrefix) {
  for (uint32_t heads : {1, 4}) {
    CaseOptions options;
    options.shape = ShapeOf(KvDtype::kBfloat16, 1, 16, 128);
    options.query_heads = heads;
    options.sequences = {{600, std::vector<uint64_t>(40, 2000), 0}};
    ExpectLikeReference(options);
  }
}

TEST_P(EachPathTest, PeerCasesOfPagedDecode) {
  for (uint32_t page : {1, 8, 16}) {
    for (uint32_t heads : {4, 32}) {
      CaseOptions options;
      options.shape = ShapeOf(KvDtype::kFloat16, 4, page, heads == 4 ? 256 : 128);
      options.query_heads = heads;
      options.query_dtype = KvDtype::kFloat16;
      for (int i = 0; i < 12; ++i) options.sequences.push_back(OneQuery(54));
      options.sequences.push_back(OneQuery(97));
      options.sequences.push_back(OneQuery(512));
      ExpectLikeReference(options);
    }
  }
}

TEST_P(EachPathTest, PeerCasesOfALargeBatch) {
  for (int count : {17, 128}) {
    CaseOptions options;
    options.shape = ShapeOf(KvDtype::kFloat16, 4, 8, 128);
    options.query_heads = 4;
    options.query_dtype = KvDtype::kFloat16;
    for (int i = 0; i < count; ++i) options.sequences.push_back(OneQuery(i % 2 == 0 ? 54 : 97));
    ExpectLikeReference(options);
  }
}

TEST_P(EachPathTest, PeerCasesOfALongSequence) {
  for (KvDtype dtype : {KvDtype::kFloat16, KvDtype::kFloat8E4m3fn}) {
    for (uint32_t page : {1, 16}) {
      SCOPED_TRACE(testing::Message() << NameOf(dtype) << " " << page);
      CaseOptions options;
      options.shape = ShapeOf(dtype, 4, page, 128);
      options.query_heads = 4;
      options.query_dtype = KvDtype::kFloat16;
      options.sequences = {OneQuery(97), OneQuery(16384), OneQuery(2048)};
      ExpectLikeReference(options);
    }
  }
}

}  // namespace
}  // namespace cairn::kernels
