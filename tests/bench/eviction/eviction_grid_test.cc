// The figures that policies are judged by, from cells made by hand; and with CAIRN_TRACE_DIR naming
// a folder of the published traces, the counts of those in it against numbers that a program
// written apart from this one counted.

#include "tests/bench/eviction/eviction_grid.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cache_node/store/policies/lru_policy.h"
#include "cache_node/store/policies/policy_registry.h"
#include "client/replay/open_trace.h"
#include "tests/bench/eviction/fake_trace.h"

namespace cairn::bench {
namespace {

EvictionCell Cell(const std::string& name, uint32_t capacity, uint64_t lru, uint64_t policy,
                  uint64_t belady) {
  EvictionCell cell;
  cell.name = name;
  cell.capacity = capacity;
  cell.block_refs = 1000;
  cell.lru.hit_blocks = lru;
  cell.policy.hit_blocks = policy;
  cell.belady.hit_blocks = belady;
  return cell;
}

std::vector<EvictionCell> AllJudgedCells() {
  std::vector<EvictionCell> cells;
  for (const KnownTrace& trace : KnownTraces()) {
    for (const uint32_t capacity : trace.judged) {
      // A tenth of conversation's gap is closed, two tenths of synthetic's, three of the third's.
      const uint64_t tenths = 1 + static_cast<uint64_t>(trace.name == "synthetic") +
                              2 * static_cast<uint64_t>(trace.name == "claude");
      cells.push_back(Cell(std::string(trace.name), capacity, 100, 100 + 10 * tenths, 200));
    }
  }
  return cells;
}

TEST(EvictionGridTest, AGapIsClosedByTheSumOverSizes) {
  const EvictionCell small = Cell("x", 1, 10, 20, 50);
  const EvictionCell large = Cell("x", 2, 100, 100, 160);
  EXPECT_DOUBLE_EQ(GapClosed({&small, &large}), 0.1);
  EXPECT_DOUBLE_EQ(GapClosed({&small}), 0.25);
  const EvictionCell none = Cell("x", 3, 100, 100, 100);
  EXPECT_EQ(GapClosed({&none}), 0);
}

TEST(EvictionGridTest, TheMeanIsOverTracesAndTheWorstOverAllCells) {
  std::vector<EvictionCell> cells = AllJudgedCells();
  cells.push_back(Cell("agents", 1024, 500, 530, 540));
  cells.push_back(Cell("magagent", 256, 500, 495, 540));
  JsonReport report;
  AddSummary(cells, &report);
  EXPECT_NEAR(report.Number("gap_closed_mean"), 0.2, 1e-12);
  EXPECT_NEAR(report.Number("gap_closed_synthetic"), 0.2, 1e-12);
  EXPECT_NEAR(report.Number("gap_closed_agents"), 0.75, 1e-12);
  EXPECT_NEAR(report.Number("worst_points_below_lru"), 0.5, 1e-12);
  EXPECT_EQ(nlohmann::json::parse(report.ToJson()).at("worst_cell"), "magagent_256");
}

TEST(EvictionGridTest, WithoutAllCellsThereIsNoMeanAndNothingBelowIsZero) {
  std::vector<EvictionCell> cells = AllJudgedCells();
  cells.pop_back();
  JsonReport report;
  AddSummary(cells, &report);
  const nlohmann::json json = nlohmann::json::parse(report.ToJson());
  EXPECT_FALSE(json.contains("gap_closed_mean"));
  EXPECT_FALSE(json.contains("gap_closed_agents"));
  EXPECT_TRUE(json.contains("gap_closed_conversation"));
  EXPECT_EQ(report.Number("worst_points_below_lru"), 0);
}

TEST(EvictionGridTest, TheWorkingSetsErrorIsTheLargestOfAnyCell) {
  std::vector<EvictionCell> cells = {Cell("a", 1, 1, 1, 1), Cell("b", 2, 1, 1, 1)};
  cells[1].working_set_error_points = 0.7;
  JsonReport report;
  AddSummary(cells, &report);
  EXPECT_EQ(report.Number("working_set_error_points"), 0.7);
  EXPECT_EQ(nlohmann::json::parse(report.ToJson()).at("working_set_error_cell"), "b_2");
}

TEST(EvictionGridTest, AWorkingSetThatSamplesAllBlocksIsExact) {
  std::vector<FakeTrace::Prompt> prompts;
  for (uint64_t i = 0; i < 300; ++i) prompts.push_back({{1, 2, 10 + i * i % 17, 50 + i % 40}});
  FakeTrace reader(std::move(prompts));
  const BlockTrace trace = *BlockTrace::Read(&reader, {});
  EXPECT_NEAR(WorkingSetErrorPoints(trace, 30), 0, 1e-9);
}

TEST(KnownTracesTest, AreFoundPlainOrGzipped) {
  const std::string folder = ::testing::TempDir() + "/cairn_known_traces_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/a.jsonl.gz") << "x";
  EXPECT_EQ(FindTrace(folder, "a.jsonl"), folder + "/a.jsonl.gz");
  std::ofstream(folder + "/a.jsonl") << "x";
  EXPECT_EQ(FindTrace(folder, "a.jsonl"), folder + "/a.jsonl");
  EXPECT_EQ(FindTrace(folder, "b.jsonl"), std::nullopt);
  EXPECT_EQ(FindTrace("/nowhere", "a.jsonl"), std::nullopt);
  std::filesystem::remove_all(folder);
}

struct Published {
  absl::string_view name;
  uint32_t capacity;
  uint64_t lru;
  uint64_t belady;
  uint64_t unlimited;
};

constexpr Published kPublished[] = {{"conversation", 5859, 39258, 101884, 105710},
                                    {"conversation_full", 5859, 40644, 101791, 105592},
                                    {"synthetic", 586, 6600, 26245, 77953},
                                    {"synthetic_full", 5859, 38368, 66898, 77740},
                                    {"miniswe", 1024, 123967, 123967, 148272},
                                    {"magagent", 256, 45443, 50259, 82765},
                                    {"taubench", 256, 4188, 4190, 4190},
                                    {"agents", 1024, 201390, 206875, 235227}};

void ExpectCounts(const BlockTrace& trace, const Published& published) {
  SCOPED_TRACE(std::string(published.name));
  const EvictionCell cell = SimulateCell(published.name, trace, published.capacity,
                                         [] { return std::make_unique<node::LruPolicyFactory>(); });
  EXPECT_EQ(cell.lru.hit_blocks, published.lru);
  EXPECT_EQ(cell.policy.hit_blocks, published.lru);
  EXPECT_EQ(cell.belady.hit_blocks, published.belady);
  EXPECT_EQ(cell.unlimited.hit_blocks, published.unlimited);
}

TEST(CountsTest, OfASmallTraceByHand) {
  // The last request finds what LRU left of the first: its first block.
  FakeTrace reader({{{1, 2}}, {{3}}, {{1, 2}}});
  ExpectCounts(*BlockTrace::Read(&reader, {}), {"by hand", 2, 1, 2, 2});
}

TEST(CountsTest, OfPublishedTracesAsAnotherProgramCountsThem) {
  const char* folder = std::getenv("CAIRN_TRACE_DIR");
  for (const KnownTrace& known : KnownTraces()) {
    const auto path = folder == nullptr ? std::nullopt : FindTrace(folder, known.file);
    const auto published = std::find_if(std::begin(kPublished), std::end(kPublished),
                                        [&](const Published& p) { return p.name == known.name; });
    if (!path.has_value() || published == std::end(kPublished)) continue;
    const auto reader = replay::OpenTrace(*path);
    ASSERT_TRUE(reader.ok()) << reader.status();
    const auto trace = BlockTrace::Read(
        reader->get(), {.partial = known.partial, .source = std::string(known.source)});
    ASSERT_TRUE(trace.ok()) << trace.status();
    ExpectCounts(*trace, *published);
  }
}

TEST(EvictionCellTest, NothingThatAPolicyLearntIsCarriedToTheNextSimulation) {
  std::vector<FakeTrace::Prompt> prompts;
  for (uint64_t i = 0; i < 2000; ++i) {
    // Every third prompt comes back six later, the others never.
    const uint64_t name = i % 3 == 0 ? 100 * (i / 6) : 100 * (1000 + i);
    FakeTrace::Prompt prompt{.ids = {}, .arrival_s = static_cast<double>(i)};
    for (uint64_t block = 1; block <= 5; ++block) prompt.ids.push_back(name + block);
    prompts.push_back(prompt);
  }
  FakeTrace reader(prompts);
  const BlockTrace trace = *BlockTrace::Read(&reader, {});
  const auto reuse = [] { return *node::MakeEvictionPolicies("reuse"); };
  const EvictionCell first = SimulateCell("", trace, 20, reuse);
  const EvictionCell second = SimulateCell("", trace, 20, reuse);
  EXPECT_EQ(first.policy.hit_blocks, second.policy.hit_blocks);
  EXPECT_GT(first.policy.hit_blocks, 0u);
}

}  // namespace
}  // namespace cairn::bench
