// What a router knows of a cache: at once, late, and when a batch is lost.

#include "tests/bench/routing/stale_view.h"

#include <gtest/gtest.h>

#include "tests/bench/eviction/fake_trace.h"

namespace cairn::bench {
namespace {

class StaleViewTest : public ::testing::Test {
 protected:
  StaleViewTest() {
    FakeTrace reader({{.ids = {1, 2, 3}}, {.ids = {4, 5}}, {.ids = {6, 7, 8}}});
    trace_ = *BlockTrace::Read(&reader, {});
    for (const BlockTrace::Request& request : trace_.requests()) {
      paths_.emplace_back();
      trace_.PathOf(request, &paths_.back());
    }
  }
  void Served(StaleView* view, double now_s, uint32_t request, bool own, bool lost = false) {
    view->Served(now_s, request, paths_[request], own, lost);
  }

  BlockTrace trace_;
  std::vector<std::vector<BlockTrace::Block>> paths_;
};

TEST_F(StaleViewTest, NotLateItIsAsTheCache) {
  StaleView view(&trace_, 4, 0);
  Served(&view, 1, 0, false);
  EXPECT_EQ(view.Match(paths_[0]), 3u);
  Served(&view, 1, 1, false);
  EXPECT_EQ(view.Match(paths_[0]), 2u);
}

TEST_F(StaleViewTest, WhatOthersSentIsKnownWhenItsRecordComes) {
  StaleView view(&trace_, 10, 2);
  Served(&view, 1, 0, false);
  view.Advance(2.9);
  EXPECT_EQ(view.Match(paths_[0]), 0u);
  view.Advance(3);
  EXPECT_EQ(view.Match(paths_[0]), 3u);
}

TEST_F(StaleViewTest, WhatItSentItselfIsKnownAtOnce) {
  StaleView view(&trace_, 10, 2);
  Served(&view, 1, 0, true);
  EXPECT_EQ(view.Match(paths_[0]), 3u);
  view.Advance(3);
  EXPECT_EQ(view.Match(paths_[0]), 3u);
}

TEST_F(StaleViewTest, EvictionsAreAsLate) {
  StaleView view(&trace_, 3, 2);
  Served(&view, 1, 0, false);
  Served(&view, 2, 2, false);
  view.Advance(3);
  EXPECT_EQ(view.Match(paths_[0]), 3u) << "it is gone already, but that is not known";
  view.Advance(4);
  EXPECT_EQ(view.Match(paths_[0]), 0u);
}

TEST_F(StaleViewTest, ALostBatchNeverComesAndWhatWasSentEndsWithIt) {
  for (const double late_s : {0.0, 2.0}) {
    StaleView view(&trace_, 10, late_s);
    Served(&view, 1, 0, true, true);
    EXPECT_EQ(view.Match(paths_[0]), 3u);
    view.Advance(10);
    EXPECT_EQ(view.Match(paths_[0]), 0u);
  }
}

}  // namespace
}  // namespace cairn::bench
