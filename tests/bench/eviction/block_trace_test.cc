// Prompts written down as ids, and the numbers that their blocks get.

#include "tests/bench/eviction/block_trace.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/bench/eviction/fake_trace.h"

namespace cairn::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

BlockTrace Read(std::vector<FakeTrace::Prompt> prompts, const BlockTraceOptions& options = {}) {
  FakeTrace reader(std::move(prompts));
  absl::StatusOr<BlockTrace> trace = BlockTrace::Read(&reader, options);
  EXPECT_TRUE(trace.ok()) << trace.status();
  return *std::move(trace);
}

std::vector<BlockTrace::Block> PathOf(const BlockTrace& trace, size_t request) {
  std::vector<BlockTrace::Block> path;
  trace.PathOf(trace.requests()[request], &path);
  return path;
}

TEST(BlockTraceTest, BlocksAreNumberedAsTheyAreFirstAskedFor) {
  const BlockTrace trace = Read({{{7, 8, 9}}, {{7, 8, 4}}, {{7, 8, 9, 5}}});
  EXPECT_THAT(PathOf(trace, 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(PathOf(trace, 1), ElementsAre(0, 1, 3));
  EXPECT_THAT(PathOf(trace, 2), ElementsAre(0, 1, 2, 4));
  EXPECT_EQ(trace.block_count(), 5u);
  EXPECT_EQ(trace.block_refs(), 10u);
  EXPECT_EQ(trace.ParentOf(4), 2u);
  EXPECT_EQ(trace.ParentOf(3), 1u);
  EXPECT_EQ(trace.ParentOf(0), BlockTrace::kNone);
}

TEST(BlockTraceTest, ConsecutiveBlocksAreOneRun) {
  const BlockTrace trace = Read({{{7, 8, 9}}, {{7, 8, 4, 3}}});
  EXPECT_EQ(trace.RunsOf(trace.requests()[0]).size(), 1u);
  EXPECT_EQ(trace.RunsOf(trace.requests()[1]).size(), 2u);
}

TEST(BlockTraceTest, AnIdUnderAnotherParentIsAnotherBlock) {
  const BlockTrace trace = Read({{{1, 2}}, {{2, 2}}, {{3, 1, 2}}});
  EXPECT_THAT(PathOf(trace, 1), ElementsAre(2, 3));
  EXPECT_THAT(PathOf(trace, 2), ElementsAre(4, 5, 6));
}

TEST(BlockTraceTest, NamespacesShareNothing) {
  const BlockTrace trace = Read({{.ids = {1, 2}}, {.ids = {1, 2}, .name_space = 1}});
  EXPECT_THAT(PathOf(trace, 1), ElementsAre(2, 3));
}

TEST(BlockTraceTest, RequestsAreOrderedByArrivalToTheMillisecond) {
  const BlockTrace trace = Read({{.ids = {1}, .arrival_s = 2},
                                 {.ids = {2}, .arrival_s = 1.0004},
                                 {.ids = {3}, .arrival_s = 1.0001}});
  EXPECT_EQ(trace.ParentOf(2), BlockTrace::kNone);
  EXPECT_THAT(PathOf(trace, 0), ElementsAre(0));
  // 2 and 3 arrive in one millisecond, so they stay as they were.
  const BlockTrace again = Read({{.ids = {2}}, {.ids = {3}}, {.ids = {3, 9}, .arrival_s = 1}});
  EXPECT_THAT(PathOf(again, 2), ElementsAre(1, 2));
}

TEST(BlockTraceTest, APartialLastBlockCountsWhereAskedFor) {
  const std::vector<FakeTrace::Prompt> prompts = {{.ids = {1, 2}, .tokens = 15}, {.ids = {1, 2}}};
  const BlockTrace full = Read(prompts);
  EXPECT_THAT(PathOf(full, 0), ElementsAre(0));
  EXPECT_THAT(PathOf(full, 1), ElementsAre(0, 1));
  const BlockTrace partial = Read(prompts, {.partial = true});
  EXPECT_THAT(PathOf(partial, 0), ElementsAre(0, 1));
  EXPECT_EQ(partial.TokensOf(partial.requests()[0], 1), 10u);
  EXPECT_EQ(partial.TokensOf(partial.requests()[0], 2), 15u);
}

TEST(BlockTraceTest, APartialBlockWithoutAnIdOfTheTraceDoesNotCount) {
  const BlockTrace trace =
      Read({{.ids = {1, replay::kTraceIdsEnd + 5}, .tokens = 15}}, {.partial = true});
  EXPECT_THAT(PathOf(trace, 0), ElementsAre(0));
}

TEST(BlockTraceTest, OneSourceOfSeveral) {
  const std::vector<FakeTrace::Prompt> prompts = {{.ids = {1}, .source = "a"},
                                                  {.ids = {2}, .source = "b"}};
  EXPECT_EQ(Read(prompts, {.source = "b"}).requests().size(), 1u);
  EXPECT_THAT(Read(prompts, {.source = "c"}).requests(), IsEmpty());
  EXPECT_EQ(Read(prompts).requests().size(), 2u);
}

TEST(BlockTraceTest, KeysDiffer) {
  std::set<uint64_t> keys;
  for (BlockTrace::Block block = 0; block < 1000; ++block) keys.insert(BlockTrace::KeyOf(block));
  EXPECT_EQ(keys.size(), 1000u);
}

}  // namespace
}  // namespace cairn::bench
