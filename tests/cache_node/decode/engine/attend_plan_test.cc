// Batches of random items over blocks that they share in random ways, each item held against the
// kernels' float64 reference over its own run alone; and, by what the plan says that it read, that
// shared blocks are read once, and only where that is worth it.
#include "cache_node/decode/engine/attend_plan.h"

#include <gtest/gtest.h>

#include <deque>

#include "absl/strings/str_cat.h"
#include "kernels/cpu_path.h"
#include "tests/cache_node/decode/engine/slot_pool.h"

namespace cairn::node {
namespace {

constexpr uint32_t kBlockTokens = 16;
constexpr double kTolerance = 2e-5;       // Of products in float32.
constexpr double kTolerance16Bit = 1e-2;  // Of products of bfloat16.

Layout TestLayout(Dtype dtype = Dtype::kFloat32, ScaleKind scales = ScaleKind::kNone) {
  Layout layout{.version = 1, .block_tokens = kBlockTokens, .slices = 2, .groups = {}};
  layout.groups.push_back({.kind = GroupKind::kLatent,
                           .layers = 2,
                           .kv_heads = 1,
                           .key_dim = 48,
                           .value_dim = 0,
                           .dtype = dtype,
                           .scales = scales});
  layout.groups.push_back({.kind = GroupKind::kFull,
                           .layers = 3,
                           .kv_heads = 4,
                           .key_dim = 32,
                           .value_dim = 32,
                           .dtype = dtype,
                           .scales = scales});
  layout.groups.push_back({.kind = GroupKind::kFull,
                           .layers = 1,
                           .kv_heads = 0,
                           .dtype = Dtype::kOpaque,
                           .opaque_bytes = 8});
  return layout;
}

AttendParameters FullParameters() {
  AttendParameters parameters;
  parameters.group = 1;
  parameters.query_heads = 8;
  parameters.row_dtype = 3;
  parameters.softmax_scale = 0.2f;
  return parameters;
}

class AttendPlanTest : public ::testing::Test {
 protected:
  void Use(const Layout& layout, const AttendParameters& parameters, uint64_t seed = 1) {
    pool_ = std::make_unique<SlotPool>(layout, seed);
    shape_ = *MakeAttendShape(pool_->map(), parameters);
  }

  std::vector<const std::byte*> NewSlots(size_t count) {
    std::vector<const std::byte*> slots(count);
    for (const std::byte*& slot : slots) slot = pool_->NewSlot();
    return slots;
  }

  // One item over these slots, the last of them filled with `last_tokens`.
  void Add(std::vector<const std::byte*> slots, uint64_t position, uint32_t rows = 1,
           uint32_t last_tokens = kBlockTokens, uint64_t first_position = 0, uint32_t layer = 0) {
    slots_.push_back(std::move(slots));
    const std::vector<const std::byte*>& kept = slots_.back();
    rows_.push_back(pool_->NewRows(shape_, position, rows));
    TestRows& made = rows_.back();
    AttendItem item;
    item.run.slots = kept;
    item.run.first_position = first_position;
    item.run.tokens = kept.empty() ? 0 : (kept.size() - 1) * kBlockTokens + last_tokens;
    item.position = position;
    item.rows = rows;
    item.layer = layer;
    item.queries = made.queries.data();
    item.output = made.output.data();
    item.log_sum_exp = made.log_sum_exp.data();
    items_.push_back(item);
  }

  void RunAndCompare(double tolerance = kTolerance) {
    ASSERT_TRUE(plan_.Run(shape_, items_, &runner_, &threads_).ok());
    for (size_t i = 0; i < items_.size(); ++i) {
      SCOPED_TRACE(absl::StrCat("item ", i));
      ExpectNear(rows_[i], SlotPool::Reference(shape_, items_[i].layer, items_[i].run, rows_[i]),
                 tolerance);
    }
  }

  void Clear() {
    items_.clear();
    rows_.clear();
    slots_.clear();
  }

  // Of KV, if each of these tokens is read once.
  uint64_t BytesOf(uint64_t tokens) const { return tokens * shape_.TokenBytes(); }

  kernels::InlinePool threads_;
  kernels::AttentionRunner runner_{kernels::BestCpuPath(), &threads_};
  AttendPlan plan_;
  std::unique_ptr<SlotPool> pool_;
  AttendShape shape_;
  std::deque<std::vector<const std::byte*>> slots_;
  std::deque<TestRows> rows_;
  std::vector<AttendItem> items_;
};

TEST_F(AttendPlanTest, OneItemIsOnePass) {
  Use(TestLayout(), FullParameters());
  Add(NewSlots(5), 200, 1, 7);
  RunAndCompare();
  EXPECT_EQ(plan_.totals().read_bytes, BytesOf(4 * kBlockTokens + 7));
  EXPECT_EQ(plan_.totals().shared_rows, 0u);
}

TEST_F(AttendPlanTest, APrefixOfManyCallersIsReadOnce) {
  Use(TestLayout(), FullParameters());
  const std::vector<const std::byte*> prefix = NewSlots(64);
  for (int i = 0; i < 16; ++i) {
    std::vector<const std::byte*> slots = prefix;
    slots.push_back(pool_->NewSlot());
    Add(slots, 64 * kBlockTokens + 3, 1, 4);
  }
  RunAndCompare();
  EXPECT_EQ(plan_.totals().read_bytes, BytesOf(64 * kBlockTokens + 16 * 4));
  EXPECT_EQ(plan_.totals().saved_bytes, BytesOf(15 * 64 * kBlockTokens));
  EXPECT_EQ(plan_.totals().shared_rows, 16u);
}

TEST_F(AttendPlanTest, WhoSharesAllHasOnePassWhateverTheItems) {
  Use(TestLayout(), FullParameters());
  const std::vector<const std::byte*> prefix = NewSlots(8);
  for (int i = 0; i < 5; ++i) Add(prefix, 1000);
  RunAndCompare();
  EXPECT_EQ(plan_.totals().read_bytes, BytesOf(8 * kBlockTokens));
}

TEST_F(AttendPlanTest, WhatIsSharedByFewBeyondWhatIsSharedByAllIsReadOnceToo) {
  Use(TestLayout(), FullParameters());
  const std::vector<const std::byte*> all = NewSlots(40);
  for (int family = 0; family < 3; ++family) {
    std::vector<const std::byte*> slots = all;
    for (const std::byte* slot : NewSlots(40)) slots.push_back(slot);
    for (int child = 0; child < 3; ++child) {
      std::vector<const std::byte*> own = slots;
      own.push_back(pool_->NewSlot());
      Add(own, 81 * kBlockTokens);
    }
  }
  RunAndCompare();
  EXPECT_EQ(plan_.totals().read_bytes, BytesOf((40 + 3 * 40 + 9) * kBlockTokens));
}

TEST_F(AttendPlanTest, AShortCommonStartIsNotWorthPartialResults) {
  Use(TestLayout(), FullParameters());
  const std::vector<const std::byte*> start = NewSlots(1);
  for (int i = 0; i < 2; ++i) {
    std::vector<const std::byte*> slots = start;
    for (const std::byte* slot : NewSlots(3)) slots.push_back(slot);
    Add(slots, 100, 8);
  }
  RunAndCompare();
  EXPECT_EQ(plan_.totals().shared_rows, 0u);
  EXPECT_EQ(plan_.totals().read_bytes, BytesOf(2 * 4 * kBlockTokens));
}

TEST_F(AttendPlanTest, TheSameSlotsAtAnotherPlaceOrLayerAreNotTheSame) {
  Use(TestLayout(), FullParameters());
  const std::vector<const std::byte*> slots = NewSlots(32);
  Add(slots, 2000, 1, kBlockTokens, 0, 0);
  Add(slots, 2000, 1, kBlockTokens, 64, 0);
  Add(slots, 2000, 1, kBlockTokens, 0, 2);
  RunAndCompare();
  EXPECT_EQ(plan_.totals().shared_rows, 0u);
}

TEST_F(AttendPlanTest, APageThatTwoHaveFilledDifferentlyFarIsNotShared) {
  Use(TestLayout(), FullParameters());
  const std::vector<const std::byte*> slots = NewSlots(64);
  Add(slots, 5000, 1, 3);
  Add(slots, 5000, 1, 9);
  RunAndCompare();
  EXPECT_EQ(plan_.totals().read_bytes, BytesOf(63 * kBlockTokens + 3 + 9));
}

TEST_F(AttendPlanTest, RowsThatSeeNothingAreZerosAndMinusInfinity) {
  Use(TestLayout(), FullParameters());
  Add({}, 5);
  Add(NewSlots(2), 10, 3, kBlockTokens, /*first_position=*/1024);
  const std::vector<const std::byte*> slots = NewSlots(2);
  Add(slots, 1022, 4, kBlockTokens, /*first_position=*/1024);  // Two rows before, two within.
  RunAndCompare();
  EXPECT_EQ(rows_[0].log_sum_exp[0], -INFINITY);
}

TEST_F(AttendPlanTest, WindowsReadNothingBehindThemAndSinksAreSeen) {
  AttendParameters parameters = FullParameters();
  parameters.window_tokens = 40;
  parameters.sink_tokens = 4;
  Use(TestLayout(), parameters);
  std::vector<const std::byte*> slots = NewSlots(64);
  for (size_t i = 1; i < 60; ++i) slots[i] = nullptr;  // Given back.
  Add(slots, 64 * kBlockTokens - 1);
  Add(slots, 64 * kBlockTokens - 2, 2);
  RunAndCompare();
  EXPECT_LT(plan_.totals().read_bytes, BytesOf(2 * 80));
}

TEST_F(AttendPlanTest, WindowsOnEitherSideOfWhatWasGivenBackAreNotOnePass) {
  AttendParameters parameters = FullParameters();
  parameters.window_tokens = 600;
  Use(TestLayout(), parameters);
  std::vector<const std::byte*> slots = NewSlots(160);
  for (size_t i = 50; i < 60; ++i) slots[i] = nullptr;
  for (int i = 0; i < 2; ++i) Add(slots, 50 * kBlockTokens - 1);
  for (int i = 0; i < 8; ++i) Add(slots, 100 * kBlockTokens);
  RunAndCompare();
}

TEST_F(AttendPlanTest, OneSliceAloneIsThatPartOfTheHeads) {
  AttendParameters parameters = FullParameters();
  Use(TestLayout(), parameters);
  const std::vector<const std::byte*> slots = NewSlots(20);
  Add(slots, 1000);
  RunAndCompare();
  const TestRows both = rows_[0];

  parameters.first_slice = 1;
  parameters.slices = 1;
  parameters.query_heads = 4;
  shape_ = *MakeAttendShape(pool_->map(), parameters);
  items_.clear();
  rows_.clear();
  Add(slots, 1000);
  const size_t half = both.queries.size() / 2;
  std::copy(both.queries.begin() + static_cast<ptrdiff_t>(half), both.queries.end(),
            rows_[0].queries.begin());
  RunAndCompare();
  const std::vector<float> second(
      both.output.begin() + static_cast<ptrdiff_t>(both.output.size() / 2), both.output.end());
  EXPECT_EQ(rows_[0].output, second);
}

TEST_F(AttendPlanTest, LatentGroupsReadTheirValuesFromKeys) {
  AttendParameters parameters = FullParameters();
  parameters.group = 0;
  parameters.query_heads = 6;
  parameters.latent_value_dim = 32;
  Use(TestLayout(), parameters);
  const std::vector<const std::byte*> slots = NewSlots(48);
  Add(slots, 900, 2);
  Add(slots, 900, 1, 5, 0, 1);
  Add(slots, 700, 1, 5, 0, 1);
  RunAndCompare();
}

TEST_F(AttendPlanTest, ManyRowsOverMuchKvAreCutWithinTheBoundOfPartialResults) {
  Use(TestLayout(), FullParameters());
  const std::vector<const std::byte*> slots = NewSlots(70);  // Chunks of 512 tokens: three.
  for (int i = 0; i < 4; ++i) Add(slots, 1100, 5);
  AttendPlan tight(/*partial_bytes_max=*/8 << 10);  // Of five queries of a slice.
  ASSERT_TRUE(tight.Run(shape_, items_, &runner_, &threads_).ok());
  const std::deque<TestRows> cut = rows_;
  RunAndCompare();
  for (size_t i = 0; i < cut.size(); ++i) ExpectNear(cut[i], rows_[i], kTolerance);
}

struct Stored {
  Dtype dtype;
  ScaleKind scales;
  uint32_t row_dtype;
  double tolerance;
};

class RandomAttendTest : public AttendPlanTest, public ::testing::WithParamInterface<Stored> {};

// Prompts as a tree: each item goes on from where another one is, at a random block.
TEST_P(RandomAttendTest, EachItemIsAsItIsAlone) {
  const Stored& stored = GetParam();
  std::mt19937_64 random(7);
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    AttendParameters parameters = FullParameters();
    parameters.row_dtype = stored.row_dtype;
    if (random() % 2 == 0) {
      parameters.window_tokens = 1 + random() % 900;
      parameters.sink_tokens = random() % 3 * 5;
    }
    if (random() % 3 == 0) parameters.logit_soft_cap = 20;
    if (random() % 4 == 0) {
      parameters.group = 0;
      parameters.latent_value_dim = 16;
      parameters.query_heads = 3;
    }
    Clear();
    Use(TestLayout(stored.dtype, stored.scales), parameters, seed);
    std::vector<std::vector<const std::byte*>> known = {NewSlots(1 + random() % 60)};
    const uint64_t first_position = random() % 2 * 32;
    for (size_t i = 0; i < 2 + random() % 14; ++i) {
      std::vector<const std::byte*> slots = known[random() % known.size()];
      if (random() % 3 != 0) slots.resize(1 + random() % slots.size());
      for (const std::byte* slot : NewSlots(random() % 3 * (random() % 9))) slots.push_back(slot);
      known.push_back(slots);
      const uint64_t end = first_position + slots.size() * kBlockTokens;
      const uint32_t rows = 1 + static_cast<uint32_t>(random() % 4);
      const uint64_t position = random() % 2 == 0 ? end + random() % 20 : random() % end;
      Add(slots, position, rows, 1 + static_cast<uint32_t>(random() % kBlockTokens), first_position,
          random() % 5 == 0);
    }
    RunAndCompare(stored.tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Dtypes, RandomAttendTest,
    ::testing::Values(Stored{Dtype::kFloat32, ScaleKind::kNone, 3, kTolerance},
                      Stored{Dtype::kBfloat16, ScaleKind::kNone, 2, kTolerance16Bit},
                      Stored{Dtype::kInt8, ScaleKind::kPerTokenAndHead, 3, kTolerance16Bit},
                      Stored{Dtype::kFloat8E4m3fn, ScaleKind::kPerHead, 1, kTolerance16Bit}));

}  // namespace
}  // namespace cairn::node
