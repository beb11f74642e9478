// Gather and scatter over every engine layout against an index computed element by element; random
// permutations of blocks; bytes outside are compared.
#include "kernels/block_copy.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/kernels/attention_case.h"

namespace cairn::kernels {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kBlocks = 6;
constexpr uint32_t kTensorHeads = 4;

// Where byte `byte` of a row lies in the engine's tensor, by the layout's written order of axes.
uint64_t EngineIndex(EngineLayout layout, const KvShape& shape, bool is_value, uint64_t block,
                     uint64_t token, uint64_t head, uint64_t byte) {
  const uint64_t T = shape.page_tokens, H = kTensorHeads;
  const uint64_t K = RowBytes(shape.dtype, shape.key_dim),
                 V = RowBytes(shape.dtype, shape.value_dim);
  const uint64_t kv = is_value ? 1 : 0;
  switch (layout) {
    case EngineLayout::kKvBlocks:
      return (((kv * kBlocks + block) * T + token) * H + head) * K + byte;
    case EngineLayout::kBlocksKv:
      return (((block * 2 + kv) * T + token) * H + head) * K + byte;
    case EngineLayout::kBlocksKvHeads:
      return (((block * 2 + kv) * H + head) * T + token) * K + byte;
    case EngineLayout::kPacked:
      return ((block * T + token) * H + head) * (K + V) + kv * K + byte;
  }
  return 0;
}

class BlockCopyTest : public testing::TestWithParam<EngineLayout> {
 protected:
  // An engine with random bytes and as many empty pages; heads 1 and 2 of its four are ours.
  void Start(const KvShape& shape) {
    copy_.shape = shape;
    segment_ = SegmentOf(shape);
    copy_.tensor = MakeEngineTensor(GetParam(), shape, kBlocks, kTensorHeads, 1, nullptr);
    engine_.resize(copy_.tensor.bytes);
    std::mt19937_64 random(5);
    for (std::byte& byte : engine_) byte = static_cast<std::byte>(random());
    copy_.tensor.base = engine_.data();
    kv_ = std::make_unique<PagedKv>(shape, kBlocks, 1, 3);
    region_ = {const_cast<std::byte*>(kv_->base()), kv_->bytes()};
    std::fill_n(region_.base, region_.bytes, std::byte{0xaa});
    places_.clear();
    for (uint64_t i = 0; i < kBlocks; ++i) places_.push_back({kv_->table()[i], i});
    std::shuffle(places_.begin(), places_.end(), random);
    copy_.regions = &region_;
    copy_.region_count = 1;
    copy_.places = places_.data();
    copy_.place_count = places_.size();
  }

  // Calls visit(stored byte, index in the engine) for every byte of our heads.
  template <class Visit>
  void ForEachByte(const Visit& visit) {
    const KvShape& shape = copy_.shape;
    for (const BlockPlace& place : places_) {
      for (bool is_value : {false, true}) {
        const uint64_t row_bytes =
            RowBytes(shape.dtype, is_value ? shape.value_dim : shape.key_dim);
        std::byte* at =
            region_.base + place.page.offset + (is_value ? segment_.value : segment_.key);
        for (uint64_t h = 0; h < shape.kv_heads; ++h) {
          for (uint64_t t = 0; t < shape.page_tokens; ++t) {
            for (uint64_t i = 0; i < row_bytes; ++i, ++at) {
              visit(at, EngineIndex(GetParam(), shape, is_value, place.block, t, h + 1, i));
            }
          }
        }
      }
    }
  }

  BlockCopy copy_;
  KvSegment segment_;
  std::vector<std::byte> engine_;
  std::unique_ptr<PagedKv> kv_;
  WritableKvRegion region_;
  std::vector<BlockPlace> places_;
};

INSTANTIATE_TEST_SUITE_P(Layouts, BlockCopyTest,
                         testing::Values(EngineLayout::kKvBlocks, EngineLayout::kBlocksKv,
                                         EngineLayout::kBlocksKvHeads, EngineLayout::kPacked));

TEST_P(BlockCopyTest, GatherTakesEveryByteToItsPlaceAndPadsWithZeros) {
  for (KvDtype dtype : {KvDtype::kBfloat16, KvDtype::kFloat8E4m3fn}) {
    KvShape shape = ShapeOf(dtype, 2, 5, 26);
    shape.scales = KvScales::kNone;
    Start(shape);
    ASSERT_EQ(GatherBlocks(copy_), "");
    ForEachByte([&](const std::byte* at, uint64_t i) { ASSERT_EQ(*at, engine_[i]); });
    const std::byte* at = region_.base + places_[0].page.offset;
    for (uint64_t i = segment_.value + segment_.value_bytes; i < segment_.bytes; ++i) {
      EXPECT_EQ(at[i], std::byte{0});
    }
    for (uint64_t i = segment_.key + segment_.key_bytes; i < segment_.value; ++i) {
      EXPECT_EQ(at[i], std::byte{0});
    }
  }
}

TEST_P(BlockCopyTest, ScatterPutsThemBackAndTouchesNoOtherHead) {
  Start(ShapeOf(KvDtype::kBfloat16, 2, 5, 26));
  const std::vector<std::byte> before = engine_;
  ASSERT_EQ(GatherBlocks(copy_), "");
  std::vector<bool> ours(engine_.size());
  ForEachByte([&](const std::byte*, uint64_t i) {
    ours[i] = true;
    engine_[i] = std::byte{0};
  });
  for (size_t i = 0; i < engine_.size(); ++i) {
    ASSERT_TRUE(ours[i] || engine_[i] == before[i]);
  }
  ASSERT_EQ(ScatterBlocks(copy_), "");
  EXPECT_EQ(engine_, before);
}

TEST_P(BlockCopyTest, ScalesTravelToo) {
  for (KvScales scales : {KvScales::kPerHead, KvScales::kPerTokenAndHead}) {
    KvShape shape = ShapeOf(KvDtype::kInt8, 2, 4, 32);
    shape.scales = scales;
    Start(shape);
    const bool by_head = scales == KvScales::kPerHead;
    std::vector<float> numbers(kBlocks * 8 * 2);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
    std::byte* const base = reinterpret_cast<std::byte*>(numbers.data());
    // [block][token][head], values after all keys; one a head uses the first token's.
    const uint64_t half = kBlocks * 8 * 4;
    copy_.tensor.key_scales = {base, half, 32, 4, by_head ? 0u : 8u};
    copy_.tensor.value_scales = {base + half, half, 32, 4, by_head ? 0u : 8u};
    ASSERT_EQ(GatherBlocks(copy_), "");
    for (const BlockPlace& place : places_) {
      const std::byte* at = region_.base + place.page.offset;
      float stored;  // Head 1, token 3 or its only one.
      std::memcpy(&stored, at + segment_.value_scales + (by_head ? 1 : 7) * 4, 4);
      EXPECT_EQ(stored, static_cast<float>(kBlocks * 8 + place.block * 8 + (by_head ? 1 : 7)));
    }
    const std::vector<float> before = numbers;
    std::fill(numbers.begin(), numbers.end(), -1.0f);
    ASSERT_EQ(ScatterBlocks(copy_), "");
    for (size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(numbers[i], by_head && i % 8 >= 2 ? -1.0f : before[i]);
    }
  }
}

TEST_P(BlockCopyTest, WhatIsOutOfRangeIsNamedAndNothingIsWritten) {
  Start(ShapeOf(KvDtype::kBfloat16, 2, 5, 26));
  const std::vector<std::byte> before(region_.base, region_.base + region_.bytes);
  places_[3].block = kBlocks;
  EXPECT_THAT(GatherBlocks(copy_), HasSubstr("place 3: block 6"));
  places_[3].block = 0;
  places_[3].page.offset = region_.bytes - 64;
  EXPECT_THAT(GatherBlocks(copy_), HasSubstr("place 3: page"));
  places_[3].page.offset = 0;
  copy_.tensor.bytes /= 2;
  EXPECT_THAT(GatherBlocks(copy_), HasSubstr("strides leave"));
  copy_.tensor.block_stride = ~uint64_t{0};
  EXPECT_THAT(ScatterBlocks(copy_), HasSubstr("strides leave"));
  EXPECT_TRUE(std::equal(before.begin(), before.end(), region_.base));
}

}  // namespace
}  // namespace cairn::kernels
