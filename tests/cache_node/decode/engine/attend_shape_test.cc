// Parameters against a layout: what is wrong is named; and numbers that are not finite are found
// wherever they stand.
#include "cache_node/decode/engine/attend_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/quantize.h"

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

class AttendShapeTest : public ::testing::Test {
 protected:
  static PayloadMap MakeMap() {
    Layout layout{.version = 1, .block_tokens = 16, .slices = 2, .groups = {}};
    layout.groups.push_back(
        {.layers = 3, .kv_heads = 4, .key_dim = 32, .value_dim = 16, .dtype = Dtype::kBfloat16});
    layout.groups.push_back({.layers = 1, .dtype = Dtype::kOpaque, .opaque_bytes = 8});
    layout.groups.push_back(
        {.layers = 1, .kv_heads = 2, .key_dim = 3, .value_dim = 3, .dtype = Dtype::kFloat32});
    return *PayloadMap::Make(layout);
  }
  static AttendParameters Good() {
    AttendParameters parameters;
    parameters.query_heads = 8;
    parameters.row_dtype = 2;
    parameters.softmax_scale = 1;
    return parameters;
  }
  void ExpectWrong(const AttendParameters& parameters, absl::StatusCode code,
                   const std::string& message) {
    const absl::Status status = MakeAttendShape(map_, parameters).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }

  const PayloadMap map_ = MakeMap();
};

TEST_F(AttendShapeTest, SizesFollowFromTheSlicesAskedFor) {
  const AttendShape all = *MakeAttendShape(map_, Good());
  EXPECT_EQ(all.slices, 2u);
  EXPECT_EQ(all.kv.kv_heads, 2u);
  EXPECT_EQ(all.QueryRowBytes(), 8u * 32 * 2);
  EXPECT_EQ(all.KeyRowBytes(), 4u * 32 * 2);
  EXPECT_EQ(all.ValueRowBytes(), 4u * 16 * 2);
  EXPECT_EQ(all.OutputRowBytes(), 8u * 16 * 4);
  EXPECT_EQ(all.SegmentOffset(1, 2), map_.parts()[1].offset + 2 * map_.parts()[1].segment_bytes);
  EXPECT_EQ(all.TokenBytes(), 2u * map_.parts()[0].segment_bytes / 16);

  AttendParameters parameters = Good();
  parameters.first_slice = 1;
  const AttendShape one = *MakeAttendShape(map_, parameters);
  EXPECT_EQ(one.slices, 1u);
  EXPECT_EQ(one.SegmentOffset(0, 0), map_.parts()[1].offset);
  EXPECT_FALSE(SameAttention(all, one));
  EXPECT_TRUE(SameAttention(all, *MakeAttendShape(map_, Good())));
}

TEST_F(AttendShapeTest, WhatIsWrongIsNamed) {
  const auto with = [](auto set) {
    AttendParameters parameters = Good();
    set(parameters);
    return parameters;
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;
  ExpectWrong(with([](auto& p) { p.group = 3; }), kInvalid, "group: 3");
  ExpectWrong(with([](auto& p) { p.group = 1; }), kPrecondition, "group 1");
  ExpectWrong(with([](auto& p) { p.group = 2; }), kPrecondition, "key_dim");
  ExpectWrong(with([](auto& p) { p.first_slice = 2; }), kInvalid, "first_slice: 2");
  ExpectWrong(with([](auto& p) { p.slices = 3; }), kInvalid, "slices: 3");
  ExpectWrong(with([](auto& p) { p.query_heads = 6; }), kInvalid, "query_heads: 6");
  ExpectWrong(with([](auto& p) { p.query_heads = 0; }), kInvalid, "query_heads: 0");
  ExpectWrong(with([](auto& p) { p.query_heads = 1 << 13; }), kInvalid, "query_heads: 8192");
  ExpectWrong(with([](auto& p) { p.row_dtype = 5; }), kInvalid, "row_dtype: 5");
  ExpectWrong(with([](auto& p) { p.softmax_scale = 0; }), kInvalid, "softmax_scale");
  ExpectWrong(with([](auto& p) { p.softmax_scale = NAN; }), kInvalid, "softmax_scale: nan");
  ExpectWrong(with([](auto& p) { p.logit_soft_cap = -1; }), kInvalid, "logit_soft_cap: -1");
  ExpectWrong(with([](auto& p) { p.sink_tokens = 4; }), kInvalid, "sink_tokens: 4");
  ExpectWrong(with([](auto& p) { p.window_tokens = uint64_t{1} << 41; }), kInvalid,
              "window_tokens");
  ExpectWrong(with([](auto& p) { p.latent_value_dim = 8; }), kInvalid, "latent_value_dim: 8");
  const AttendShape shape = *MakeAttendShape(map_, Good());
  EXPECT_TRUE(CheckLayer(shape, 2).ok());
  EXPECT_EQ(CheckLayer(shape, 3).code(), kInvalid);
}

TEST_F(AttendShapeTest, ANumberThatIsNotFiniteIsFoundAnywhere) {
  for (const kernels::KvDtype dtype :
       {kernels::KvDtype::kFloat16, kernels::KvDtype::kBfloat16, kernels::KvDtype::kFloat32}) {
    const float most = dtype == kernels::KvDtype::kFloat16 ? 65504.0f : 3e38f;
    for (const uint64_t count : {1u, 2u, 3u, 4u, 7u, 64u, 65u}) {
      for (const float bad : {NAN, INFINITY, -INFINITY}) {
        for (uint64_t at = 0; at < count; ++at) {
          std::vector<float> numbers(count, -most);
          std::vector<std::byte> bytes(count * sizeof(float));
          kernels::Quantize(dtype, numbers.data(), count, 1, bytes.data());
          EXPECT_TRUE(AllFinite(dtype, bytes.data(), count));
          const uint32_t exponent = dtype == kernels::KvDtype::kFloat16    ? 0x7c00
                                    : dtype == kernels::KvDtype::kBfloat16 ? 0x7f80
                                                                           : 0x7f800000;
          const uint32_t code = exponent | (std::isnan(bad) ? 1 : 0);
          const uint64_t size = kernels::RowBytes(dtype, 1);
          std::memcpy(bytes.data() + at * size, &code, size);
          EXPECT_FALSE(AllFinite(dtype, bytes.data(), count)) << count << " at " << at;
        }
      }
    }
  }
  EXPECT_TRUE(AllFinite(kernels::KvDtype::kFloat32, nullptr, 0));
}

}  // namespace
}  // namespace cairn::node
