// What the model answers before it was taught, after, and about combinations that it hardly saw.

#include "cache_node/store/policies/reuse/reuse_model.h"

#include <gtest/gtest.h>

namespace cairn::node {
namespace {

constexpr size_t kNear = 10;  // Bins of ages of about 32
constexpr size_t kFar = 20;   // and 1,000 requests.

void PassEpochs(ReuseModel* model, int epochs) {
  for (uint64_t i = 0; i < epochs * ReuseModel::kRequestsAnEpoch; ++i) model->Tick();
}

// Runs of that cell live to the bin, and most are used in it.
void Teach(ReuseModel* model, ReuseModel::Cell cell, size_t used_in, int runs) {
  for (int run = 0; run < runs; ++run) {
    for (size_t bin = 0; bin < used_in; ++bin) model->CountSurvived(cell, bin, 1);
    if (run % 5 != 0) {
      model->CountHit(cell, used_in);
    } else {
      for (size_t bin = used_in; bin < kReuseAgeBins; ++bin) model->CountSurvived(cell, bin, 1);
    }
  }
}

TEST(ReuseModelTest, UntaughtItRanksByAgeAlone) {
  ReuseModel model;
  const ReuseModel::Cell one = model.CellOf({.touches = 1, .fresh = 3});
  const ReuseModel::Cell other = model.CellOf({.touches = 3, .turn = 2, .gap = 4});
  for (size_t bin = 0; bin < kReuseAgeBins; ++bin) {
    EXPECT_EQ(model.WorthOf(one, bin), model.WorthOf(other, bin));
    if (bin == 0) continue;
    EXPECT_LT(model.WorthOf(one, bin), model.WorthOf(one, bin - 1));
  }
}

TEST(ReuseModelTest, LearnsAtWhatAgeACombinationIsUsedAgain) {
  ReuseModel model;
  const ReuseModel::Cell soon = model.CellOf({.touches = 2, .turn = 1});
  const ReuseModel::Cell late = model.CellOf({.touches = 1, .turn = 0});
  Teach(&model, soon, kNear, 3000);
  Teach(&model, late, kFar, 3000);
  PassEpochs(&model, 1);
  EXPECT_GT(model.WorthOf(soon, 0), model.WorthOf(late, 0));
  EXPECT_GT(model.WorthOf(soon, kNear), model.WorthOf(soon, kNear - 4));
  EXPECT_GT(model.WorthOf(soon, kNear), model.WorthOf(soon, kNear + 1));
  EXPECT_LT(model.WorthOf(soon, kNear + 2), model.WorthOf(late, kFar));
}

TEST(ReuseModelTest, ARareCombinationAnswersAsOnesLikeIt) {
  ReuseModel model;
  Teach(&model, model.CellOf({.touches = 2, .turn = 1, .fresh = 2, .gap = 3}), kNear, 500);
  Teach(&model, model.CellOf({.touches = 1, .turn = 0, .fresh = 2, .gap = 3}), kFar, 500);
  PassEpochs(&model, 1);
  const ReuseModel::Cell unseen = model.CellOf({.touches = 2, .turn = 1, .fresh = 5, .gap = 7});
  const ReuseModel::Cell unseen_other = model.CellOf({.touches = 1, .turn = 0, .fresh = 5});
  EXPECT_GT(model.WorthOf(unseen, kNear), model.WorthOf(unseen_other, kNear));
  EXPECT_GT(model.WorthOf(unseen, kNear), model.WorthOf(unseen, kNear + 1));
}

TEST(ReuseModelTest, ForgetsWhatIsNoLongerSo) {
  ReuseModel model;
  const ReuseModel::Cell cell = model.CellOf({.touches = 2});
  Teach(&model, cell, kNear, 500);
  PassEpochs(&model, 1);
  const ReuseModel::Worth taught = model.WorthOf(cell, kNear);
  PassEpochs(&model, 600);
  const ReuseModel::Worth faded = model.WorthOf(cell, kNear);
  EXPECT_LT(faded, taught);
  ReuseModel fresh;
  EXPECT_NEAR(faded, fresh.WorthOf(fresh.CellOf({.touches = 2}), kNear), 2);
}

TEST(ReuseModelTest, ASurvivalThatWasNoneIsTakenBack) {
  ReuseModel one;
  ReuseModel other;
  const ReuseModel::Cell cell = one.CellOf({.touches = 2});
  ASSERT_EQ(other.CellOf({.touches = 2}), cell);
  Teach(&one, cell, kNear, 200);
  Teach(&other, cell, kNear, 200);
  one.CountSurvived(cell, kNear, 1);
  one.CountSurvived(cell, kNear, -1);
  PassEpochs(&one, 1);
  PassEpochs(&other, 1);
  for (size_t bin = 0; bin < kReuseAgeBins; ++bin) {
    EXPECT_EQ(one.WorthOf(cell, bin), other.WorthOf(cell, bin));
  }
}

TEST(ReuseModelTest, MemoryIsBoundedByTheCombinations) {
  ReuseModel model;
  for (uint8_t touches = 1; touches <= kReuseTouches; ++touches) {
    for (uint8_t turn = 0; turn < kReuseTurns; ++turn) {
      for (uint8_t fresh = 0; fresh < kReuseFresh; ++fresh) {
        for (uint8_t gap = 0; gap < kReuseGaps; ++gap) {
          for (const bool last : {false, true}) {
            model.CellOf(
                {.touches = touches, .turn = turn, .last = last, .fresh = fresh, .gap = gap});
          }
        }
      }
    }
  }
  EXPECT_LE(model.MemoryBytes(), 4u << 20);
}

}  // namespace
}  // namespace cairn::node
