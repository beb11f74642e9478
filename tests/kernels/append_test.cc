// Appended tokens read back by the definition of segments; memory that is not theirs is compared
// byte for byte with what it was.
#include "kernels/append.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/decode_element.h"
#include "tests/kernels/attention_case.h"

namespace cairn::kernels {
namespace {

using ::testing::HasSubstr;

class AppendTest : public testing::Test {
 protected:
  // Three pages of four tokens, filled with a pattern, and rows for five tokens with gaps between
  // tokens and heads.
  void Start(const KvShape& shape) {
    batch_.shape = shape;
    segment_ = SegmentOf(shape);
    memory_.assign(3 * segment_.bytes + 64, std::byte{0x5a});
    const uint64_t address = reinterpret_cast<uintptr_t>(memory_.data());
    region_ = {memory_.data() + (64 - address % 64) % 64, 3 * segment_.bytes};
    pages_ = {{0, 2 * segment_.bytes}, {0, 0}, {0, segment_.bytes}};
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal(0, 2);
    rows_.resize(5 * 1000);
    for (float& row : rows_) row = normal(random);
    batch_.regions = &region_;
    batch_.region_count = 1;
    batch_.pages = pages_.data();
    batch_.page_count = pages_.size();
    batch_.keys = {reinterpret_cast<std::byte*>(rows_.data()), 4000, 200};
    batch_.values = {reinterpret_cast<std::byte*>(rows_.data() + 100), 4000, 200};
  }

  std::string Append(const std::vector<int64_t>& slots) {
    batch_.slots = slots.data();
    batch_.token_count = slots.size();
    return AppendTokens(batch_);
  }

  // Element of slot `slot`, with its scale.
  float Stored(bool is_key, uint64_t slot, uint32_t head, uint32_t dim) const {
    const KvShape& shape = batch_.shape;
    const std::byte* at = region_.base + pages_[slot / shape.page_tokens].offset;
    const uint64_t row = head * shape.page_tokens + slot % shape.page_tokens;
    const uint32_t dims = is_key ? shape.key_dim : shape.value_dim;
    float value =
        DecodeElement(shape.dtype, at + (is_key ? segment_.key : segment_.value), row * dims + dim);
    if (shape.scales == KvScales::kNone) return value;
    float scale;
    std::memcpy(&scale, at + (is_key ? segment_.key_scales : segment_.value_scales) + row * 4, 4);
    return value * scale;
  }

  AppendBatch batch_;
  KvSegment segment_;
  std::vector<std::byte> memory_;
  WritableKvRegion region_;
  std::vector<KvPage> pages_;
  std::vector<float> rows_;
};

TEST_F(AppendTest, RowsComeBackBitForBit) {
  Start(ShapeOf(KvDtype::kFloat32, 2, 4, 32));
  const std::vector<int64_t> slots = {3, 4, 11, 0, 6};
  ASSERT_EQ(Append(slots), "");
  for (size_t t = 0; t < slots.size(); ++t) {
    for (uint32_t h = 0; h < 2; ++h) {
      for (uint32_t d = 0; d < 32; ++d) {
        const uint64_t slot = static_cast<uint64_t>(slots[t]);
        EXPECT_EQ(Stored(true, slot, h, d), rows_[t * 1000 + h * 50 + d]);
        EXPECT_EQ(Stored(false, slot, h, d), rows_[t * 1000 + 100 + h * 50 + d]);
      }
    }
  }
}

TEST_F(AppendTest, QuantizedRowsTakeScalesOfTheirOwn) {
  for (KvDtype dtype : {KvDtype::kInt8, KvDtype::kInt4, KvDtype::kFloat8E4m3fn}) {
    KvShape shape = ShapeOf(dtype, 2, 4, 32);
    shape.scales = KvScales::kPerTokenAndHead;
    Start(shape);
    ASSERT_EQ(Append({5, 2}), "");
    const float steps = dtype == KvDtype::kInt4 ? 7 : (dtype == KvDtype::kInt8 ? 127 : 16);
    for (uint32_t h = 0; h < 2; ++h) {
      float most = 0;
      for (uint32_t d = 0; d < 32; ++d) most = std::max(most, std::fabs(rows_[h * 50 + d]));
      for (uint32_t d = 0; d < 32; ++d) {
        EXPECT_NEAR(Stored(true, 5, h, d), rows_[h * 50 + d], most / steps / 2 * 1.001f);
      }
    }
  }
}

TEST_F(AppendTest, OnlyTheRowsGivenAreWritten) {
  Start(ShapeOf(KvDtype::kBfloat16, 2, 4, 32));
  const std::vector<std::byte> before = memory_;
  ASSERT_EQ(Append({-1, 5, -7}), "");
  uint64_t changed = 0;
  for (size_t i = 0; i < memory_.size(); ++i) changed += memory_[i] != before[i] ? 1 : 0;
  EXPECT_LE(changed, 2 * 2 * 32 * 2u);
  EXPECT_EQ(Stored(true, 5, 1, 3), FloatOfBfloat16(Bfloat16OfFloat(rows_[1000 + 50 + 3])));
}

TEST_F(AppendTest, ASlotOutOfRangeLeavesEveryByte) {
  Start(ShapeOf(KvDtype::kBfloat16, 2, 4, 32));
  const std::vector<std::byte> before = memory_;
  EXPECT_THAT(Append({1, 12}), HasSubstr("token 1: slot 12"));
  EXPECT_THAT(Append({int64_t{1} << 62}), HasSubstr("slot 4611686018427387904"));
  pages_[1].offset += 64;  // Its end leaves the region of the last page's start.
  pages_[1].offset = 3 * segment_.bytes - 64;
  EXPECT_THAT(Append({0, 5}), HasSubstr("slot 5"));
  batch_.shape.scales = KvScales::kPerHead;
  EXPECT_THAT(Append({0}), HasSubstr("one a head"));
  EXPECT_EQ(memory_, before);
}

TEST_F(AppendTest, LatentKeysHaveNoValues) {
  KvShape shape = ShapeOf(KvDtype::kFloat32, 1, 4, 32);
  shape.value_dim = 0;
  Start(shape);
  batch_.values = {};
  ASSERT_EQ(Append({2}), "");
  EXPECT_EQ(Stored(true, 2, 0, 31), rows_[31]);
}

}  // namespace
}  // namespace cairn::kernels
